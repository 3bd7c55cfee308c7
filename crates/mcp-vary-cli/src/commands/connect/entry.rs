//! Vary as an entry of each client's file, and as the command with which some clients add it themselves.

use mcp_vary_config::Format;
use mcp_vary_upstream::command_line::shell_word;
use serde_json::{Value, json};

use super::client::{BEARER, Client};
use super::endpoint::Endpoint;
use crate::failure::Failure;

/// The entry in the form of `client`. `is_native` selects the form of opencode 2, where servers are under `mcp.servers`.
///
/// # Errors
///
/// If the client cannot write the value of a header.
pub(crate) fn entry(
    client: &Client,
    endpoint: &Endpoint,
    is_native: bool,
) -> Result<Value, Failure> {
    let (url_type, command_type) = client.types;
    let entry_type = match endpoint {
        Endpoint::Http { .. } => url_type,
        Endpoint::Stdio { .. } => command_type,
    };
    let mut entry = entry_type.map_or_else(|| json!({}), |name| json!({"type": name}));
    let is_opencode = client.format == Format::Opencode;
    match endpoint {
        Endpoint::Http { url, headers } => {
            entry[client.url.unwrap_or("url")] = json!(url);
            add_headers(client, headers, &mut entry)?;
        }
        Endpoint::Stdio { program, args } if is_opencode => {
            entry["command"] = std::iter::once(program).chain(args).cloned().collect();
        }
        Endpoint::Stdio { program, args } => {
            entry["command"] = json!(program);
            entry["args"] = json!(args);
        }
    }
    if is_opencode && !is_native {
        entry["enabled"] = json!(true);
    }
    Ok(entry)
}

/// Adds `headers` to `entry`, an object.
fn add_headers(
    client: &Client,
    headers: &[(String, String)],
    entry: &mut Value,
) -> Result<(), Failure> {
    for (name, value) in headers {
        let (key, name, value) = client.header(name, value)?;
        match key {
            BEARER => entry[key] = json!(value),
            _ => entry[key][name] = json!(value),
        }
    }
    Ok(())
}

/// The command of the client that adds the entry to its file, if it has one.
pub(crate) fn command(
    client: &Client,
    name: &str,
    endpoint: &Endpoint,
    is_project: bool,
) -> Option<String> {
    let (last, options, target): (&str, Vec<String>, Vec<String>) = match endpoint {
        Endpoint::Http { url, headers } => {
            let options = headers
                .iter()
                .flat_map(|(key, value)| ["--header".to_owned(), format!("{key}: {value}")]);
            ("URL", options.collect(), vec![url.clone()])
        }
        Endpoint::Stdio { program, args } => {
            let line = std::iter::once(program).chain(args);
            ("COMMAND", Vec::new(), line.cloned().collect())
        }
    };
    let mut templates = client.add_commands.iter();
    let template = templates.find(|template| template.ends_with(last))?;
    let lacks = |word: &str| !template.contains(word);
    if is_project && lacks("SCOPE") || !options.is_empty() && lacks("HEADERS") {
        return None;
    }
    let scope = if is_project { "project" } else { "user" };
    let arguments = template.split(' ').flat_map(|word| match word {
        "SCOPE" => vec![scope.to_owned()],
        "HEADERS" => options.clone(),
        "NAME" => vec![name.to_owned()],
        "URL" | "COMMAND" => target.clone(),
        word => vec![word.to_owned()],
    });
    let quoted: Vec<String> = arguments.map(|word| shell_word(&word)).collect();
    Some(quoted.join(" "))
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;
    use crate::commands::connect::client::ClientName;

    #[track_caller]
    fn writes(client: &str, header: (&str, &str), expected: &Value) {
        let endpoint = Endpoint::Http {
            url: "http://h/mcp".to_owned(),
            headers: vec![(header.0.to_owned(), header.1.to_owned())],
        };
        let client = ClientName::from_str(client, false).unwrap().client();
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
        writes("claude-code", bearer, &headers("Bearer ${T}"));
        writes("cursor", bearer, &headers("Bearer ${env:T}"));
        writes("vscode", bearer, &headers("Bearer ${env:T}"));
        writes("gemini-cli", bearer, &headers("Bearer ${T}"));
        writes("opencode", bearer, &headers("Bearer {env:T}"));
        writes("windsurf", bearer, &headers("Bearer ${env:T}"));
        writes("codex", bearer, &json!({"bearer_token_env_var": "T"}));
        writes(
            "codex",
            ("X-Key", "${K}"),
            &json!({"env_http_headers": {"X-Key": "K"}}),
        );
        writes(
            "codex",
            ("X-Team", "a"),
            &json!({"http_headers": {"X-Team": "a"}}),
        );
        writes(
            "cursor",
            ("X", "a ${B} ${C} ${"),
            &json!({"headers": {"X": "a ${env:B} ${env:C} ${"}}),
        );
    }
}
