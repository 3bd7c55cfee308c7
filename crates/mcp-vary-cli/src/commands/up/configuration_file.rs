//! The configuration that `vary up` writes, what it says about the service, and where that listens.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs as _};
use std::path::{Path, PathBuf};

use mcp_vary_config::{Diagnostics, SecretFiles};

use super::configuration_text::{Merged, merged_blocks, with_servers};
use super::journal::{ADMIN, Journal, LISTEN_KEY};
use super::operation::{Kind, Operation};
use crate::commands::connect::file::ClientFile;
use crate::environment::{environment, variable};
use crate::failure::Failure;
use crate::file;
use crate::operator::client::JOURNAL;
use crate::print::{notice, sanitize_line};
use crate::serving::start_report::root_note;
use crate::serving::{LISTEN, endpoint_url};

/// Fails if there is a configuration at `path` that is not in the `journal` of `directory`.
pub(super) fn check_configuration(
    path: &Path,
    journal: &Journal,
    directory: &Path,
) -> Result<(), Failure> {
    if !journal.generated.is_empty() {
        return Ok(());
    }
    let Some(text) = ClientFile::read(path.to_owned())?.text else {
        return Ok(());
    };
    let shown = path.display();
    if text.starts_with(HEADER) {
        let lost = directory.join(JOURNAL);
        return Err(Failure::command(format!(
            "{shown} was written by a `vary up` whose journal {} is missing; if that is in another `XDG_STATE_HOME`, set that, \
             or else type `vary down`, which says how to give the clients' files back, and move {shown} away, then: vary up",
            lost.display()
        )));
    }
    Err(Failure::command(format!(
        "{shown} was not written by `vary up`; move it away, or use `vary connect` with it"
    )))
}

/// The configuration at `path` with the servers of `imported`, as YAML, where its user left them; `None` if there is none yet.
pub(super) fn merged_configuration(
    path: &Path,
    imported: &str,
    journal: &Journal,
) -> Result<Option<Merged>, Failure> {
    let Some(current) = ClientFile::read(path.to_owned())?.text else {
        return Ok(None);
    };
    let Some((head, _)) = journal.generated.split_once(ADMIN) else {
        return Ok(None);
    };
    let new = with_servers(head, imported);
    Ok(Some(merged_blocks(&journal.generated, &new, &current)))
}

/// The configuration at `path` with the `imported` servers, as YAML, and with what its user changed.
pub(super) fn configuration_operation(
    path: PathBuf,
    imported: &str,
    journal: &mut Journal,
) -> Result<Operation, Failure> {
    let replaced = ClientFile::read(path.clone())?.text;
    let listen = listen_address(replaced.as_deref(), journal)?;
    let generated = with_servers(&format!("{HEADER}listen: {listen}\n"), imported);
    let shown = path.display();
    let after = match &replaced {
        None => generated.clone(),
        Some(current) => {
            let Merged { text, foreign, .. } =
                merged_blocks(&journal.generated, &generated, current);
            if let Some(name) = foreign.first() {
                return Err(Failure::command(format!(
                    "{shown} has another server `{name}`, which `vary up` did not write; rename it there, then: vary up"
                )));
            }
            text
        }
    };
    journal.generated = generated;
    Ok(Operation {
        path,
        kind: Kind::Configuration,
        before: None,
        is_rebuilt: false,
        after,
        // It has the secrets of the clients' files.
        mode: 0o600,
        replaced,
    })
}

/// What the configuration says about the service.
pub(super) struct ServiceSettings {
    /// Where this machine reaches it.
    pub(super) address: SocketAddr,
    /// The URL of the endpoint.
    pub(super) url: String,
    pub(super) has_page: bool,
    /// The variables that its servers need.
    pub(super) variables: BTreeMap<String, String>,
}

/// Reads the configuration. Variables are also those that servers inherit; what is not set here is as in `known`.
pub(super) fn service_settings(
    configuration: &Operation,
    inherited: &BTreeSet<String>,
    known: &BTreeMap<String, String>,
) -> Result<ServiceSettings, Failure> {
    let label = configuration.path.display().to_string();
    let secrets = SecretFiles::beside(&configuration.path);
    let parsed = file::parse_with_variables(&label, &configuration.after, &secrets);
    let read =
        parsed.map_err(|mistakes| invalid_configuration(configuration, &secrets, mistakes))?;
    let missing = read.missing.into_iter().map(|(name, _)| name);
    let mut variables = BTreeMap::new();
    for name in read.used.iter().chain(inherited).cloned().chain(missing) {
        match variable(&name).or_else(|| known.get(&name).cloned()) {
            Some(value) => {
                variables.insert(name, value);
            }
            None => notice(&sanitize_line(&format!(
                "not set here, and needed by a server: `{name}`"
            ))),
        }
    }
    if !variables.is_empty() {
        let names: Vec<_> = variables.keys().map(|name| format!("`{name}`")).collect();
        notice(&sanitize_line(&format!(
            "the service gets the variables: {}",
            names.join(", ")
        )));
    }
    root_note(&read.file.servers)
        .iter()
        .for_each(|note| notice(note));
    let has_page = read.file.program.admin.as_deref() != Some("off");
    let address = reachable(read.file.program.listen.as_deref().unwrap_or(LISTEN))?;
    let url = endpoint_url(&read.file.into_config(environment()?), address);
    Ok(ServiceSettings {
        address,
        url,
        has_page,
        variables,
    })
}

/// Why a configuration with `mistakes` is not written: its user made them, or what was changed in it does not fit what is
/// new.
fn invalid_configuration(
    configuration: &Operation,
    secrets: &SecretFiles,
    mut mistakes: Diagnostics,
) -> Failure {
    let Some(current) = configuration.replaced.as_deref() else {
        return file::invalid_file(&mistakes);
    };
    let shown = configuration.path.display();
    if let Err(of_user) = file::parse_with_variables(&shown.to_string(), current, secrets) {
        return file::invalid_file(&of_user);
    }
    let mut lines = configuration.after.lines();
    let first = mistakes.all.first();
    let wrong = first.and_then(|mistake| lines.nth(mistake.at.line.saturating_sub(1)));
    let place = current.lines().position(|line| Some(line) == wrong);
    let written = place.map_or_else(String::new, |at| format!("see {shown}:{}; ", at + 1));
    mistakes.file = format!("{shown} with what is new");
    file::invalid_file(&mistakes).with_line(&format!(
        "nothing was changed, since what you changed does not fit; {written}take it back there, or keep a copy of the file, \
         type `vary down --all` and `vary up`, and make your changes again"
    ))
}

/// Where this machine reaches what listens at `listen`.
pub(super) fn reachable(listen: &str) -> Result<SocketAddr, Failure> {
    let written = match listen.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => listen.to_owned(),
    };
    let mut found = written.to_socket_addrs().into_iter().flatten();
    let unknown = || Failure::command(format!("`listen` is not an address: {written}"));
    let mut address = found.next().ok_or_else(unknown)?;
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    Ok(address)
}

/// Where the service listens: as `journal` has it, or somewhere else if that is taken, no client has it, and the user
/// did not change it in the `configuration`.
fn listen_address(configuration: Option<&str>, journal: &Journal) -> Result<String, Failure> {
    let mut generated = journal.generated.lines();
    let Some(line) = generated.find(|line| line.starts_with(LISTEN_KEY)) else {
        return free_address();
    };
    let known = line.trim_start_matches(LISTEN_KEY);
    let mut operations = journal.operations.iter();
    let is_chosen = configuration.is_some_and(|text| text.lines().all(|other| other != line));
    let is_used = operations.any(|operation| matches!(operation.kind, Kind::Client(_)));
    let served = journal.manager.and_then(|manager| manager.listen());
    let is_running = served.as_deref() == Some(known);
    if is_chosen || is_used || is_running || TcpListener::bind(known).is_ok() {
        return Ok(known.to_owned());
    }
    free_address()
}

/// The usual address for clients, or a free one if something listens there. Ports that the system gives to outgoing
/// connections are not used: one may be taken at the next start.
fn free_address() -> Result<String, Failure> {
    let others = (8802..=8899_u16).map(|port| format!("127.0.0.1:{port}"));
    let mut all = std::iter::once(LISTEN.to_owned()).chain(others);
    let found = all.find(|address| TcpListener::bind(address).is_ok());
    let none_free = || {
        Failure::command(
            "no port of 127.0.0.1 from 8800 to 8899 is free, so nothing was changed; end a program that has one, then: \
             vary up",
        )
    };
    let address = found.ok_or_else(none_free)?;
    if address != LISTEN {
        notice(&format!(
            "another program listens on {LISTEN}, so Vary uses {address}"
        ));
    }
    Ok(address)
}

/// How the configuration begins.
const HEADER: &str =
    "# The servers of your clients, by `vary up`. Change what you like: Vary reads it again.\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_do_not_fit_what_is_new_are_named_with_their_line_and_mistakes_are_the_users() {
        let message = |current: &str, after: &str| {
            let configuration = Operation {
                path: PathBuf::from("/v.yaml"),
                kind: Kind::Configuration,
                before: None,
                is_rebuilt: false,
                after: after.to_owned(),
                mode: 0o600,
                replaced: Some(current.to_owned()),
            };
            let none = BTreeMap::new();
            let read = service_settings(&configuration, &BTreeSet::new(), &none);
            read.err().unwrap().to_string()
        };
        let current = "x-a: &a {command: x}\nservers:\n  b: *a\n";
        let after = "admin: 0\n\nservers:\n  b: *a\n";
        let text = message(current, after);
        assert!(text.starts_with("/v.yaml with what is new:4:"), "{text}");
        assert!(text.contains("see /v.yaml:3; take it back"), "{text}");
        assert!(text.contains("`vary down --all`"), "{text}");
        let text = message("servers:\n  b: *c\n", after);
        assert!(text.starts_with("/v.yaml:2:"), "{text}");
        assert!(!text.contains("what is new"), "{text}");
    }

    #[test]
    fn what_listens_everywhere_is_reached_on_loopback() {
        for (listen, expected) in [
            ("8800", "127.0.0.1:8800"),
            ("0.0.0.0:8800", "127.0.0.1:8800"),
            ("[::]:8800", "[::1]:8800"),
            ("192.0.2.1:80", "192.0.2.1:80"),
        ] {
            assert_eq!(reachable(listen).unwrap().to_string(), expected);
        }
    }
}
