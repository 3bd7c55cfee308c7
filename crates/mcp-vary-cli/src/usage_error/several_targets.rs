//! Command lines with several targets, where one is expected.

use std::path::Path;

use mcp_vary_config::ImportSource;
use mcp_vary_upstream::command_line::shell_word;

use crate::server_target::args::endpoint;

/// What to write instead of the `targets` of `vary COMMAND`, which takes one.
pub(super) fn advice(command: &str, targets: &[&str]) -> String {
    // A query can have a key.
    let shown = targets.iter().filter_map(|word| word.split('?').next());
    let quoted: Vec<_> = shown.map(|word| format!("`{word}`")).collect();
    let count = match targets.len() {
        2 => "two".to_owned(),
        more => more.to_string(),
    };
    let mistake = format!(
        "`vary {command}` takes one target, and {} are {count}",
        quoted.join(" and ")
    );
    // The addresses of servers are not files that can be imported.
    if targets.iter().any(|word| endpoint(word).is_some()) {
        return format!(
            "{mistake}; leave out all but one, or write all of them under `servers` of a file"
        );
    }
    let configured = targets
        .iter()
        .find_map(|path| Some((path, setting_of_vary(path)?)));
    if let Some((path, setting)) = configured {
        let others: Vec<_> = targets
            .iter()
            .filter(|other| *other != path)
            .map(|other| format!("`{other}`"))
            .collect();
        return format!(
            "{mistake}; copy the servers of {} into `servers` of `{path}`, which has `{setting}`, then: vary {command} {}",
            others.join(" and "),
            shell_word(path)
        );
    }
    let files: Vec<_> = targets.iter().map(|word| shell_word(word)).collect();
    let new = free_name(|name| Path::new(name).exists());
    format!(
        "{mistake}; put the servers of all into a new file: vary config import {} > {new}, then: vary {command} {new}",
        files.join(" ")
    )
}

/// The setting that makes the file at `path` more than a list of servers, so that it cannot be imported.
fn setting_of_vary(path: &str) -> Option<String> {
    let text = mcp_vary_config::text(Path::new(path)).ok()?;
    ImportSource::new(path, &text).setting_of_vary()
}

/// The name of a file that does not exist yet: a shell empties the one that a command is to write before the command reads it.
fn free_name(exists: impl Fn(&str) -> bool) -> String {
    let numbered = (2_u32..).map(|number| format!("all-{number}.yaml"));
    let mut names = std::iter::once("all.yaml".to_owned()).chain(numbered);
    names.find(|name| !exists(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_become_a_new_one() {
        for command in ["serve", "inspect"] {
            assert_eq!(
                advice(command, &["no/a.yaml", "no/.mcp.json"]),
                format!(
                    "`vary {command}` takes one target, and `no/a.yaml` and `no/.mcp.json` are two; put the servers of all into a \
                     new file: vary config import no/a.yaml no/.mcp.json > all.yaml, then: vary {command} all.yaml"
                )
            );
        }
    }

    #[test]
    fn a_file_that_exists_is_not_written() {
        let exists = |name: &str| ["all.yaml", "all-2.yaml"].contains(&name);
        assert_eq!(free_name(|_| false), "all.yaml");
        assert_eq!(free_name(exists), "all-3.yaml");
    }

    #[test]
    fn addresses_are_not_imported() {
        for (first, second) in [("8800", "http://x/mcp"), ("no/a.toml", "http://x/")] {
            assert_eq!(
                advice("serve", &[first, &format!("{second}?key=secret")]),
                format!(
                    "`vary serve` takes one target, and `{first}` and `{second}` are two; leave out all but one, or write all of \
                     them under `servers` of a file"
                )
            );
        }
    }
}
