//! The layout's invariants: who may depend on whom, who may touch the world, what no file says.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;

use crate::phases::Outcome;
use crate::workspace::Workspace;
use crate::{cargo, process};

/// What one crate may do. ARCHITECTURE.md says why.
struct Rule {
    package: &'static str,
    /// Which of our packages it may use outside its tests.
    uses: &'static [&'static str],
    /// Whether it may name the SDK outside its tests.
    rmcp: bool,
    /// Words that its sources may not hold.
    banned: &'static [&'static str],
}

const RULES: &[Rule] = &[
    Rule {
        package: "mcp-vary-base",
        uses: &[],
        rmcp: false,
        banned: QUIET,
    },
    Rule {
        package: "mcp-vary-json",
        uses: &[],
        rmcp: false,
        banned: PURE,
    },
    Rule {
        package: "mcp-vary",
        uses: &["mcp-vary-json"],
        rmcp: false,
        banned: PURE,
    },
    Rule {
        package: "mcp-vary-view",
        uses: &["mcp-vary"],
        rmcp: false,
        banned: PURE,
    },
    Rule {
        package: "mcp-vary-wire",
        uses: &["mcp-vary", "mcp-vary-base", "mcp-vary-view"],
        rmcp: false,
        banned: PURE,
    },
    Rule {
        package: "mcp-vary-upstream",
        uses: &["mcp-vary", "mcp-vary-base", "mcp-vary-wire"],
        rmcp: false,
        banned: QUIET,
    },
    Rule {
        package: "mcp-vary-results",
        uses: &[
            "mcp-vary",
            "mcp-vary-base",
            "mcp-vary-view",
            "mcp-vary-wire",
        ],
        rmcp: false,
        banned: CALM,
    },
    Rule {
        package: "mcp-vary-catalog",
        uses: &[
            "mcp-vary",
            "mcp-vary-base",
            "mcp-vary-results",
            "mcp-vary-view",
            "mcp-vary-wire",
        ],
        rmcp: false,
        banned: CALM,
    },
    Rule {
        package: "mcp-vary-config",
        uses: &[
            "mcp-vary",
            "mcp-vary-base",
            "mcp-vary-catalog",
            "mcp-vary-gateway",
            "mcp-vary-results",
            "mcp-vary-upstream",
            "mcp-vary-view",
            "mcp-vary-wire",
        ],
        rmcp: false,
        banned: QUIET,
    },
    Rule {
        package: "mcp-vary-rmcp",
        uses: &["mcp-vary"],
        rmcp: true,
        banned: QUIET,
    },
    Rule {
        package: "mcp-vary-gateway",
        uses: &[
            "mcp-vary",
            "mcp-vary-base",
            "mcp-vary-catalog",
            "mcp-vary-results",
            "mcp-vary-upstream",
            "mcp-vary-view",
            "mcp-vary-wire",
        ],
        rmcp: false,
        banned: QUIET,
    },
    Rule {
        package: "mcp-vary-conformance",
        uses: &[],
        rmcp: false,
        banned: QUIET,
    },
    Rule {
        package: "mcp-vary-cli",
        uses: &[
            "mcp-vary",
            "mcp-vary-base",
            "mcp-vary-catalog",
            "mcp-vary-config",
            "mcp-vary-conformance",
            "mcp-vary-gateway",
            "mcp-vary-upstream",
            "mcp-vary-view",
            "mcp-vary-wire",
            "weather",
        ],
        rmcp: false,
        banned: &[],
    },
    Rule {
        package: "weather",
        uses: &["mcp-vary", "mcp-vary-rmcp"],
        rmcp: true,
        banned: &[],
    },
    Rule {
        package: "library-examples",
        uses: &["mcp-vary", "mcp-vary-rmcp"],
        rmcp: true,
        banned: &[],
    },
    Rule {
        package: "faults",
        uses: &[],
        rmcp: false,
        banned: &[],
    },
    Rule {
        package: "fixture-server",
        uses: &[],
        rmcp: true,
        banned: &[],
    },
    Rule {
        package: "replay-server",
        uses: &[],
        rmcp: false,
        banned: &[],
    },
    Rule {
        package: "vary-bench",
        uses: &["mcp-vary", "mcp-vary-rmcp"],
        rmcp: true,
        banned: &[],
    },
    Rule {
        package: "xtask",
        uses: &[
            "faults",
            "mcp-vary",
            "mcp-vary-config",
            "mcp-vary-gateway",
            "mcp-vary-view",
        ],
        rmcp: false,
        banned: &[],
    },
];

/// A library leaves the terminal, the process and the environment to the command line.
const QUIET: &[&str] = &[
    "println!(",
    "eprintln!(",
    "print!(",
    "process::exit",
    "std::env",
    "env::var",
];

/// The protocol is values in, values out.
const PURE: &[&str] = &[
    "println!(",
    "eprintln!(",
    "print!(",
    "process::exit",
    "std::env",
    "env::var",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant",
];

/// Values in, values out, with deadlines as arguments or inside of a computation that takes long.
const CALM: &[&str] = &[
    "println!(",
    "eprintln!(",
    "print!(",
    "process::exit",
    "std::env",
    "env::var",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "tokio::",
    "SystemTime",
];

/// What the protocol crate must not reach, however indirectly.
const IMPURE: &[&str] = &["getrandom", "http", "hyper", "rmcp", "tokio"];

/// Starts of paths that exist on one machine only.
const PATHS: &[&str] = &[
    "/home/",
    "/root/",
    "/Users/",
    "/work/",
    "/shared",
    "../shared",
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

/// All invariants of the layout, over the workspace as it is.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    Outcome::of_all(&[
        ("dependencies", arrows(workspace)),
        ("the protocol crate", pure(workspace)),
        ("sources", worldly(workspace)),
        ("paths", paths(workspace)),
    ])
}

/// The packages use one another, and the SDK, only as their rules say.
fn arrows(workspace: &Workspace) -> Result<(), String> {
    let mut metadata = cargo::cargo(workspace);
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    let text = process::output(&mut metadata, Duration::from_secs(120))?;
    let metadata: Metadata = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let broken: Vec<String> = metadata.packages.iter().flat_map(broken_arrows).collect();
    none(&broken)
}

/// What `package` uses against its rule.
fn broken_arrows(package: &Package) -> Vec<String> {
    let name = &package.name;
    let Some(rule) = RULES.iter().find(|rule| rule.package == name) else {
        return vec![format!(
            "`{name}` has no rule; give it one in xtask/src/layout.rs"
        )];
    };
    let ours: BTreeSet<&str> = RULES.iter().map(|rule| rule.package).collect();
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind.as_deref() != Some("dev"))
        .map(|dependency| dependency.name.as_str())
        .filter(|used| {
            let forbidden_own = ours.contains(used) && !rule.uses.contains(used);
            let forbidden_sdk = *used == "rmcp" && !rule.rmcp;
            forbidden_own || forbidden_sdk
        })
        .map(|used| format!("`{name}` must not use `{used}`"))
        .collect()
}

/// The protocol crate reaches no runtime, network, randomness or SDK.
fn pure(workspace: &Workspace) -> Result<(), String> {
    let mut tree = cargo::cargo(workspace);
    tree.args(["tree", "--package", "mcp-vary", "--edges", "normal"]);
    tree.args(["--prefix", "none", "--format", "{lib}"]);
    let reached = process::output(&mut tree, Duration::from_secs(300))?;
    let reached: BTreeSet<&str> = reached.lines().map(str::trim).collect();
    let broken: Vec<String> = IMPURE
        .iter()
        .filter(|name| reached.contains(*name))
        .map(|name| format!("`{name}`, see `cargo tree -p mcp-vary -i {name}`"))
        .collect();
    none(&broken)
}

/// Only those crates print, exit, read the environment or the clock that may.
fn worldly(workspace: &Workspace) -> Result<(), String> {
    let mut broken = Vec::new();
    for rule in RULES.iter().filter(|rule| !rule.banned.is_empty()) {
        let sources = format!("crates/{}/src", rule.package);
        if !workspace.path(&sources).exists() {
            continue;
        }
        for file in files(workspace, &sources)? {
            broken.extend(banned_lines(&file, &workspace.read(&file)?, rule.banned));
        }
    }
    none(&broken)
}

/// The lines of code, but for tests and comments, that hold a banned word.
fn banned_lines(file: &str, text: &str, banned: &[&str]) -> Vec<String> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .flat_map(|(at, line)| {
            banned
                .iter()
                .filter(|word| holds(line, word))
                .map(move |word| format!("{file}:{}: `{word}` belongs in the cli", at + 1))
        })
        .collect()
}

/// Whether `word` stands in `line`, and not as the end of a longer word.
fn holds(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    })
}

/// No file names a path of one machine.
fn paths(workspace: &Workspace) -> Result<(), String> {
    let mut broken = Vec::new();
    for file in files(workspace, ".")? {
        // This file has to name what it looks for; what is not text has no paths to read.
        if file == "xtask/src/layout.rs" {
            continue;
        }
        let Ok(text) = workspace.read(&file) else {
            continue;
        };
        broken.extend(machine_paths(&file, &text));
    }
    none(&broken)
}

fn machine_paths(file: &str, text: &str) -> Vec<String> {
    text.lines()
        .enumerate()
        .flat_map(|(at, line)| {
            PATHS
                .iter()
                .filter(move |path| begins_a_path(line, path))
                .map(move |path| format!("{file}:{}: `{path}` is a path of one machine", at + 1))
        })
        .collect()
}

/// Whether `path` stands in `line` as the beginning of a path, not in the middle of one.
fn begins_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + path.len()..].chars().next();
        let inside = before
            .is_some_and(|letter| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_'));
        let longer_word = !path.ends_with('/') && after.is_some_and(char::is_alphanumeric);
        !inside && !longer_word
    })
}

/// The files below `directory` that are committed or about to be.
pub(crate) fn files(workspace: &Workspace, directory: &str) -> Result<Vec<String>, String> {
    let mut git = process::command("git");
    git.current_dir(workspace.path(""));
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    git.args(["--deduplicate", "--", directory]);
    let list = process::output(&mut git, Duration::from_secs(60))?;
    Ok(list
        .lines()
        .filter(|file| workspace.path(file).is_file())
        .map(str::to_owned)
        .collect())
}

/// Nothing broken, or all of it, one per line.
pub(crate) fn none(broken: &[String]) -> Result<(), String> {
    if broken.is_empty() {
        Ok(())
    } else {
        Err(format!("\n    {}", broken.join("\n    ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(name: &str, used: &str, kind: Option<&str>) -> Vec<String> {
        broken_arrows(&Package {
            name: name.to_owned(),
            dependencies: vec![Dependency {
                name: used.to_owned(),
                kind: kind.map(str::to_owned),
            }],
        })
    }

    #[test]
    fn this_workspace_keeps_its_layout() {
        let outcome = phase(&Workspace::here());
        assert_eq!(outcome.failed, 0, "{}", outcome.report);
    }

    #[test]
    fn the_protocol_uses_nobody() {
        let broken = ["`mcp-vary` must not use `mcp-vary-gateway`"];
        assert_eq!(uses("mcp-vary", "mcp-vary-gateway", None), broken);
    }

    #[test]
    fn tests_may_use_the_sdk() {
        assert!(uses("mcp-vary-gateway", "rmcp", Some("dev")).is_empty());
        assert_eq!(uses("mcp-vary-gateway", "rmcp", None).len(), 1);
    }

    #[test]
    fn a_new_package_needs_a_rule() {
        assert!(uses("newcomer", "serde", None)[0].contains("has no rule"));
    }

    #[test]
    fn tests_and_comments_may_say_what_code_may_not() {
        let text = "/// like println!(1)\nlet a = std::env::args();\n#[cfg(test)]\nuse std::env;\n";
        let broken = banned_lines("lib.rs", text, &["println!(", "std::env"]);
        assert_eq!(broken, ["lib.rs:2: `std::env` belongs in the cli"]);
    }

    #[test]
    fn a_word_inside_another_is_not_that_word() {
        assert!(holds("print!(1)", "print!("));
        assert!(!holds("eprint!(1)", "print!("));
    }

    #[test]
    fn urls_and_relative_paths_are_no_paths_of_a_machine() {
        assert!(machine_paths("a", "see https://example.com/home/x and docs/work/y").is_empty());
        assert!(machine_paths("a", "the /sharedness of it").is_empty());
        assert_eq!(machine_paths("a", "open \"/home/me/x\"").len(), 1);
        assert_eq!(machine_paths("a", "read ../shared/x").len(), 1);
        assert_eq!(machine_paths("a", "read /shared.").len(), 1);
    }
}
