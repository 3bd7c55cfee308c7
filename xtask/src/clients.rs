//! What each official client can do through Vary: the table of `docs/internals/clients.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use serde::Deserialize;
use serde_json::Value;

use crate::outcome::Outcome;
use crate::workspace::Workspace;

/// The findings about clients.
#[derive(Debug, Default)]
pub(crate) struct Table(BTreeMap<Row, BTreeMap<Column, Cell>>);

/// The topic, the check, and the server.
type Row = (String, String, String);

/// The client and its era.
type Column = (String, String);

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Cell {
    Yes,
    Lacks(String),
    Fails,
}

/// The outcome of a check.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Came {
    /// The check was made.
    To {
        ok: bool,
        #[serde(default)]
        detail: String,
    },
    /// The check cannot be made, with the reason.
    Lacks { lacks: String },
}

impl Table {
    /// Records the outcome of the check `name` with `server`, in a job called `what way client era`.
    pub(crate) fn note(&mut self, job: &str, (name, server): (&str, Option<&str>), came: &Came) {
        let parts: Vec<&str> = job.split(' ').collect();
        let (Some(server), [what, _way, client, era]) = (server, &parts[..]) else {
            return;
        };
        let cell = match came {
            Came::To { ok: true, .. } => Cell::Yes,
            Came::To { ok: false, .. } => Cell::Fails,
            Came::Lacks { lacks } => Cell::Lacks(lacks.clone()),
        };
        let row = [*what, name, server].map(str::to_owned).into();
        let cells = self.0.entry(row).or_default();
        // The worse outcome of the two transports counts.
        let known = cells.entry(((*client).to_owned(), (*era).to_owned()));
        let known = known.or_insert_with(|| cell.clone());
        *known = known.clone().max(cell);
    }

    /// Checks that the document contains all outcomes, and that no client omitted a check.
    pub(crate) fn held_against_the_document(
        &self,
        workspace: &Workspace,
    ) -> Result<Outcome, String> {
        let mut outcome = Outcome::default();
        let text = self.markdown(&versions(workspace)?);
        for ((what, name, server), cells) in &self.0 {
            for (client, era, _) in COLUMNS {
                let column = ((*client).to_owned(), (*era).to_owned());
                if !cells.contains_key(&column) {
                    outcome.fail(format!(
                        "{what}: nothing is said of {client} {era} and `{name}` with {server}"
                    ));
                }
            }
        }
        let found = workspace.scratch("interop/clients.md")?;
        fs::write(&found, &text).map_err(|error| error.to_string())?;
        println!("{text}");
        if workspace.read(DOCUMENT)?.contains(text.trim()) {
            outcome.passed += 1;
        } else {
            outcome.fail(format!(
                "{DOCUMENT} does not hold what was found; it is in {}",
                found.display()
            ));
        }
        Ok(outcome)
    }

    /// One table for each topic, followed by the reasons for checks that cannot be made.
    fn markdown(&self, versions: &BTreeMap<&str, String>) -> String {
        let mut text = String::new();
        let mut reasons: Vec<&str> = Vec::new();
        let mut before = "";
        for ((what, name, server), cells) in &self.0 {
            if what != before {
                text.push_str(&head(what, versions));
                before = what;
            }
            let _ = write!(text, "| {name} | `{server}` |");
            for (client, era, _) in COLUMNS {
                let column = ((*client).to_owned(), (*era).to_owned());
                let cell = match cells.get(&column) {
                    Some(Cell::Yes) => "yes".to_owned(),
                    Some(Cell::Fails) => "FAILS".to_owned(),
                    Some(Cell::Lacks(why)) => {
                        let known = reasons.iter().position(|known| known == why);
                        let number = known.unwrap_or_else(|| {
                            reasons.push(why);
                            reasons.len() - 1
                        });
                        format!("no ({})", number + 1)
                    }
                    None => "?".to_owned(),
                };
                let _ = write!(text, " {cell} |");
            }
            text.push('\n');
        }
        text.push('\n');
        for (at, why) in reasons.iter().enumerate() {
            let _ = writeln!(text, "{}. {why}", at + 1);
        }
        text
    }
}

fn head(what: &str, versions: &BTreeMap<&str, String>) -> String {
    let mut text = format!("\n| {what} | server |");
    for (client, era, name) in COLUMNS {
        let version = versions.get(client).map_or("?", String::as_str);
        let _ = write!(text, " {name} {version}, {era} |");
    }
    text.push_str("\n|---|---|");
    text.push_str(&"---|".repeat(COLUMNS.len()));
    text.push('\n');
    text
}

/// The pinned version of each SDK.
fn versions(workspace: &Workspace) -> Result<BTreeMap<&'static str, String>, String> {
    let package = workspace.read("tests/interop/package.json")?;
    let package: Value = serde_json::from_str(&package).map_err(|error| error.to_string())?;
    let of = |name: &str| {
        let version = package["dependencies"][name].as_str();
        version.unwrap_or("?").to_owned()
    };
    let python = |list: &str, package: &str| -> Result<String, String> {
        let requirements = workspace.read(list)?;
        let mut lines = requirements.lines();
        let version = lines.find_map(|line| line.strip_prefix(package)?.strip_prefix("=="));
        Ok(version.unwrap_or("?").to_owned())
    };
    Ok(BTreeMap::from([
        ("typescript-1", of("@modelcontextprotocol/sdk")),
        ("typescript-2", of("@modelcontextprotocol/client")),
        (
            "python-1",
            python("tests/interop/requirements-1.txt", "mcp")?,
        ),
        ("python", python("tests/interop/requirements.txt", "mcp")?),
        (
            "fastmcp",
            python("tests/interop/requirements-fastmcp.txt", "fastmcp")?,
        ),
    ]))
}

/// The clients, their eras, and their titles in the table.
const COLUMNS: &[(&str, &str, &str)] = &[
    ("typescript-1", "legacy", "TypeScript"),
    ("typescript-2", "legacy", "TypeScript"),
    ("typescript-2", "modern", "TypeScript"),
    ("python-1", "legacy", "Python"),
    ("python", "legacy", "Python"),
    ("python", "modern", "Python"),
    ("fastmcp", "legacy", "FastMCP"),
    ("fastmcp", "modern", "FastMCP"),
];

const DOCUMENT: &str = "docs/internals/clients.md";
