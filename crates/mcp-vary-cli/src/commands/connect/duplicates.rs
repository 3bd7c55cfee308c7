//! Servers of a client's file that Vary serves as well: the client would have their tools twice.

use std::collections::BTreeSet;
use std::path::Path;

use mcp_vary_config::{File, SecretFiles};
use mcp_vary_gateway::Target;
use serde_json::Value;

use super::endpoint::Endpoint;
use crate::environment::environment;
use crate::failure::Failure;
use crate::file;
use crate::print::{notice, sanitize};
use crate::similar::nearest;

/// A server of the client's file that Vary serves.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Duplicate {
    /// Its name in the client's file.
    pub(crate) name: String,
    /// Why it is the same: a text to be read after the name.
    pub(crate) reason: String,
}

/// The servers that Vary serves.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// Their names, and what each is; `None` if that is not known.
    servers: Vec<(String, Option<Target>)>,
    /// The variables of the environment that their configuration uses.
    pub(crate) variables: BTreeSet<String>,
    /// Those that it needs and that are not set here, each with its place.
    pub(crate) missing_variables: Vec<String>,
}

/// The name for a configuration that does not exist yet: a command that is printed must not overwrite another.
pub(super) fn new_file() -> &'static str {
    if Path::new("vary.yaml").exists() {
        "vary-new.yaml"
    } else {
        "vary.yaml"
    }
}

impl Served {
    /// Those of a configuration, of which the client is to get `variant`.
    ///
    /// # Errors
    ///
    /// If it cannot be read, does not have the variant, or is `client_file`: the client would start Vary for the file that
    /// names Vary.
    pub(crate) fn of_file(
        path: &Path,
        client_file: &Path,
        variant: Option<&str>,
    ) -> Result<Self, Failure> {
        let same = std::fs::canonicalize(path).ok();
        if same.is_some() && same == std::fs::canonicalize(client_file).ok() {
            let shown = path.display();
            let new = new_file();
            return Err(Failure::command(format!(
                "{shown} is the client's own file, so Vary would serve itself; write its servers to a configuration \
                 first: vary config import {shown} > {new}"
            )));
        }
        let text = file::text(path)?;
        let name = path.display().to_string();
        let secrets = SecretFiles::beside(path);
        let parsed = file::parse_with_variables(&name, &text, &secrets);
        let read = parsed.map_err(|diagnostics| Failure::command(diagnostics.to_string()))?;
        if let Some(id) = variant {
            check_variant(&name, &read.file, id)?;
        }
        for line in file::left_out(&name, &read.file) {
            notice(&sanitize(&line));
        }
        let variables = read.missing.iter();
        let places = variables.map(|(variable, at)| format!("`{variable}` ({name}:{at})"));
        let missing = places.collect();
        Ok(Self::of_parsed(read.file, read.used, missing))
    }

    fn of_parsed(file: File, variables: BTreeSet<String>, missing_variables: Vec<String>) -> Self {
        let unusable = file
            .left_out
            .iter()
            .map(|server| (server.name.clone(), None));
        let left_out: Vec<_> = unusable.collect();
        let all = file.servers.into_iter();
        let servers = all.map(|server| (server.name, Some(server.target)));
        Self {
            servers: servers.chain(left_out).collect(),
            variables,
            missing_variables,
        }
    }

    /// The one that a command line starts.
    pub(crate) fn of_command(command: &[String]) -> Self {
        let Some((program, args)) = command.split_first() else {
            return Self::default();
        };
        let target = Target::command(program, args.iter().cloned());
        // Its name is made up, so it proves nothing.
        Self {
            servers: vec![(String::new(), Some(target))],
            ..Self::default()
        }
    }

    /// Whether `names` are some of the servers, and not none.
    pub(crate) fn has_all(&self, names: &[String]) -> bool {
        let is_served = |name: &String| self.servers.iter().any(|(served, _)| served == name);
        !names.is_empty() && names.iter().all(is_served)
    }

    /// Those of `entries`, the client's servers, that Vary serves. `name_of_vary` is the name of Vary among them.
    pub(crate) fn duplicates(
        &self,
        entries: &[(String, Value)],
        name_of_vary: &str,
    ) -> Vec<Duplicate> {
        let others = entries.iter().filter(|(name, _)| name != name_of_vary);
        let duplicates = others.filter_map(|(name, entry)| {
            let reached = endpoint(entry);
            let same = self
                .servers
                .iter()
                .find(|(_, target)| is_same(target.as_ref(), reached.as_ref()));
            let reason = match same {
                Some(_) if matches!(reached, Some(Endpoint::Http { .. })) => {
                    "has the same URL".to_owned()
                }
                Some(_) => "starts the same command".to_owned(),
                None if self.servers.iter().any(|(served, _)| served == name) => {
                    "has the same name".to_owned()
                }
                None => return None,
            };
            Some(Duplicate {
                name: name.clone(),
                reason,
            })
        });
        duplicates.collect()
    }
}

/// Refuses a variant that the configuration `name` does not have.
fn check_variant(name: &str, file: &File, id: &str) -> Result<(), Failure> {
    let config = file.clone().into_config(environment()?);
    let known: Vec<String> = config.variant_set.ids().map(|id| id.to_string()).collect();
    let Err(why) = config.with_default_variant(id) else {
        return Ok(());
    };
    let fix = match nearest(id, known.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => why
            .split_once("; ")
            .map_or(&*why, |(_, fix)| fix)
            .to_owned(),
    };
    Err(Failure::command(sanitize(&format!(
        "{name} has no variant `{id}`; {fix}"
    ))))
}

/// What an entry of a client's file connects to.
fn endpoint(entry: &Value) -> Option<Endpoint> {
    let url = ["url", "httpUrl", "serverUrl"]
        .iter()
        .find_map(|key| entry.get(key)?.as_str());
    if let Some(url) = url {
        return Some(Endpoint::Http {
            url: url.to_owned(),
            headers: Vec::new(),
        });
    }
    let texts = |value: &Value| -> Option<Vec<String>> {
        let items = value.as_array()?.iter();
        items.map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let mut command = match entry.get("command")? {
        Value::String(program) => vec![program.clone()],
        command => texts(command)?,
    };
    command.extend(entry.get("args").and_then(texts).unwrap_or_default());
    let (program, args) = command.split_first()?;
    Some(Endpoint::Stdio {
        program: program.clone(),
        args: args.to_vec(),
    })
}

fn is_same(served: Option<&Target>, endpoint: Option<&Endpoint>) -> bool {
    match (served, endpoint) {
        (Some(Target::Http { url, .. }), Some(Endpoint::Http { url: named, .. })) => {
            url.to_string().trim_end_matches('/') == named.trim_end_matches('/')
        }
        (
            Some(Target::Command { program, args, .. }),
            Some(Endpoint::Stdio {
                program: named,
                args: given,
            }),
        ) => program == named && args == given,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_is_the_same_by_command_url_or_name() {
        let served = Served {
            servers: vec![
                (
                    "git".to_owned(),
                    Some(Target::command("uvx", ["g".to_owned()])),
                ),
                (
                    "web".to_owned(),
                    Some(Target::Http {
                        url: "http://h/mcp".parse().unwrap(),
                        headers: http::HeaderMap::new(),
                    }),
                ),
                ("time".to_owned(), None),
            ],
            ..Served::default()
        };
        let entries = [
            ("vary", json!({"command": "uvx", "args": ["g"]})),
            ("repo", json!({"command": ["uvx", "g"]})),
            ("site", json!({"serverUrl": "http://h/mcp/"})),
            ("time", json!({"command": "t"})),
            ("git2", json!({"command": "uvx", "args": ["g", "--ro"]})),
            ("odd", json!(7)),
        ];
        let entries = entries.map(|(name, entry)| (name.to_owned(), entry));
        let found = served.duplicates(&entries, "vary");
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.name.as_str(), it.reason.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("repo", "starts the same command"),
                ("site", "has the same URL"),
                ("time", "has the same name")
            ]
        );
    }
}
