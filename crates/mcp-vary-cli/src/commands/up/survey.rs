//! What the servers of the clients answer, and what they cost each client.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mcp_vary::json::Members;
use mcp_vary_config::{
    Diagnostic, Diagnostics, File, Imported, ImportedFile, Note, NoteKind, SecretFiles,
};
use mcp_vary_gateway::{Gateway, Naming, ServedItem, Target};
use mcp_vary_upstream::{ConnectionState, without_server};

use super::configuration_text::with_changes;
use super::home::{FoundClient, Home};
use super::journal::Journal;
use super::permission_rules;
use crate::credentials::{LoginMode, file_with_logins};
use crate::environment::{environment, variable};
use crate::failure::Failure;
use crate::print::sanitize_line;
use crate::print::servers::{first_names, is_up, reason};
use crate::print::table::table;
use crate::serving::chain;
use crate::stop::Stop;
use crate::{file, serving, tokens};

/// The servers of all clients, as those answered that Vary does not have for each of them.
pub(crate) struct Survey {
    /// All of them as one configuration.
    imported: Imported,
    /// Those that a client has without Vary.
    servers: BTreeMap<String, Server>,
    /// What all of them are that can be used.
    targets: BTreeMap<String, Target>,
    costs: Vec<Cost>,
    /// A tool whose name has that of its server in front.
    renamed: Option<String>,
}

/// A server.
#[derive(Default)]
struct Server {
    is_up: bool,
    tools: Vec<String>,
    /// Why it is not up.
    reason: Option<String>,
    /// Another one with the same target.
    same_as: Option<String>,
}

impl Server {
    /// Records why its entry cannot be used; `command` is the one that takes it over later.
    fn record_mistakes(&mut self, mistakes: &Diagnostics, command: &str) {
        let mut all = mistakes.all.iter();
        let lacking = all.find(|mistake| mistake.missing_variable.is_some());
        if let Some(Diagnostic { key, what, .. }) = lacking {
            self.reason = Some(format!("`{key}` {what}; set it and run `{command}` again"));
            return;
        }
        self.reason = mistakes.all.first().map(Diagnostic::without_position);
    }
}

/// The tokens of a client's tools.
struct Cost {
    title: &'static str,
    /// Those that are up.
    servers: usize,
    tools: usize,
    /// In its variant, in `compact` and in `directory`.
    tokens: [usize; 3],
}

/// The id of a tool that has the name of its server in front, if there is one.
fn renamed_tool(gateway: &Gateway) -> Option<String> {
    let is_renamed = |item: &ServedItem| {
        item.list == "tools/list" && item.id.ends_with(&format!("_{}", item.upstream_name))
    };
    let renamed = gateway.served().into_iter().find(is_renamed);
    renamed.map(|item| item.id)
}

impl Survey {
    /// Starts the servers that clients of `home` have without Vary as a configuration at `path` would, and ends them again.
    pub(crate) async fn take(
        home: &Home,
        path: &Path,
        journal: &Journal,
        stop: &mut Stop,
    ) -> Result<Self, Failure> {
        let mut imported = home.import(&|_, _| true)?;
        let files = &imported.files;
        imported.notes.retain(|note| {
            let mut all = home.all().zip(files);
            !all.any(|(found, file)| is_about_moved(note, found, file))
        });
        let mut survey = Self {
            servers: new_servers(home, &imported),
            imported,
            targets: BTreeMap::new(),
            costs: Vec::new(),
            renamed: None,
        };
        let name = path.display().to_string();
        let secrets = SecretFiles::beside(path);
        let yaml = survey.imported.yaml.clone();
        let stored = |name: &str| journal.variables.get(name).cloned();
        let value = |name: &str| variable(name).or_else(|| stored(name));
        let parse_text = |text: &str, only: &[String]| {
            file::parse_with(&name, text, only, &secrets, None, &value)
        };
        let parse = |only: &[String]| parse_text(&yaml, only);
        let usable = survey.find_targets(home, &|name| parse(std::slice::from_ref(name)));
        if usable.is_empty() {
            return Ok(survey);
        }
        let parsed = parse(&usable).map_err(|mistakes| file::invalid_file(&mistakes))?;
        let mut config = file::with_full_start_wait(file_with_logins(parsed, LoginMode::Stored)?);
        config.allow_empty_start = true;
        let current = mcp_vary_config::text(path).unwrap_or_default();
        let merged = with_changes(&yaml, &current, journal);
        if let Some(Ok(file)) = merged.map(|text| parse_text(&text, &usable)) {
            let running = file.into_config(environment()?);
            config.naming = running.naming;
            config.variant_set = running.variant_set;
        }
        let is_first = survey.in_vary().is_empty();
        if !is_first && config.naming == Naming::AsNeeded {
            // Beside those that Vary has, it is needed.
            config.naming = Naming::Always;
        }
        let gateway = Gateway::open(chain::with_ancestors(config)?).await;
        serving::wait(&gateway, stop, |_| false).await?;
        survey.read(&gateway, home);
        if is_first {
            survey.costs = survey.costs_of(home, journal, &gateway);
        }
        survey.renamed = renamed_tool(&gateway);
        gateway.close().await;
        Ok(survey)
    }

    /// Finds what each server is by `parse`. Returns those to try.
    fn find_targets(
        &mut self,
        home: &Home,
        parse: &dyn Fn(&String) -> Result<File, Diagnostics>,
    ) -> Vec<String> {
        for name in self.all() {
            match parse(&name) {
                Ok(file) => {
                    let servers = file.servers.into_iter();
                    let known = servers.map(|server| (server.name, server.target));
                    self.targets.extend(known);
                }
                Err(mistakes) => {
                    if let Some(found) = self.servers.get_mut(&name) {
                        found.record_mistakes(&mistakes, home.command);
                    }
                }
            }
        }
        let mut usable: Vec<String> = self.servers.keys().cloned().collect();
        usable.retain(|name| self.targets.contains_key(name));
        usable
    }

    /// Reads the states and tools of the servers of `home`.
    fn read(&mut self, gateway: &Gateway, home: &Home) {
        for report in gateway.servers() {
            let found = self.servers.entry(report.name.clone()).or_default();
            let wants_login = match &report.state {
                ConnectionState::Disconnected { error, .. } => error.is_unauthorized(),
                _ => false,
            };
            found.is_up = is_up(&report.state);
            found.reason = reason(&report).map(|why| without_server(&why, &report.name).to_owned());
            let target = self.targets.get(&report.name);
            if let (true, Some(Target::Http { url, .. })) = (wants_login, target) {
                let address = url.to_string();
                let shown = address.split('?').next().unwrap_or_default();
                let command = home.command;
                found.reason = Some(format!(
                    "it wants a login; run `vary login {shown}`, then `{command}` again"
                ));
            }
            let tools = gateway.server_tools(&report.name).into_iter();
            found.tools = tools.map(|(_, definition)| definition).collect();
        }
        let mut known: Vec<String> = self.targets.keys().cloned().collect();
        // Those that Vary has already are first.
        known.sort_by_key(|name| !self.has_moved(home, name));
        for (name, found) in self.servers.iter_mut().filter(|(_, found)| found.is_up) {
            let mut earlier = known.iter().take_while(|other| *other != name);
            let target = self.targets.get(name);
            let same = earlier.find(|other| self.targets.get(*other) == target);
            found.same_as = same.cloned();
        }
    }

    /// Whether the server that the client `found` calls `name` answered.
    pub(crate) fn is_up(&self, home: &Home, found: &FoundClient, name: &str) -> bool {
        let mut files = home.all().zip(&self.imported.files);
        let of_client = files.find(|(client, _)| std::ptr::eq(*client, found));
        let server = of_client.and_then(|(_, file)| self.servers.get(file.servers.get(name)?));
        server.is_some_and(|server| server.is_up)
    }

    /// Whether Vary has the server `name` already.
    fn has_moved(&self, home: &Home, name: &str) -> bool {
        let mut files = home.all().zip(&self.imported.files);
        files.any(|(found, file)| {
            let mut servers = file.servers.iter();
            servers.any(|(entry, server)| server == name && found.has_moved(entry))
        })
    }

    /// How the server `name` differs from the one with the same target; `None` if Vary has it already.
    fn difference(&self, home: &Home, name: &str) -> Option<String> {
        let other = self.servers.get(name)?.same_as.as_deref()?;
        if self.has_moved(home, name) {
            return None;
        }
        let yaml = &self.imported.yaml;
        let (one, another) = (settings(yaml, name), settings(yaml, other));
        let keys: BTreeSet<&str> = one.keys().chain(another.keys()).copied().collect();
        let different = keys
            .into_iter()
            .filter(|key| one.get(key) != another.get(key))
            .map(|key| format!("`{key}`"));
        let is_renamed = self.entries(name).is_disjoint(&self.entries(other));
        let of_name = is_renamed.then(|| "their names".to_owned());
        let all: Vec<String> = of_name.into_iter().chain(different).collect();
        if all.is_empty() {
            return None;
        }
        let shown = all.join(", ");
        let has_both = |file: &ImportedFile| {
            let has = |wanted: &str| file.servers.values().any(|server| server == wanted);
            has(name) && has(other)
        };
        let advice = if self.imported.files.iter().any(has_both) {
            "a client has both; take one out of its file, if you need only one"
        } else {
            "make them equal in the clients' files, and one process serves both"
        };
        Some(format!(
            "`{name}` runs beside `{other}`, since they differ in {shown}: {advice}\n"
        ))
    }

    /// What the clients call the server `name`.
    fn entries(&self, name: &str) -> BTreeSet<&str> {
        let all = self.imported.files.iter().flat_map(|file| &file.servers);
        all.filter(|(_, server)| *server == name)
            .map(|(entry, _)| entry.as_str())
            .collect()
    }

    /// The names of all servers.
    fn all(&self) -> BTreeSet<String> {
        let files = self.imported.files.iter();
        files
            .flat_map(|file| file.servers.values().cloned())
            .collect()
    }

    /// The servers that no client has without Vary. They are not tried.
    fn in_vary(&self) -> Vec<String> {
        let mut all = self.all();
        all.retain(|name| !self.servers.contains_key(name));
        all.iter().map(|name| format!("`{name}`")).collect()
    }

    /// The titles of the clients of `home` that have the server `name` without Vary.
    fn clients_without_vary(&self, home: &Home, name: &str) -> String {
        let mut titles = Vec::new();
        for (found, file) in home.all().zip(&self.imported.files) {
            let mut servers = file.servers.iter();
            if servers.any(|(entry, server)| server == name && !found.has_in_vary(entry)) {
                titles.push(sanitize_line(&found.title()));
            }
        }
        titles.join(", ")
    }

    /// A row for each server that is new in Vary, and below it why others stay with their clients, why some run twice, and
    /// which ones are not tried.
    pub(crate) fn table(&self, home: &Home) -> String {
        let heading = ["new in Vary", "clients", "tools", "tokens"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        let mut lines = String::new();
        for (name, found) in &self.servers {
            let clients = self.clients_without_vary(home, name);
            if found.is_up {
                let counts = [found.tools.len(), tokens::count_tools(&found.tools)];
                let cells = [name.clone(), clients].into_iter();
                rows.push(cells.chain(counts.map(|count| count.to_string())).collect());
            } else if let Some(reason) = &found.reason {
                // What a program wrote last is below it, line by line.
                let why = reason.replace('\n', "\\n").replace(" | ", "\n  | ");
                lines.push_str(&format!("`{name}` stays with {clients}: {why}\n"));
            }
            lines.extend(self.difference(home, name));
        }
        for server in &home.staying {
            lines.push_str(&format!("{}\n", sanitize_line(&server.to_string())));
        }
        let in_vary = self.in_vary();
        if !in_vary.is_empty() {
            let names = first_names(&in_vary);
            lines.push_str(&format!("in Vary already, and not tried again: {names}\n"));
        }
        if rows.len() == 1 {
            return lines;
        }
        table(&rows, 2) + &lines
    }

    /// A line for each kind of setting that Vary does not have, or has in another way, and one about secrets. Servers that
    /// several clients have are in the table, as are variables that are not set, and what Vary has already had its lines.
    pub(crate) fn notes(&self, home: &Home) -> Vec<String> {
        let all = &self.imported.notes;
        let mut keys: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
        let is_shown = |note: &&Note| note.kind == NoteKind::Change && !names_known_variable(note);
        for note in all.iter().filter(is_shown) {
            let fix = note.note.fix.iter().map(|fix| format!("; {fix}"));
            let text = sanitize_line(&format!("{}{}", note.note.what, fix.collect::<String>()));
            let key = format!("`{}`", sanitize_line(&note.note.key));
            keys.entry((&*note.file, text)).or_default().push(key);
        }
        let mut lines: Vec<String> = keys
            .iter()
            .map(|((file, text), names)| format!("note: {file}: {} {text}", first_names(names)))
            .collect();
        if all.iter().any(|note| note.kind == NoteKind::Secret) {
            lines.push(SECRETS.to_owned());
        }
        for (found, file) in home.clients.iter().zip(&self.imported.files) {
            if found.client.name != "claude-code" {
                continue;
            }
            let is_new = |(entry, server): &(&String, &String)| {
                let known = self.servers.get(*server);
                known.is_some_and(|known| known.is_up) && !found.has_in_vary(entry)
            };
            let new = file.servers.iter().filter(is_new);
            let moved: BTreeMap<&str, &str> =
                new.map(|(entry, server)| (&**entry, &**server)).collect();
            let has_server_names = self.renamed.is_some();
            lines.extend(permission_rules::notes(
                &found.file.path,
                &moved,
                has_server_names,
            ));
        }
        lines
    }

    /// That tools get other names, with one as an example; `None` if they do not.
    pub(crate) fn naming_note(&self) -> Option<String> {
        let tool = self.renamed.as_ref()?;
        Some(format!(
            "Tools get the name of their server in front ({tool}): adapt permission rules and prompts that name them."
        ))
    }

    /// A row for each client with what its tools cost; nothing if not all servers were tried.
    pub(crate) fn costs(&self) -> String {
        if self.costs.is_empty() {
            return String::new();
        }
        let heading = [
            "client",
            "servers",
            "tools",
            "tokens",
            "compact",
            "directory",
        ];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        for cost in &self.costs {
            let counts = [&[cost.servers, cost.tools][..], &cost.tokens].concat();
            let cells = counts.iter().map(usize::to_string);
            rows.push(
                std::iter::once(cost.title.to_owned())
                    .chain(cells)
                    .collect(),
            );
        }
        format!("\n{}{LEGEND}", table(&rows, 1))
    }

    /// What the tools of each client of `home` cost.
    fn costs_of(&self, home: &Home, journal: &Journal, gateway: &Gateway) -> Vec<Cost> {
        let variants: BTreeMap<String, Vec<String>> = gateway
            .tools()
            .into_iter()
            .map(|(id, tools)| (id.to_string(), tools))
            .collect();
        let served = gateway.served();
        let is_tool = |item: &&ServedItem| item.list == "tools/list";
        let all: BTreeSet<&str> = served
            .iter()
            .filter(is_tool)
            .map(|item| &*item.id)
            .collect();
        let tools_of = |id: &str| variants.get(id).map_or(&[][..], Vec::as_slice);
        let clients = home.clients.iter().zip(&self.imported.files);
        let costs = clients.map(|(found, file)| {
            let all_tools = tools_of(file.variant.as_deref().unwrap_or("standard"));
            let chosen = found.chosen_variant(journal);
            let its_variant = chosen.and_then(|id| variants.get(&id));
            let tools = its_variant.map_or(all_tools, Vec::as_slice);
            let named = all_tools.iter().filter_map(|tool| tool_name(tool));
            let names: BTreeSet<String> = named.collect();
            // The gateway's own tools are in every `directory`.
            let is_listed = |name: String| names.contains(&name) || !all.contains(&*name);
            let count_in = |id: &str| {
                let its_tools = tools_of(id).iter();
                let listed: Vec<&String> = its_tools
                    .filter(|tool| tool_name(tool).is_some_and(is_listed))
                    .collect();
                tokens::count_tools(&listed)
            };
            let servers: BTreeSet<&String> = file.servers.values().collect();
            let is_up = |name: &&&String| self.servers.get(**name).is_some_and(|found| found.is_up);
            Cost {
                title: found.client.title,
                servers: servers.iter().filter(is_up).count(),
                tools: tools.len(),
                tokens: [
                    tokens::count_tools(tools),
                    count_in("compact"),
                    count_in("directory"),
                ],
            }
        });
        costs.collect()
    }
}

/// What the variants in the table are.
const LEGEND: &str = "`tokens`: about as now. `compact`: short descriptions and schemas. `directory`: first sentences alone, and \
                      schemas when a model asks for them.\n";

/// The note about secrets, which are taken over as they are.
const SECRETS: &str =
    "note: secrets move with their servers to the configuration, which only you can read";

/// Whether the `note` asks for a variable that is set, or that the table names: `set NAME`, `set the variable NAME`.
fn names_known_variable(note: &Note) -> bool {
    let fix = note.note.fix.as_deref().unwrap_or_default();
    let Some(name) = fix.strip_prefix("set ") else {
        return false;
    };
    match name.strip_prefix("the variable ") {
        Some(of_secret) => variable(of_secret).is_some(),
        None => !name.contains(' '),
    }
}

/// Whether `note` is about a server of the client `found` that Vary has already.
fn is_about_moved(note: &Note, found: &FoundClient, file: &ImportedFile) -> bool {
    let key = format!("{}.", note.note.key);
    let mut entries = file.servers.keys();
    note.file == found.file.path.display().to_string()
        && entries.any(|entry| found.has_moved(entry) && key.contains(&format!(".{entry}.")))
}

/// The settings of the server `name` in a configuration that was imported: the lines of each key.
fn settings<'a>(yaml: &'a str, name: &str) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let heading = format!("  {name}:");
    let lines = yaml.lines().skip_while(|line| *line != heading).skip(1);
    let mut settings: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let mut key = "";
    for line in lines.map_while(|line| line.strip_prefix("    ")) {
        if !line.starts_with(' ') {
            key = line.split(':').next().unwrap_or_default();
        }
        settings.entry(key).or_default().insert(line);
    }
    settings
}

/// The servers that clients of `home` have without Vary.
fn new_servers(home: &Home, imported: &Imported) -> BTreeMap<String, Server> {
    let mut servers = BTreeMap::new();
    for (found, file) in home.all().zip(&imported.files) {
        let entries = file.servers.iter();
        let new = entries.filter(|(entry, _)| !found.has_in_vary(entry));
        servers.extend(new.map(|(_, name)| (name.clone(), Server::default())));
    }
    servers
}

/// The name of a tool.
fn tool_name(tool: &str) -> Option<String> {
    Members::parse(tool).ok()?.get_str("name")
}
