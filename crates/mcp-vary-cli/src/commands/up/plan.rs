//! What `vary up` is going to write, and how it does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mcp_vary_config::Imported;
use tokio::net::TcpStream;

use super::configuration_file::{
    configuration_operation, merged_configuration, reachable, service_settings,
};
use super::configuration_text::Merged;
use super::diff::Secrets;
use super::home::{FoundClient, Home, Reached, variant_in};
use super::journal::Journal;
use super::operation::{Kind, Operation};
use super::starting;
use super::survey::Survey;
use crate::commands::connect::client::Client;
use crate::commands::connect::file::ClientFile;
use crate::environment::program_path;
use crate::failure::Failure;
use crate::print::{notice, sanitize_line};
use crate::service::{self, Manager, ServiceFile, ServiceSpec};
use crate::stop::Stop;

/// What is going to be written.
pub(crate) struct Plan {
    manager: Manager,
    spec: ServiceSpec,
    /// The URL of the endpoint.
    url: String,
    has_page: bool,
    /// The configuration and the files of the service that are not as they are to be.
    service: Vec<Operation>,
    clients: Vec<PlannedClient>,
    /// With the new entries of clients.
    journal: Journal,
}

/// A client whose file is written.
struct PlannedClient {
    client: &'static Client,
    operations: Vec<Operation>,
}

/// The servers of `home` that answer, but for new ones that the configuration at `path` leaves out: its user took them out,
/// or changed the variant of their client so that they cannot be added.
fn import(
    home: &Home,
    survey: &Survey,
    journal: &Journal,
    path: &Path,
) -> Result<Imported, Failure> {
    check_returned(home, survey)?;
    let is_served =
        |found: &FoundClient, name: &str| found.has_moved(name) || survey.is_up(home, found, name);
    let imported = home.import(&is_served)?;
    let Some(merged) = merged_configuration(path, &imported.yaml, journal)? else {
        return Ok(imported);
    };
    let Merged {
        lacking, removed, ..
    } = merged;
    if lacking.is_empty() && removed.is_empty() {
        return Ok(imported);
    }
    let mut lines = home.keep_new_servers(&imported, &lacking, path);
    lines.extend(home.keep_removed_servers(&imported, &removed, path));
    lines.iter().for_each(|line| notice(&sanitize_line(line)));
    home.import(&|found: &FoundClient, name: &str| {
        let is_left_out =
            found.is_client_in(&lacking) || home.is_one_of(&imported, found, name, &removed);
        is_served(found, name) && (found.has_moved(name) || !is_left_out)
    })
}

/// Fails if a server that a client of `home` has again does not answer: in Vary, it would be in place of one that may.
fn check_returned(home: &Home, survey: &Survey) -> Result<(), Failure> {
    for found in home.all() {
        let mut returned = found.returned().into_iter();
        if let Some(name) = returned.find(|name| !survey.is_up(home, found, name)) {
            return Err(Failure::looked_at(format!(
                "{} has `{name}` again, and it does not answer, so nothing was changed; repair it or take it out there, then: vary up",
                found.file.path.display()
            )));
        }
    }
    Ok(())
}

impl Plan {
    /// What is missing of the servers that answered at the clients that have them.
    pub(crate) async fn new(
        home: &Home,
        survey: &Survey,
        mut journal: Journal,
        path: PathBuf,
    ) -> Result<Self, Failure> {
        let imported = import(home, survey, &journal, &path)?;
        if imported.files.iter().all(|file| file.servers.is_empty()) {
            return Err(Failure::looked_at(
                "no server answers, so nothing was changed",
            ));
        }
        let configuration = configuration_operation(path, &imported.yaml, &mut journal)?;
        let inherited = &imported.variables;
        let settings = service_settings(&configuration, inherited, &journal.variables)?;
        let manager = match journal.manager {
            Some(manager) => manager,
            None => Manager::detect().await,
        };
        let spec = ServiceSpec {
            program: program_path()?,
            configuration: configuration.path.clone(),
            address: settings.address.to_string(),
            variables: settings.variables,
            log: service::directory()?.join("service.log"),
        };
        let shown = spec.program.display().to_string();
        let mut clients = Vec::new();
        for (found, file) in home.clients.iter().zip(&imported.files) {
            let reached = Reached {
                address: &settings.url,
                variant: file.variant.as_deref(),
                program: &shown,
            };
            let operations = found.operations(&reached, &file.servers, &mut journal)?;
            let client = found.client;
            clients.push(PlannedClient { client, operations });
        }
        clients.retain(|planned| !planned.operations.is_empty());
        let of_projects = imported.files.iter().skip(home.clients.len());
        let projects = home.projects.iter().zip(of_projects);
        journal.projects = projects
            .filter_map(|(found, file)| found.project_servers(&file.servers))
            .collect();
        journal.servers = home.named_in(&imported);
        let mut service = vec![configuration];
        for file in manager.files(&spec)? {
            service.push(service_operation(file, &journal)?);
        }
        service.retain(|planned| planned.replaced.as_ref() != Some(&planned.after));
        Ok(Self {
            manager,
            spec,
            url: settings.url,
            has_page: settings.has_page,
            service,
            clients,
            journal,
        })
    }

    /// Whether every file is as it is to be.
    pub(crate) fn is_empty(&self) -> bool {
        self.clients.is_empty() && self.service.is_empty()
    }

    /// Whether servers of clients move to a gateway that has several: one alone keeps the names of its tools.
    pub(crate) fn moves_several(&self) -> bool {
        let servers = self.journal.servers.iter();
        let names: BTreeSet<&str> = servers.map(|server| &*server.name).collect();
        !self.clients.is_empty() && names.len() > 1
    }

    /// What is going to be done, in a sentence. `command` is the one that does it.
    pub(crate) fn summary(&self, command: &str) -> String {
        let path = self.spec.configuration.display();
        let how = self.manager.description();
        let clients = self.clients.iter();
        let titles: Vec<&str> = clients.map(|planned| planned.client.title).collect();
        let all = titles.join(", ");
        let is_second = self.journal.manager.is_some();
        match (is_second, titles.is_empty()) {
            (false, true) => format!("Write {path}, and run Vary {how}."),
            (false, false) => format!(
                "Move the servers of {all} to Vary: write {path}, run Vary {how}, and put one entry `vary` in each file."
            ),
            (true, true) => format!("Change {path} (`{command} --dry-run` shows how)."),
            (true, false) => format!(
                "Change {path} and the files of {all} (`{command} --dry-run` shows how): their servers are in Vary then."
            ),
        }
    }

    /// That nothing changes, what runs, and how to look at it.
    pub(crate) fn running(&self) -> String {
        let how = self.manager.description();
        let page = if self.has_page { ", vary open" } else { "" };
        format!(
            "nothing to change; Vary is running {how} at {} (vary status{page})",
            self.url
        )
    }

    /// What changes in each file, without secrets.
    pub(crate) fn diff(&self, home: &Home) -> String {
        let mut secrets = Secrets::default();
        for (name, value) in home.all().flat_map(FoundClient::values) {
            secrets.add(&name, &value);
        }
        let variables = self.spec.variables.values();
        variables.for_each(|value| secrets.add_text(value));
        let mut out = String::new();
        let of_clients = self.clients.iter().flat_map(|planned| &planned.operations);
        for operation in self.service.iter().chain(of_clients) {
            let name = sanitize_line(&operation.path.display().to_string());
            let purpose = match operation.kind {
                Kind::Beside(_) => "for `vary down`",
                // Its variables are written with other escapes.
                Kind::Service => "for the service",
                Kind::Client(_) | Kind::Configuration => {
                    let replaced = operation.replaced.as_deref();
                    out.push_str(&secrets.diff(&name, replaced, &operation.after));
                    continue;
                }
            };
            out.push_str(&format!("+++ {name} ({purpose})\n"));
        }
        out
    }

    /// Whether the service runs already as it is to run.
    ///
    /// # Errors
    ///
    /// If another program has the address.
    pub(crate) async fn is_up(&self) -> Result<bool, Failure> {
        let address = &self.spec.address;
        let is_answering = TcpStream::connect(address).await.is_ok();
        // Where it was started: the configuration may have another `listen` since.
        let listen = self.manager.listen();
        let served = listen.and_then(|listen| reachable(&listen).ok());
        if is_answering && served.is_none_or(|served| served.to_string() != *address) {
            let path = self.spec.configuration.display();
            return Err(Failure::command(format!(
                "{address} is in use by another program, so Vary cannot listen there; end that program, or change \
                 `listen` in {path}, then: vary up"
            )));
        }
        let is_current = self.journal.manager == Some(self.manager)
            && self.manager.runs(&self.spec.program)
            && self.journal.variables == self.spec.variables
            && !self.service.iter().any(|file| file.kind == Kind::Service);
        Ok(is_answering && is_current)
    }

    /// Writes the files, and runs the service before a client is connected to it. Returns whether all clients are.
    pub(crate) async fn carry_out(
        mut self,
        home: &Home,
        directory: &Path,
        stop: &mut Stop,
    ) -> Result<bool, Failure> {
        let is_up = self.is_up().await?;
        self.report_restart();
        self.record(directory)
            .map_err(|why| why.into_looked_at().with_line("nothing was changed"))?;
        let updated = async {
            let written = self.service.iter().try_for_each(Operation::apply);
            written.map_err(Failure::into_looked_at)?;
            match (is_up, self.service.is_empty()) {
                (false, _) => self.manager.start(&self.spec).await?,
                (true, false) => self.manager.reload().await?,
                (true, true) => {}
            }
            Ok::<_, Failure>(starting::wait(&self.spec.address).await)
        };
        let outcome = stop.unless_requested(updated).await;
        let starting = match outcome {
            Ok(names) => names,
            Err(why) => {
                if is_up {
                    // The clients go on with the service as it was.
                    self.journal.is_unfinished = false;
                    self.journal.store(directory)?;
                }
                return Err(why.with_line(&format!("no client's file was changed; {FINISH}")));
            }
        };
        let mut is_whole = true;
        let mut needs_repair = false;
        for mut planned in std::mem::take(&mut self.clients) {
            let title = planned.client.title;
            match self.connect(&mut planned, home, directory) {
                Ok(()) => notice(&format!("{title} has Vary: {}", planned.client.see)),
                Err(why) => {
                    is_whole = false;
                    needs_repair |= !planned.operations.iter().any(Operation::is_changed);
                    notice(&sanitize_line(&format!("{title} is left as it is: {why}")));
                }
            }
        }
        self.journal.is_unfinished = false;
        let finished = self.journal.store(directory);
        finished.map_err(|why| why.into_looked_at().with_line(FINISH))?;
        if is_whole {
            self.report(home);
        } else if needs_repair {
            notice("repair that, then: vary up");
        }
        let note = starting::note(&starting);
        note.iter().for_each(|line| notice(&sanitize_line(line)));
        Ok(is_whole)
    }

    /// Stores in the journal what is about to be written.
    fn record(&mut self, directory: &Path) -> Result<(), Failure> {
        self.journal.manager = Some(self.manager);
        self.journal.variables = self.spec.variables.clone();
        self.journal.add(&self.service);
        for planned in &self.clients {
            self.journal.plan(&planned.operations);
        }
        self.journal.is_unfinished = true;
        self.journal.store(directory)
    }

    /// Writes the files of a client of `home`, planned again each time that another program changes what else its file has.
    fn connect(
        &mut self,
        planned: &mut PlannedClient,
        home: &Home,
        directory: &Path,
    ) -> Result<(), Failure> {
        let mut clients = home.clients.iter();
        let found = clients.find(|found| found.client.name == planned.client.name);
        let mut attempts = 1..ATTEMPTS;
        loop {
            let Err(why) = self.journal.apply(&planned.operations) else {
                return Ok(());
            };
            let next = attempts.next().and(found);
            let Some(operations) =
                next.and_then(|found| found.replanned(&planned.operations, &self.journal))
            else {
                return Err(why);
            };
            self.journal.plan(&operations);
            self.journal.store(directory)?;
            planned.operations = operations;
        }
    }

    /// Why only the service starts again, if no file changes.
    fn report_restart(&self) {
        if !self.is_empty() {
            return;
        }
        notice(if !self.manager.is_running() {
            "Vary was not running; starting it again"
        } else if self.manager.runs(&self.spec.program) {
            "Vary runs with other variables; starting it again"
        } else {
            "Vary runs with another program; starting it again"
        });
    }

    /// How clients get `compact`, unless their users chose a variant.
    fn token_advice(&self, home: &Home) -> Vec<String> {
        let path = &self.spec.configuration;
        let configuration = std::fs::read_to_string(path).unwrap_or_default();
        let mut standard = Vec::new();
        let mut with_variant = Vec::new();
        for found in &home.clients {
            let name = found.client.name;
            if found.chosen_variant(&self.journal).is_some() {
                continue;
            }
            match self.journal.entries.get(name).map(variant_in) {
                Some(variant) if variant == "standard" => standard.push(name),
                Some(_) if configuration.contains(&format!("  {name}:\n    from: standard\n")) => {
                    with_variant.push(format!("`{name}`"));
                }
                _ => {}
            }
        }
        let mut advice = Vec::new();
        if let Some(name) = standard.first() {
            let url = &self.url;
            advice.push(format!(
                "to save tokens: vary connect {name} {url} --variant compact --write"
            ));
        }
        if !with_variant.is_empty() {
            let all = with_variant.join(", ");
            let shown = path.display();
            advice.push(format!(
                "to save tokens: in {shown}, write `from: compact` in place of `from: standard` for {all}"
            ));
        }
        advice
    }

    /// What a user may want to do next.
    fn report(&self, home: &Home) {
        let advice = self.token_advice(home);
        advice.iter().for_each(|line| notice(&sanitize_line(line)));
        self.manager.note().iter().for_each(|note| notice(note));
        if self.has_page {
            notice("the page of Vary: vary open");
        }
        notice("to undo everything: vary down");
    }
}

/// What to do after a failure in the middle.
const FINISH: &str = "to go on: vary up; to undo what was written: vary down";

/// How often a client's file is written at most while another program changes it.
const ATTEMPTS: usize = 20;

/// A file of the service.
fn service_operation(file: ServiceFile, journal: &Journal) -> Result<Operation, Failure> {
    let replaced = ClientFile::read(file.path.clone())?.text;
    let mut known = journal.operations.iter();
    let earlier = known.find(|operation| operation.path == file.path);
    Ok(Operation {
        path: file.path,
        kind: Kind::Service,
        before: earlier.map_or_else(|| replaced.clone(), |operation| operation.before.clone()),
        is_rebuilt: false,
        after: file.text,
        mode: file.mode,
        replaced,
    })
}
