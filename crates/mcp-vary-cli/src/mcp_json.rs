//! The file in which a client keeps its servers: `{"mcpServers": {"name": {...}}}`.

use std::collections::BTreeMap;

use http::HeaderMap;
use mcp_vary_gateway::{Target, UpstreamConfig};
use serde_json::{Map, Value};

use crate::target::{header, http_url};

/// Reads one server of the file's `text`: the one that is called `wanted`, or the only one.
///
/// `variable` looks up what `${VAR}`, `${VAR:-default}` and `${env:VAR}` stand for.
///
/// # Errors
///
/// A sentence that names the key and what to write there.
pub(crate) fn read(
    text: &str,
    wanted: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<UpstreamConfig, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
    let (key, servers) = ["mcpServers", "servers"]
        .into_iter()
        .find_map(|key| Some((key, file.get(key)?)))
        .ok_or(r#"has no `mcpServers`; write {"mcpServers": {"name": {"command": "..."}}}"#)?;
    let servers = servers
        .as_object()
        .ok_or_else(|| format!("`{key}` is no object; write one entry per server, by its name"))?;
    let (name, server) = choose(key, servers, wanted)?;
    let entry = Entry {
        at: format!("{key}.{name}"),
        members: server.as_object().ok_or_else(|| {
            format!("`{key}.{name}` is no object; write {{\"command\": ...}} or {{\"url\": ...}}")
        })?,
        variable,
    };
    Ok(UpstreamConfig::new(name, entry.target()?))
}

fn choose<'a>(
    key: &str,
    servers: &'a Map<String, Value>,
    wanted: Option<&str>,
) -> Result<(&'a str, &'a Value), String> {
    let names = || {
        servers
            .keys()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut entries = servers
        .iter()
        .filter(|(name, _)| wanted.is_none_or(|wanted| wanted == *name));
    match (entries.next(), entries.next(), wanted) {
        (Some((name, server)), None, _) => Ok((name, server)),
        (None, _, Some(wanted)) => Err(format!(
            "`{key}` has no server `{wanted}`; it has {}",
            names()
        )),
        (None, _, None) => Err(format!("`{key}` is empty; name a server")),
        (Some(_), Some(_), _) => Err(format!(
            "`{key}` has several servers; pick one with --server: {}",
            names()
        )),
    }
}

/// One entry of the file.
struct Entry<'a> {
    /// The keys that lead to it.
    at: String,
    members: &'a Map<String, Value>,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Entry<'_> {
    fn target(&self) -> Result<Target, String> {
        let kind = self.text("type")?;
        match (self.text("command")?, self.text("url")?) {
            (Some(_), Some(_)) => Err(format!(
                "`{}` has `command` and `url`; keep one of them",
                self.at
            )),
            (None, None) => Err(format!(
                "`{}` has neither `command` nor `url`; write one of them",
                self.at
            )),
            (Some(program), None) => match kind.as_deref() {
                None | Some("stdio") => self.command(program),
                Some(_) => Err(self.wrong_type("stdio", "command")),
            },
            (None, Some(url)) => match kind.as_deref() {
                None | Some("http" | "streamable-http" | "streamableHttp") => self.http(&url),
                Some("sse") => Err(format!(
                    "`{}.type` is `sse`, a transport of 2024-11-05 that is not supported; write `http` and the \
                     server's streamable HTTP address",
                    self.at
                )),
                Some(_) => Err(self.wrong_type("http", "url")),
            },
        }
    }

    /// The text of `key` as it stands in the file: what variables stand for may be secret.
    fn written(&self, key: &str) -> &str {
        let text = self.members.get(key).and_then(Value::as_str);
        text.unwrap_or_default()
    }

    fn wrong_type(&self, right: &str, beside: &str) -> String {
        let found = self.written("type");
        format!(
            "`{}.type` is `{found}`; beside `{beside}` write `{right}`, or leave it out",
            self.at
        )
    }

    fn command(&self, program: String) -> Result<Target, String> {
        Ok(Target::Command {
            program,
            args: self.texts("args")?,
            env: self.table("env")?,
            cwd: self.text("cwd")?.map(Into::into),
        })
    }

    fn http(&self, url: &str) -> Result<Target, String> {
        let here = |key: &str, error| format!("`{}.{key}`: {error}", self.at);
        let headers: Result<HeaderMap, String> = self
            .table("headers")?
            .iter()
            .map(|(name, value)| header(name, value))
            .collect();
        Ok(Target::Http {
            url: http_url(url, self.written("url")).map_err(|error| here("url", error))?,
            headers: headers.map_err(|error| here("headers", error))?,
        })
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        let at = format!("{}.{key}", self.at);
        self.members
            .get(key)
            .map(|value| self.expanded(&at, value))
            .transpose()
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, String> {
        let at = format!("{}.{key}", self.at);
        let Some(value) = self.members.get(key) else {
            return Ok(Vec::new());
        };
        let items = value
            .as_array()
            .ok_or_else(|| format!("`{at}` is no array; write [\"...\", \"...\"]"))?;
        items
            .iter()
            .enumerate()
            .map(|(index, item)| self.expanded(&format!("{at}[{index}]"), item))
            .collect()
    }

    fn table(&self, key: &str) -> Result<BTreeMap<String, String>, String> {
        let at = format!("{}.{key}", self.at);
        let Some(value) = self.members.get(key) else {
            return Ok(BTreeMap::new());
        };
        let members = value
            .as_object()
            .ok_or_else(|| format!("`{at}` is no object; write {{\"NAME\": \"value\"}}"))?;
        members
            .iter()
            .map(|(name, value)| Ok((name.clone(), self.expanded(&format!("{at}.{name}"), value)?)))
            .collect()
    }

    fn expanded(&self, at: &str, value: &Value) -> Result<String, String> {
        let text = value
            .as_str()
            .ok_or_else(|| format!("`{at}` is no string; put it in quotes"))?;
        expand(text, self.variable).map_err(|error| format!("`{at}`: {error}"))
    }
}

/// `text` with `${VAR}`, `${VAR:-default}` and `${env:VAR}` replaced.
fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        // The text itself is not shown: a header may have its secret in it.
        let (inner, after) = after
            .split_once('}')
            .ok_or("a `${` is not closed; write `}` behind the name")?;
        out.push_str(before);
        out.push_str(&look_up(inner, variable)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn look_up(inner: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        return Err(format!(
            "`${{{name}}}` cannot be replaced; only variables of the environment can"
        ));
    }
    // As in a shell, `:-` also replaces a variable that is set to nothing.
    let value = variable(name).filter(|value| default.is_none() || !value.is_empty());
    value.or_else(|| default.map(str::to_owned)).ok_or_else(|| {
        format!("the environment has no variable `{name}`; set it, or write `${{{name}:-default}}`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/data".to_owned()),
            "EMPTY" => Some(String::new()),
            "SECRET" => Some("s3cret".to_owned()),
            _ => None,
        }
    }

    #[track_caller]
    fn expands(text: &str, expected: &str) {
        assert_eq!(expand(text, &environment).as_deref(), Ok(expected));
    }

    #[track_caller]
    fn refuses(text: &str, wanted: Option<&str>, expected: &str) {
        let error = read(text, wanted, &environment).unwrap_err();
        assert_eq!(error, expected);
    }

    #[test]
    fn variables_are_replaced() {
        expands("${HOME}/x", "/data/x");
        expands("${env:HOME}${HOME}", "/data/data");
        expands("${EMPTY:-d}${NONE:-a:b}${EMPTY}", "da:b");
        expands("costs $5 {a}", "costs $5 {a}");
    }

    #[test]
    fn a_command_is_read_with_everything_around_it() {
        let text = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"type": "stdio", "command": "npx",
            "args": ["-y", "${HOME}"], "env": {"K": "${NONE:-v}"}, "cwd": "/tmp", "disabled": false}}}"#;
        let server = read(text, Some("b"), &environment).unwrap();
        let Target::Command {
            program,
            args,
            env,
            cwd,
        } = server.target
        else {
            panic!("no command");
        };
        assert_eq!((server.name.as_str(), program.as_str()), ("b", "npx"));
        assert_eq!(args, ["-y", "/data"]);
        assert_eq!(env["K"], "v");
        assert_eq!(cwd, Some("/tmp".into()));
    }

    #[test]
    fn an_address_is_read_with_its_headers() {
        let text = r#"{"servers": {"a": {"type": "http", "url": "https://example.com/mcp", "headers": {"X-Key": "${HOME}"}}}}"#;
        let Target::Http { url, headers } = read(text, None, &environment).unwrap().target else {
            panic!("no URL");
        };
        assert_eq!(url, "https://example.com/mcp");
        assert_eq!(headers["x-key"], "/data");
    }

    #[test]
    fn every_mistake_is_named_with_its_key() {
        refuses(
            "{",
            None,
            "is no JSON: EOF while parsing an object at line 1 column 1",
        );
        refuses(
            "{}",
            None,
            r#"has no `mcpServers`; write {"mcpServers": {"name": {"command": "..."}}}"#,
        );
        refuses(
            r#"{"mcpServers": []}"#,
            None,
            "`mcpServers` is no object; write one entry per server, by its name",
        );
        refuses(
            r#"{"mcpServers": {}}"#,
            None,
            "`mcpServers` is empty; name a server",
        );
        let two = r#"{"mcpServers": {"a": {}, "b": {}}}"#;
        refuses(
            two,
            None,
            "`mcpServers` has several servers; pick one with --server: `a`, `b`",
        );
        refuses(
            two,
            Some("c"),
            "`mcpServers` has no server `c`; it has `a`, `b`",
        );
        refuses(
            two,
            Some("a"),
            "`mcpServers.a` has neither `command` nor `url`; write one of them",
        );
        let one = |members: &str| format!(r#"{{"mcpServers": {{"a": {members}}}}}"#);
        refuses(
            &one("7"),
            None,
            r#"`mcpServers.a` is no object; write {"command": ...} or {"url": ...}"#,
        );
        refuses(
            &one(r#"{"command": 7}"#),
            None,
            "`mcpServers.a.command` is no string; put it in quotes",
        );
        refuses(
            &one(r#"{"command": "x", "args": [1]}"#),
            None,
            "`mcpServers.a.args[0]` is no string; put it in quotes",
        );
        refuses(
            &one(r#"{"command": "x", "args": "-y"}"#),
            None,
            r#"`mcpServers.a.args` is no array; write ["...", "..."]"#,
        );
        refuses(
            &one(r#"{"command": "x", "env": {"K": "${NONE}"}}"#),
            None,
            "`mcpServers.a.env.K`: the environment has no variable `NONE`; set it, or write `${NONE:-default}`",
        );
        refuses(
            &one(r#"{"command": "${input:key}"}"#),
            None,
            "`mcpServers.a.command`: `${input:key}` cannot be replaced; only variables of the environment can",
        );
        refuses(
            &one(r#"{"type": "http", "command": "x"}"#),
            None,
            "`mcpServers.a.type` is `http`; beside `command` write `stdio`, or leave it out",
        );
        refuses(
            &one(r#"{"url": "localhost"}"#),
            None,
            "`mcpServers.a.url`: `localhost` is no URL of an MCP server; write it like http://127.0.0.1:8800/mcp",
        );
    }

    #[test]
    fn no_error_shows_a_secret() {
        let one = |members: &str| format!(r#"{{"mcpServers": {{"a": {members}}}}}"#);
        refuses(
            &one(r#"{"url": "${SECRET}/mcp?key=${SECRET}"}"#),
            None,
            "`mcpServers.a.url`: `${SECRET}/mcp` is no URL of an MCP server; write it like http://127.0.0.1:8800/mcp",
        );
        refuses(
            &one(r#"{"type": "${SECRET}", "url": "http://x/"}"#),
            None,
            "`mcpServers.a.type` is `${SECRET}`; beside `url` write `http`, or leave it out",
        );
        refuses(
            &one(r#"{"url": "http://x/", "headers": {"X-Key": "Bearer typed ${SECRET"}}"#),
            None,
            "`mcpServers.a.headers.X-Key`: a `${` is not closed; write `}` behind the name",
        );
        refuses(
            &one(r#"{"url": "http://x/", "headers": {"X-Key": "${SECRET}\n"}}"#),
            None,
            "`mcpServers.a.headers`: the value of `x-key` has characters no header may have",
        );
    }
}
