//! Whatever a home has, it is again what it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use mcp_vary_config::{ClientText, SecretFiles, Syntax};
use mcp_vary_testkit::generate::random::Random;
use serde_json::{Value, json};

use super::home::{Home, Reached};
use super::journal::Journal;
use super::operation::Operation;
use crate::commands::connect::client::{Client, ClientName};
use crate::commands::connect::places::{System, user_file};
use crate::file;

/// The directory of a user, which is removed at the end.
struct UserHome(PathBuf);

/// The files below a directory: what links lead to, or else the mode and the content.
type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

impl Drop for UserHome {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl UserHome {
    fn generate(name: &str, seed: usize) -> (Self, Random) {
        let directory = format!("vary-up-{name}-{seed}-{}", std::process::id());
        let home = Self(std::env::temp_dir().join(directory));
        let _ = fs::remove_dir_all(&home.0);
        fs::create_dir_all(&home.0).unwrap();
        let mut random = Random(seed as u64);
        for client in clients() {
            if random.chance(75) {
                home.add_client(client, &mut random);
            }
        }
        (home, random)
    }

    /// A home without files of clients.
    fn empty(name: &str) -> Self {
        let (home, _) = Self::generate(name, 0);
        for path in home.tree().into_keys() {
            fs::remove_file(path).unwrap();
        }
        home
    }

    /// Writes a file of `client` with servers and what its user may have there.
    fn add_client(&self, client: &Client, random: &mut Random) {
        let path = self.file(client);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = match client.syntax {
            Syntax::Toml => toml(random),
            _ => json_text(client, random),
        };
        if cfg!(unix) && random.chance(20) {
            let real = self.0.join("dotfiles").join(client.name);
            fs::create_dir_all(real.parent().unwrap()).unwrap();
            fs::write(&real, text).unwrap();
            link(&real, &path);
        } else {
            fs::write(&path, text).unwrap();
        }
        set_mode(&path, *random.pick(&[0o600, 0o644, 0o640, 0o444]));
    }

    fn variable(&self, name: &str) -> Option<String> {
        let is_home = matches!(name, "HOME" | "USERPROFILE" | "APPDATA");
        is_home.then(|| self.0.display().to_string())
    }

    fn file(&self, client: &Client) -> PathBuf {
        user_file(client, System::current(), &|name| self.variable(name)).unwrap()
    }

    fn text(&self, client: &Client) -> Option<String> {
        fs::read_to_string(self.file(client)).ok()
    }

    /// Everything but what Vary has of its own.
    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        add_to(&mut tree, &self.0);
        tree.retain(|path, _| !path.starts_with(self.state()));
        tree
    }

    fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    fn journal(&self) -> Journal {
        Journal::read(&self.state()).unwrap()
    }

    /// Begins `vary up` without the service: the journal is written, and no file yet.
    fn plan(&self) -> (Journal, Vec<Operation>) {
        let mut journal = self.journal();
        let home = Home::find(&|name| self.variable(name), &journal);
        let imported = home.import(&|_, name| name != "dead").unwrap();
        if imported.files.iter().any(|file| !file.servers.is_empty()) {
            let files = SecretFiles::new(&self.0);
            file::parse("vary.yaml", &imported.yaml, &[], &files, None).unwrap();
        }
        let mut operations = Vec::new();
        for (found, file) in home.clients.iter().zip(&imported.files) {
            let reached = Reached {
                address: "http://127.0.0.1:8800/mcp",
                variant: file.variant.as_deref(),
                program: "/bin/vary",
            };
            let planned = found.operations(&reached, &file.servers, &mut journal);
            operations.extend(planned.unwrap());
        }
        journal.servers = home.named_in(&imported);
        for of_client in operations.chunks(3) {
            journal.plan(of_client);
        }
        journal.is_unfinished = true;
        journal.store(&self.state()).unwrap();
        (journal, operations)
    }

    /// `vary up` to its end.
    fn up(&self) -> Vec<Operation> {
        let (mut journal, operations) = self.plan();
        for of_client in operations.chunks(3) {
            journal.apply(of_client).unwrap();
        }
        journal.is_unfinished = false;
        journal.store(&self.state()).unwrap();
        operations
    }

    /// `vary down` without the service.
    fn down(&self) {
        assert!(self.take_back());
        let journal = self.journal();
        assert!(journal.operations.is_empty());
        journal.given_back().store(&self.state()).unwrap();
    }

    /// Gives back the clients' files, and returns whether all of them are.
    fn take_back(&self) -> bool {
        let mut journal = self.journal();
        let is_whole = journal.take_back(true, &|_| {});
        journal.store(&self.state()).unwrap();
        is_whole
    }
}

fn clients() -> impl Iterator<Item = &'static Client> {
    ClientName::value_variants()
        .iter()
        .map(|name| name.client())
}

#[cfg(unix)]
fn link(real: &Path, path: &Path) {
    std::os::unix::fs::symlink(real, path).unwrap();
}

#[cfg(not(unix))]
fn link(_real: &Path, _path: &Path) {}

fn set_mode(path: &Path, mode: u32) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
}

fn mode(path: &Path) -> u32 {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(path).unwrap().permissions().mode()
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        0
    }
}

fn add_to(tree: &mut Tree, directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if let Ok(real) = fs::read_link(&path) {
            let target = real.display().to_string().into_bytes();
            tree.insert(path, (0, target));
        } else if path.is_dir() {
            add_to(tree, &path);
        } else {
            let content = fs::read(&path).unwrap();
            tree.insert(path.clone(), (mode(&path), content));
        }
    }
}

/// Servers of which each home has some.
const NAMES: [&str; 5] = ["git", "files", "two words", "dead", "größe"];

fn servers(random: &mut Random) -> Vec<&'static str> {
    let mut names = NAMES.to_vec();
    names.retain(|_| random.chance(50));
    if names.is_empty() {
        names.push("git");
    }
    names
}

/// The file of a client in JSON, with comments and white space as people write them.
fn json_text(client: &Client, random: &mut Random) -> String {
    let end = *random.pick(&["\n", "\r\n"]);
    let indent = *random.pick(&["  ", "\t", "    ", ""]);
    let space = *random.pick(&["", " ", "\t"]);
    let mut comment = |text: &str| {
        if random.chance(30) {
            format!("{indent}// {text}{end}")
        } else {
            String::new()
        }
    };
    let (first, second, third) = (comment("mine"), comment("servers"), comment("last"));
    let entries: Vec<String> = servers(random)
        .iter()
        .map(|name| {
            let entry = match client.name {
                "opencode" => json!({"type": "local", "command": [name, "--run"]}),
                _ => json!({"command": name, "args": ["x"], "env": {"TOKEN": format!("s3cret-{name}")}}),
            };
            let text = if random.chance(50) {
                entry.to_string()
            } else {
                format!("{entry:#}").replace('\n', end)
            };
            format!("{indent}{indent}\"{name}\":{space}{text}")
        })
        .collect();
    let trailing = if random.chance(30) { "," } else { "" };
    let list = entries.join(&format!(",{end}"));
    let container = client.container.concat();
    let start = if random.chance(20) { "\u{feff}" } else { "" };
    let last = if random.chance(80) { end } else { "" };
    format!(
        "{start}{{{end}{first}{indent}\"n\":{space}1.10,{end}{second}{indent}\"{container}\":{space}{{{end}\
         {list}{trailing}{end}{indent}}}{trailing}{end}{third}}}{last}"
    )
}

fn toml(random: &mut Random) -> String {
    let end = *random.pick(&["\n", "\r\n"]);
    let mut text = format!("# mine{end}model = \"x\" # fast{end}");
    for name in servers(random) {
        let key = format!("[mcp_servers.\"{name}\"]");
        text.push_str(&format!(
            "{end}{key}{end}command = '{name}'{end}args = [\"x\"] # 1{end}"
        ));
        if random.chance(50) {
            let env = key.replace(']', ".env]");
            text.push_str(&format!("{env}{end}TOKEN = 's3cret-{name}'{end}"));
        }
    }
    text
}

/// The servers that `text` has, with Vary.
fn entries(client: &Client, text: &str) -> Option<Vec<(String, Value)>> {
    let container = client.container_in(text).ok()?;
    let keys: Vec<&str> = container.iter().map(String::as_str).collect();
    ClientText::new(client.syntax, text).entries(&keys).ok()
}

fn each_home_is_again_what_it_was(cases: usize) {
    for seed in 0..cases {
        let (home, _) = UserHome::generate("same", seed);
        let before = home.tree();
        let operations = home.up();
        assert_eq!(operations.is_empty(), home.tree() == before, "{seed}");
        for client in clients().filter(|client| home.journal().has_client(client.name)) {
            let now = entries(client, &home.text(client).unwrap()).unwrap();
            let names: Vec<_> = now.iter().map(|(name, _)| name.as_str()).collect();
            assert!(
                names == ["vary"] || names == ["dead", "vary"],
                "{seed}: {names:?}"
            );
        }
        assert_eq!(
            home.plan().1.len(),
            0,
            "{seed}: a second run changes nothing"
        );
        home.down();
        assert_eq!(home.tree(), before, "{seed}");
    }
}

fn what_others_change_meanwhile_stays(cases: usize) {
    for seed in 0..cases {
        let (home, mut random) = UserHome::generate("changed", seed);
        let before: Vec<_> = clients()
            .map(|client| (client, home.text(client)))
            .collect();
        home.up();
        let mut theirs = Vec::new();
        for (client, _) in &before {
            if home.journal().has_client(client.name) {
                theirs.push((client.name, change(&home, client, &mut random)));
            }
        }
        if random.chance(30) {
            home.up();
        }
        let is_broken = theirs.iter().any(|(_, change)| *change == Change::Breaks);
        assert_eq!(home.take_back(), !is_broken, "{seed}");
        for (client, text) in before {
            let Some((_, change)) = theirs.iter().find(|(name, _)| *name == client.name) else {
                assert_eq!(home.text(client), text, "{seed}: {}", client.name);
                continue;
            };
            let path = home.file(client).display().to_string();
            let stored = fs::read_to_string(format!("{path}.vary-before")).ok();
            let now = home.text(client).and_then(|text| entries(client, &text));
            let text = text.unwrap();
            let had = entries(client, &text).unwrap();
            let has_all = now
                .as_ref()
                .is_some_and(|now| had.iter().all(|entry| now.contains(entry)));
            assert!(
                has_all || stored.is_some(),
                "{seed}: {} {change:?}",
                client.name
            );
            if has_all {
                let mut order = names(now.as_deref().unwrap_or_default());
                order.retain(|name| !matches!(&**name, "theirs" | "vary"));
                assert_eq!(order, names(&had), "{seed}: {} {change:?}", client.name);
            }
            if *change == Change::AddsServer {
                let mut all = now.iter().flatten();
                assert!(
                    all.any(|(name, _)| name == "theirs"),
                    "{seed}: {}",
                    client.name
                );
            }
            if *change == Change::Breaks {
                assert!(home.journal().has_client(client.name), "{seed}");
                fs::copy(format!("{path}.vary-before"), &path).unwrap();
            }
        }
        home.down();
        assert_leaves_nothing(&home, seed);
    }
}

#[track_caller]
fn assert_leaves_nothing(home: &UserHome, seed: usize) {
    for path in clients().map(|client| home.file(client).display().to_string()) {
        for ending in [".vary-backup", ".vary-record.json"] {
            assert!(
                !Path::new(&format!("{path}{ending}")).exists(),
                "{seed}: {path}"
            );
        }
    }
}

fn names(entries: &[(String, Value)]) -> Vec<String> {
    entries.iter().map(|(name, _)| name.clone()).collect()
}

/// What others do to a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Change {
    Nothing,
    AddsServer,
    AddsLine,
    ChangesVary,
    Breaks,
    Deletes,
}

fn change(home: &UserHome, client: &Client, random: &mut Random) -> Change {
    let path = home.file(client);
    let text = home.text(client).unwrap();
    let file = ClientText::new(client.syntax, &text);
    let keys = client.container;
    let all = [
        Change::Nothing,
        Change::AddsServer,
        Change::AddsServer,
        Change::AddsLine,
        Change::ChangesVary,
        Change::Breaks,
        Change::Deletes,
    ];
    let change = *random.pick(&all);
    let new = match change {
        Change::Nothing => text,
        Change::AddsServer => {
            let entry = match client.name {
                "opencode" => json!({"type": "local", "command": ["theirs"]}),
                _ => json!({"command": "theirs"}),
            };
            file.insert(keys, "theirs", &entry).unwrap()
        }
        Change::AddsLine => text + "\n",
        Change::ChangesVary => text.replace("8800", "9900"),
        Change::Breaks => text + "{[",
        Change::Deletes => {
            fs::remove_file(&path).unwrap();
            return change;
        }
    };
    fs::write(&path, new).unwrap();
    change
}

/// A run of `up` or `down` that ends after any file leaves what the next `down` takes back.
fn every_end_is_taken_back(cases: usize) {
    for seed in 0..cases {
        let (home, _) = UserHome::generate("ended", seed);
        let before = home.tree();
        let (_, planned) = home.plan();
        home.down();
        for end in 0..=planned.len() {
            let (_, operations) = home.plan();
            for operation in &operations[..end] {
                operation.apply().unwrap();
            }
            if let Some(next) = operations.get(end) {
                leave_draft(&next.path);
            }
            home.down();
            assert_eq!(home.tree(), before, "{seed}: up ended after {end}");
        }
        for end in 0..=planned.len() {
            let operations = home.up();
            let process = [std::process::id()].into_iter().collect();
            for operation in operations.iter().rev().take(end) {
                operation.take_back(&process).unwrap();
            }
            if let Some(next) = operations.iter().rev().nth(end) {
                leave_draft(&next.path);
            }
            home.down();
            assert_eq!(home.tree(), before, "{seed}: down ended after {end}");
        }
    }
}

/// Leaves what this process would leave if it were killed while it writes the file at `path`.
fn leave_draft(path: &Path) {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let draft = format!("{}.vary-{}", real.display(), std::process::id());
    fs::write(draft, "{").unwrap();
}

#[test]
fn a_home_without_other_changes_is_again_what_it_was() {
    each_home_is_again_what_it_was(60);
}

#[test]
fn changes_of_others_stay_and_no_server_is_lost() {
    what_others_change_meanwhile_stays(60);
}

#[test]
fn a_command_that_is_killed_after_any_file_is_taken_back() {
    every_end_is_taken_back(6);
}

mod at_length {
    use super::*;

    #[test]
    #[ignore = "`cargo xtask test-extra properties` runs it"]
    fn five_hundred_homes_without_other_changes_are_again_what_they_were() {
        each_home_is_again_what_it_was(500);
    }

    #[test]
    #[ignore = "`cargo xtask test-extra properties` runs it"]
    fn changes_of_others_stay_in_five_hundred_homes() {
        what_others_change_meanwhile_stays(500);
    }

    #[test]
    #[ignore = "`cargo xtask test-extra properties` runs it"]
    fn commands_that_are_killed_in_a_hundred_homes_are_taken_back() {
        every_end_is_taken_back(100);
    }
}

#[test]
fn servers_and_their_comments_return_to_their_places_beside_what_others_added() {
    let home = UserHome::empty("places");
    let client = ClientName::from_str("claude-code", false).unwrap().client();
    let before = r#"{
  "mcpServers": {
    // about git
    "git": {
      "command": "git"
    }, // fast
    "dead": {
      "command": "x"
    },
    // about files
    "files": {
      "command": "files"
    }
  }
}
"#;
    let path = home.file(client);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, before).unwrap();
    home.up();
    let text = home.text(client).unwrap();
    let entry = json!({"command": "theirs"});
    let added = ClientText::new(client.syntax, &text).insert(client.container, "theirs", &entry);
    fs::write(&path, added.unwrap()).unwrap();
    home.down();
    let theirs = "\n    },\n    \"theirs\": {\n      \"command\": \"theirs\"\n    }\n  }\n";
    let expected = before.replace("\n    }\n  }\n", theirs);
    assert_eq!(home.text(client), Some(expected));
}

#[test]
fn a_file_that_others_changed_before_a_killed_command_wrote_it_stays_as_they_left_it() {
    let home = UserHome::empty("superseded");
    let client = ClientName::from_str("cursor", false).unwrap().client();
    let path = home.file(client);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = |name: &str| json!({"mcpServers": {name: {"command": name}}}).to_string();
    for written in 0..3 {
        fs::write(&path, text("git")).unwrap();
        let (_, operations) = home.plan();
        for operation in &operations[..written] {
            operation.apply().unwrap();
        }
        leave_draft(&path);
        fs::write(&path, text("theirs")).unwrap();
        home.down();
        assert_eq!(home.text(client), Some(text("theirs")));
        assert_eq!(
            home.tree().into_keys().collect::<Vec<_>>(),
            std::slice::from_ref(&path)
        );
    }
}

#[test]
fn a_client_that_lacks_servers_of_others_gets_a_variant_of_its_own() {
    let home = UserHome::empty("variants");
    let write = |name: &str, servers: Value| {
        let client = ClientName::from_str(name, false).unwrap().client();
        let path = home.file(client);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, json!({"mcpServers": servers}).to_string()).unwrap();
        path
    };
    let git = json!({"command": "git-server", "env": {"K": "v"}});
    let files = json!({"command": "file-server"});
    let cursor = write("cursor", json!({"git": git}));
    let claude = write("claude-code", json!({"git": git, "files": files}));
    home.up();
    let read = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    assert_eq!(
        read(&cursor)["mcpServers"],
        json!({"vary": {"url": "http://127.0.0.1:8800/mcp/v/cursor"}})
    );
    assert_eq!(
        read(&claude)["mcpServers"],
        json!({"vary": {"type": "http", "url": "http://127.0.0.1:8800/mcp"}})
    );
    let found = Home::find(&|name| home.variable(name), &home.journal());
    let yaml = found.import(&|_, _| true).unwrap().yaml;
    let variants = "variants:\n  standard: {}\n  compact: {}\n  directory: {}\n  read-only: {}\n  cursor:\n    \
                    from: standard\n    servers: [git]\n";
    assert!(yaml.ends_with(variants), "{yaml}");
}
