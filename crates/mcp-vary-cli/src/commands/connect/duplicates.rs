//! Servers of a client's file that Vary serves as well: the client would have their tools twice.

use std::collections::BTreeSet;
use std::path::Path;

use mcp_vary_config::{File, ImportSource, SecretFiles, import};
use mcp_vary_gateway::Target;
use serde_json::{Value, json};

use super::client::Client;
use crate::environment::environment;
use crate::failure::Failure;
use crate::file;
use crate::print::{notice, sanitize, sanitize_line};
use crate::similar::nearest;

/// A server of the client's file that is like one that Vary serves.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Duplicate {
    /// Its name in the client's file.
    pub(crate) name: String,
    /// How it is like that one: a text to be read after the name.
    pub(crate) reason: &'static str,
    /// What makes it another server nevertheless; `None` if Vary serves it.
    pub(crate) difference: Option<&'static str>,
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
            notice(&sanitize_line(&line));
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

    /// Those of `entries`, the servers of `client`, that are like one that Vary serves. `name_of_vary` is the name of Vary
    /// among them.
    pub(crate) fn duplicates(
        &self,
        client: &Client,
        entries: &[(String, Value)],
        name_of_vary: &str,
    ) -> Vec<Duplicate> {
        let others = entries.iter().filter(|(name, _)| name != name_of_vary);
        let duplicates = others.filter_map(|(name, entry)| {
            let (reason, difference) = self.likeness(name, target(client, entry).as_ref())?;
            Some(Duplicate {
                name: name.clone(),
                reason,
                difference,
            })
        });
        duplicates.collect()
    }

    /// How what is called `name` and reaches `target` is like a server that Vary serves; `None` if it is like none.
    fn likeness(&self, name: &str, target: Option<&Target>) -> Option<Likeness> {
        let served = self.servers.iter();
        let targets = served.filter_map(|(_, served)| served.as_ref());
        let similar = target.and_then(|target| {
            let all = targets.filter_map(|served| likeness(served, target));
            all.min_by_key(|(_, difference)| difference.is_some())
        });
        let has_name = self.servers.iter().any(|(served, _)| served == name);
        similar.or_else(|| has_name.then_some(("has the same name", None)))
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

/// What an entry of the file of `client` connects to, with its variables; `None` if Vary could not use it.
fn target(client: &Client, entry: &Value) -> Option<Target> {
    let keys = client.container.iter().rev();
    let root = keys.fold(json!({"server": entry}), |inner, key| json!({*key: inner}));
    let text = root.to_string();
    let source = ImportSource::new(client.title, &text).with_format(client.format);
    let imported = import(&[source]).ok()?;
    let secrets = SecretFiles::new(Path::new(""));
    let parsed = file::parse_with_variables(client.title, &imported.yaml, &secrets).ok()?;
    let server = parsed.file.servers.into_iter().next()?;
    Some(server.target)
}

/// How a server is like another one, and what is different nevertheless.
type Likeness = (&'static str, Option<&'static str>);

/// How `target` is like `served`; `None` if it is another command or URL.
fn likeness(served: &Target, target: &Target) -> Option<Likeness> {
    match (served, target) {
        (
            Target::Http { url, headers },
            Target::Http {
                url: named,
                headers: given,
            },
        ) if url.to_string().trim_end_matches('/') == named.to_string().trim_end_matches('/') => {
            let difference = (headers != given).then_some("other `headers`");
            Some(("has the same URL", difference))
        }
        (
            Target::Command {
                program, args, env, ..
            },
            Target::Command {
                program: named,
                args: given,
                env: set,
                ..
            },
        ) if program == named && args == given => {
            let difference = (env != set).then_some("another `env`");
            Some(("starts the same command", difference))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;
    use crate::commands::connect::client::ClientName;

    fn served() -> Served {
        let web = Target::Http {
            url: "http://h/mcp".parse().unwrap(),
            headers: http::HeaderMap::new(),
        };
        let clock = Target::Command {
            program: "t".to_owned(),
            args: Vec::new(),
            env: [("N".to_owned(), "1".to_owned())].into(),
            cwd: None,
        };
        let servers = [
            ("git", Some(Target::command("uvx", ["g".to_owned()]))),
            ("web", Some(web)),
            ("time", None),
            ("clock", Some(clock)),
        ];
        let servers = servers.map(|(name, target)| (name.to_owned(), target));
        Served {
            servers: servers.into(),
            ..Served::default()
        }
    }

    #[test]
    fn a_server_is_the_same_by_command_and_environment_by_url_and_headers_or_by_name() {
        let same = "${VARY_TEST_UNSET:-1}";
        let entries = [
            ("vary", json!({"command": "uvx", "args": ["g"]})),
            ("repo", json!({"command": "uvx", "args": ["g"]})),
            ("time2", json!({"command": "t", "env": {"N": same}})),
            (
                "git",
                json!({"command": "uvx", "args": ["g"], "env": {"N": "20"}}),
            ),
            ("site", json!({"url": "http://h/mcp/"})),
            (
                "web",
                json!({"url": "http://h/mcp", "headers": {"X-Team": "a"}}),
            ),
            ("time", json!({"command": "other"})),
            ("git2", json!({"command": "uvx", "args": ["g", "--ro"]})),
            ("odd", json!(7)),
        ];
        let entries = entries.map(|(name, entry)| (name.to_owned(), entry));
        let cursor = ClientName::from_str("cursor", false).unwrap().client();
        let served = served();
        let found = served.duplicates(cursor, &entries, "vary");
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.name.as_str(), it.reason, it.difference))
            .collect();
        assert_eq!(
            found,
            [
                ("repo", "starts the same command", None),
                ("time2", "starts the same command", None),
                ("git", "starts the same command", Some("another `env`")),
                ("site", "has the same URL", None),
                ("web", "has the same URL", Some("other `headers`")),
                ("time", "has the same name", None)
            ]
        );
    }
}
