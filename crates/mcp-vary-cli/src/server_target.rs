//! The server that the command line names.

pub(crate) mod approval;
pub(crate) mod args;
pub(crate) mod session;
pub(crate) mod unknown_tool;

use std::path::Path;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use mcp_vary_gateway::{Target, UpstreamConfig};
use mcp_vary_upstream::command_line::CommandLine;
use mcp_vary_upstream::endpoint_url::{endpoint_example, parse_endpoint};

use crate::failure::Failure;

/// A server that is started by `command`: a program and its arguments.
pub(crate) fn command(command: &[String]) -> Result<UpstreamConfig, Failure> {
    let (program, args) = command.split_first().ok_or_else(|| {
        Failure::command("a server is missing; give its URL, or `--` and its command")
    })?;
    let target = Target::command(program, args.iter().cloned());
    if target.lacks_package() {
        let runner = stem(program);
        let start = match runner.as_str() {
            "pipx" => "pipx run",
            other => other,
        };
        return Err(Failure::command(format!(
            "`{runner}` got no package to run; write it at the end, as in `-- {start} PACKAGE`"
        )));
    }
    let mut config = UpstreamConfig::new(command_name(program, args), target);
    config.command_line = Some(CommandLine::new(command));
    Ok(config)
}

/// The server at `url`. Every request to it has the headers in `lines` (`Name: value`); `ca` is the file of further authorities.
pub(crate) fn url(
    url: &str,
    lines: &[String],
    ca: Option<&Path>,
) -> Result<UpstreamConfig, Failure> {
    let uri = http_url(url, url).map_err(Failure::command)?;
    let headers = lines
        .iter()
        .map(|line| {
            line.split_once(':')
                .and_then(|(name, value)| header(name.trim(), value.trim()).ok())
        })
        .collect::<Option<HeaderMap>>()
        .ok_or_else(|| Failure::command("a --header cannot be read; write it as 'Name: value'"))?;
    let name = uri.host().unwrap_or(url).to_owned();
    let mut config = UpstreamConfig::new(name, Target::Http { url: uri, headers });
    config.ca = ca.map(Path::to_owned);
    Ok(config)
}

/// Reads `text` as the URL of a streamable HTTP endpoint. `written` is the same before variables are replaced.
///
/// The values of variables, and the query, can be secret: errors do not show them.
pub(crate) fn http_url(text: &str, written: &str) -> Result<Uri, String> {
    parse_endpoint(text).ok_or_else(|| {
        let shown = written.split('?').next().unwrap_or_default();
        let example = match shown.replace(' ', "%20") {
            escaped if escaped != shown && parse_endpoint(&escaped).is_some() => escaped,
            _ => endpoint_example(written),
        };
        format!("`{shown}` is not the URL of an MCP server; write it like {example}")
    })
}

/// One header; its value is marked as sensitive, so that logs do not show it.
pub(crate) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let name =
        HeaderName::try_from(name).map_err(|_| format!("`{name}` is not a valid header name"))?;
    let mut value = HeaderValue::try_from(value)
        .map_err(|_| format!("the value of `{name}` has characters that headers cannot contain"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// A short name for the server that a command starts: `server-git` for `npx -y @scope/server-git@1.2`.
fn command_name(program: &str, args: &[String]) -> String {
    let runner = stem(program);
    let named = args.iter().find(|arg| !arg.starts_with('-'));
    match named {
        Some(package) if RUNNERS.contains(&runner.as_str()) => stem(package),
        _ => runner,
    }
}

/// The last part of a path or a package's name, without version and the endings of scripts.
fn stem(text: &str) -> String {
    let last = Path::new(text)
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or(text);
    let versioned = last.split_once('@').map_or(last, |(name, _)| name);
    let plain = [".js", ".mjs", ".cjs", ".ts", ".py", ".exe", ".cmd"]
        .iter()
        .find_map(|ending| versioned.strip_suffix(ending))
        .unwrap_or(versioned);
    if plain.is_empty() {
        last.to_owned()
    } else {
        plain.to_owned()
    }
}

const RUNNERS: &[&str] = &[
    "bunx", "deno", "node", "npx", "pnpx", "python", "python3", "uvx",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_called(line: &str, expected: &str) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(command(&words).unwrap().name, expected);
    }

    #[test]
    fn a_server_is_called_as_a_person_would_call_it() {
        is_called(
            "npx -y @modelcontextprotocol/server-filesystem .",
            "server-filesystem",
        );
        is_called(
            "npx -y @modelcontextprotocol/server-git@1.2 .",
            "server-git",
        );
        is_called("uvx mcp-server-time", "mcp-server-time");
        is_called("/usr/bin/my-server --stdio", "my-server");
        is_called("python3 tools/server.py", "server");
    }

    #[test]
    fn an_address_without_scheme_is_refused_with_an_example() {
        let usual = "http://127.0.0.1:8800/mcp";
        for (text, example) in [
            ("localhost:8801", "http://localhost:8801/mcp"),
            ("127.0.0.1:8801/x", "http://127.0.0.1:8801/x"),
            ("ftp://x/", usual),
            ("http://", usual),
            ("a b", usual),
            ("http://x/mcp/v/a b", "http://x/mcp/v/a%20b"),
            ("/mcp", usual),
        ] {
            let error = http_url(text, text).unwrap_err();
            let expected = format!("write it like {example}");
            assert!(error.ends_with(&expected), "{error}");
        }
        let keyed = "https://example.com/mcp?key=1";
        assert!(http_url(keyed, keyed).is_ok());
    }

    #[test]
    fn no_error_shows_a_query() {
        let error = http_url("example.com/mcp?key=secret", "example.com/mcp?key=secret");
        assert!(
            error
                .unwrap_err()
                .starts_with("`example.com/mcp` is not the URL")
        );
    }

    #[test]
    fn headers_are_read_as_they_are_typed() {
        let headers = ["X-Key: a:b".to_owned(), "y:z".to_owned()];
        let Target::Http { headers, .. } =
            url("http://localhost/mcp", &headers, None).unwrap().target
        else {
            panic!("no URL");
        };
        assert_eq!(headers["x-key"], "a:b");
        assert_eq!(headers["y"], "z");
        assert!(url("http://localhost/mcp", &["no colon".to_owned()], None).is_err());
    }
}
