//! Vary as an entry of each client's file, and as the command with which some clients add it themselves.

use mcp_vary_upstream::command_line::shell_word;
use serde_json::{Map, Value, json};

use super::client::ClientName;
use super::endpoint::Endpoint;
use crate::failure::Failure;

/// The entry in the form of `client`. `is_native` selects the form of opencode 2, where servers are under `mcp.servers`.
///
/// # Errors
///
/// If the client cannot write the value of a header.
pub(crate) fn entry(
    client: ClientName,
    endpoint: &Endpoint,
    is_native: bool,
) -> Result<Value, Failure> {
    let entry = match endpoint {
        Endpoint::Http { url, headers } => {
            let mut entry = match client {
                ClientName::ClaudeCode | ClientName::VsCode => json!({"type": "http", "url": url}),
                ClientName::Opencode => json!({"type": "remote", "url": url}),
                ClientName::GeminiCli => json!({"httpUrl": url}),
                ClientName::Windsurf => json!({"serverUrl": url}),
                // Cursor's documentation has `type` for commands alone: https://cursor.com/docs/mcp.
                ClientName::Cursor | ClientName::Codex | ClientName::ClaudeDesktop => {
                    json!({"url": url})
                }
            };
            add_headers(client, headers, &mut entry)?;
            entry
        }
        Endpoint::Stdio { program, args } => match client {
            ClientName::ClaudeCode | ClientName::VsCode | ClientName::Cursor => {
                json!({"type": "stdio", "command": program, "args": args})
            }
            ClientName::Opencode => {
                let line: Vec<&String> = std::iter::once(program).chain(args).collect();
                json!({"type": "local", "command": line})
            }
            _ => json!({"command": program, "args": args}),
        },
    };
    Ok(match (client, entry) {
        (ClientName::Opencode, Value::Object(mut members)) if !is_native => {
            members.insert("enabled".to_owned(), Value::Bool(true));
            Value::Object(members)
        }
        (_, entry) => entry,
    })
}

fn add_headers(
    client: ClientName,
    headers: &[(String, String)],
    entry: &mut Value,
) -> Result<(), Failure> {
    for (name, value) in headers {
        let (key, name, value) = match client {
            ClientName::Codex => codex_header(name, value)?,
            _ => ("headers", name.as_str(), in_syntax(client, value)),
        };
        if let Some(entry) = entry.as_object_mut() {
            if key == BEARER {
                entry.insert(key.to_owned(), Value::from(value));
                continue;
            }
            let headers = entry
                .entry(key)
                .or_insert_with(|| Value::Object(Map::new()));
            if let Some(headers) = headers.as_object_mut() {
                headers.insert(name.to_owned(), Value::from(value));
            }
        }
    }
    Ok(())
}

/// The key of Codex for a header, its name there and its value.
fn codex_header<'a>(
    name: &'a str,
    value: &str,
) -> Result<(&'static str, &'a str, String), Failure> {
    if !value.contains("${") {
        return Ok(("http_headers", name, value.to_owned()));
    }
    if let Some(variable) = only_variable(value) {
        return Ok(("env_http_headers", name, variable.to_owned()));
    }
    let bearer = value.strip_prefix("Bearer ").and_then(only_variable);
    match bearer {
        Some(variable) if name.eq_ignore_ascii_case("authorization") => {
            Ok((BEARER, name, variable.to_owned()))
        }
        _ => Err(Failure::command(format!(
            "Codex cannot write the value of --header {name}; its headers are a variable alone, '{name}: ${{VARIABLE}}', \
             or 'Authorization: Bearer ${{VARIABLE}}'"
        ))),
    }
}

/// The name of the variable, if `value` is one and nothing else.
fn only_variable(value: &str) -> Option<&str> {
    let name = value.strip_prefix("${")?.strip_suffix('}')?;
    (!name.is_empty() && !name.contains(['$', '{', '}'])).then_some(name)
}

/// `value` with each `${VARIABLE}` as the client writes it.
fn in_syntax(client: ClientName, value: &str) -> String {
    let syntax = client.client().variable.unwrap_or("${NAME}");
    let mut out = String::new();
    let mut remaining = value;
    while let Some((before, after)) = remaining.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        out.push_str(before);
        out.push_str(&syntax.replace("NAME", name));
        remaining = after;
    }
    out.push_str(remaining);
    out
}

/// The command of the client that adds the entry to its file, if it has one.
pub(crate) fn command(
    client: ClientName,
    name: &str,
    endpoint: &Endpoint,
    is_project: bool,
) -> Option<String> {
    let scope = if is_project { "project" } else { "user" };
    let add = |program: &str, options: &[&str]| {
        let start = [program, "mcp", "add"];
        let arguments = start.iter().chain(options);
        arguments.map(|word| (*word).to_owned()).collect::<Vec<_>>()
    };
    let (mut arguments, last_arguments) = match (client, endpoint) {
        (ClientName::ClaudeCode, Endpoint::Http { url, headers }) => {
            let arguments = add("claude", &["--scope", scope, "--transport", "http"]);
            (arguments, with_headers(headers, name, url))
        }
        (ClientName::GeminiCli, Endpoint::Http { url, headers }) => {
            let arguments = add("gemini", &["--scope", scope, "--transport", "http"]);
            (arguments, with_headers(headers, name, url))
        }
        (ClientName::ClaudeCode, Endpoint::Stdio { program, args }) => {
            let options = [
                "--scope",
                scope,
                "--transport",
                "stdio",
                name,
                "--",
                program,
            ];
            (add("claude", &options), args.clone())
        }
        (ClientName::Codex, Endpoint::Http { url, headers })
            if headers.is_empty() && !is_project =>
        {
            (add("codex", &[name, "--url", url]), Vec::new())
        }
        (ClientName::Codex, Endpoint::Stdio { program, args }) if !is_project => {
            (add("codex", &[name, "--", program]), args.clone())
        }
        _ => return None,
    };
    arguments.extend(last_arguments);
    let arguments: Vec<String> = arguments.iter().map(|word| shell_word(word)).collect();
    Some(arguments.join(" "))
}

/// The end of a command with headers: options come before the name.
fn with_headers(headers: &[(String, String)], name: &str, url: &str) -> Vec<String> {
    let options = headers.iter();
    let options =
        options.flat_map(|(name, value)| ["--header".to_owned(), format!("{name}: {value}")]);
    options.chain([name.to_owned(), url.to_owned()]).collect()
}

/// The key of Codex for a token.
const BEARER: &str = "bearer_token_env_var";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn writes(client: ClientName, header: (&str, &str), expected: &Value) {
        let endpoint = Endpoint::Http {
            url: "http://h/mcp".to_owned(),
            headers: vec![(header.0.to_owned(), header.1.to_owned())],
        };
        let mut entry = entry(client, &endpoint, false).unwrap();
        for key in ["url", "httpUrl", "serverUrl", "type", "enabled"] {
            entry.as_object_mut().unwrap().shift_remove(key);
        }
        assert_eq!(entry, *expected);
    }

    #[test]
    fn a_variable_is_written_as_the_client_replaces_it() {
        let bearer = ("Authorization", "Bearer ${T}");
        let headers = |value: &str| json!({"headers": {"Authorization": value}});
        writes(ClientName::ClaudeCode, bearer, &headers("Bearer ${T}"));
        writes(ClientName::Cursor, bearer, &headers("Bearer ${env:T}"));
        writes(ClientName::VsCode, bearer, &headers("Bearer ${env:T}"));
        writes(ClientName::GeminiCli, bearer, &headers("Bearer ${T}"));
        writes(ClientName::Opencode, bearer, &headers("Bearer {env:T}"));
        writes(ClientName::Windsurf, bearer, &headers("Bearer ${env:T}"));
        writes(
            ClientName::Codex,
            bearer,
            &json!({"bearer_token_env_var": "T"}),
        );
        writes(
            ClientName::Codex,
            ("X-Key", "${K}"),
            &json!({"env_http_headers": {"X-Key": "K"}}),
        );
        writes(
            ClientName::Codex,
            ("X-Team", "a"),
            &json!({"http_headers": {"X-Team": "a"}}),
        );
        writes(
            ClientName::Cursor,
            ("X", "a ${B} ${C} ${"),
            &json!({"headers": {"X": "a ${env:B} ${env:C} ${"}}),
        );
    }

    #[test]
    fn a_header_that_codex_cannot_write_is_refused() {
        let refused = codex_header("X-Key", "a ${K}").unwrap_err().to_string();
        assert!(
            refused.contains("its headers are a variable alone, 'X-Key: ${VARIABLE}'"),
            "{refused}"
        );
    }
}
