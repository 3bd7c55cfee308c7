//! What the gateway has learned of a server beyond what the server declares, for all connections to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_vary::json::Members;
use mcp_vary_wire::handshake::Hello;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::revision::Revision;
use mcp_vary_wire::undeclared::UndeclaredMethods;

use super::handshake::Opening;

/// What was learned of one server: the eras that it speaks, and the methods that it has without declaring them.
///
/// # Properties
///
/// It holds until the server's entry in the configuration changes, which makes another server of it, or until the
/// server introduces itself with another name or version than before in the same era.
///
/// Servers of both eras that are built with the official SDKs name only 2026-07-28 in their answer to
/// `server/discover`, so that only `initialize` shows whether a server knows sessions.
#[derive(Debug, Default)]
pub struct Learned {
    facts: Mutex<Facts>,
    undeclared: Arc<UndeclaredMethods>,
    /// Held while the server is asked for a list that it does not declare, by method.
    probes: Mutex<BTreeMap<&'static str, Arc<tokio::sync::Mutex<()>>>>,
}

#[derive(Debug, Default)]
struct Facts {
    legacy: Side,
    modern: Side,
}

/// What is known of one era.
#[derive(Debug, Default)]
struct Side {
    spoken: Spoken,
    /// `name` and `version` of the server, as it introduced itself in this era.
    identity: Option<[Option<String>; 2]>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Spoken {
    #[default]
    Unknown,
    Yes(Revision),
    No,
}

impl Learned {
    /// Which request a new connection begins with, for clients of the era `preferred`.
    ///
    /// `server/discover` comes first while nothing is known: some legacy servers end at it, and are started again, but
    /// a server that is slow to start cannot be told from one that ignores `initialize`.
    pub fn opening(&self, preferred: Option<Era>) -> Opening {
        let facts = self.lock();
        match (facts.modern.spoken, facts.legacy.spoken, preferred) {
            (Spoken::No, _, _) => Opening::Initialize,
            (Spoken::Yes(_), Spoken::Unknown | Spoken::Yes(_), Some(Era::Legacy)) => {
                Opening::InitializeOrDiscover
            }
            _ => Opening::Discover,
        }
    }

    /// Remembers what a connection showed that began with `opening`.
    pub fn note(&self, hello: &Hello, opening: Opening) {
        let mut facts = self.lock();
        let identity = Some(identity(hello));
        let known = &facts.side(hello.era()).identity;
        if known.is_some() && *known != identity {
            *facts = Facts::default();
            self.undeclared.clear();
        }
        let knows_sessions = hello.knows_sessions();
        let side = facts.side(hello.era());
        side.spoken = Spoken::Yes(hello.revision);
        side.identity = identity;
        match hello.era() {
            Era::Legacy if opening == Opening::Discover => facts.modern.spoken = Spoken::No,
            Era::Legacy => {}
            Era::Modern if hello.refused_initialize => facts.legacy.spoken = Spoken::No,
            Era::Modern if knows_sessions && facts.legacy.spoken == Spoken::Unknown => {
                facts.legacy.spoken = Spoken::Yes(Revision::LATEST_LEGACY);
            }
            Era::Modern => {}
        }
    }

    /// Forgets all: the server may be another.
    pub fn forget(&self) {
        *self.lock() = Facts::default();
        self.undeclared.clear();
    }

    /// The methods that the server was asked for although it does not declare them.
    pub fn undeclared(&self) -> &Arc<UndeclaredMethods> {
        &self.undeclared
    }

    /// The lock to hold while the server is asked for `method`, which it does not declare, so that it is asked once.
    pub fn probe_lock(&self, method: &'static str) -> Arc<tokio::sync::Mutex<()>> {
        let mut probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(probes.entry(method).or_default())
    }

    /// Whether the server may speak `era`: it does, or no connection has tried.
    pub fn may_speak(&self, era: Era) -> bool {
        self.lock().side(era).spoken != Spoken::No
    }

    /// The era of a server that is known to speak one alone.
    pub fn only_era(&self) -> Option<Era> {
        let facts = self.lock();
        match (facts.legacy.spoken, facts.modern.spoken) {
            (Spoken::No, _) => Some(Era::Modern),
            (_, Spoken::No) => Some(Era::Legacy),
            _ => None,
        }
    }

    /// Whether the server was connected to, and it is not yet known whether it speaks `era`.
    pub fn is_undecided(&self, era: Era) -> bool {
        let mut facts = self.lock();
        let is_known = facts.modern.spoken != facts.legacy.spoken;
        is_known && facts.side(era).spoken == Spoken::Unknown
    }

    /// The newest revision of each era that the server is known to speak.
    pub fn revisions(&self) -> Vec<&'static str> {
        let facts = self.lock();
        let spoken = [facts.legacy.spoken, facts.modern.spoken].into_iter();
        let spoken = spoken.filter_map(|spoken| match spoken {
            Spoken::Yes(revision) => Some(revision.as_str()),
            Spoken::Unknown | Spoken::No => None,
        });
        spoken.collect()
    }

    fn lock(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Facts {
    fn side(&mut self, era: Era) -> &mut Side {
        match era {
            Era::Legacy => &mut self.legacy,
            Era::Modern => &mut self.modern,
        }
    }
}

fn identity(hello: &Hello) -> [Option<String>; 2] {
    let info = hello.server_info.as_deref().unwrap_or("{}");
    let info = Members::parse(info).unwrap_or_default();
    ["name", "version"].map(|key| info.get_str(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(revision: Revision, version: &str) -> Hello {
        Hello {
            revision,
            result: r#"{"supportedVersions":["2026-07-28"]}"#.to_owned(),
            server_info: Some(format!(r#"{{"name":"s","version":"{version}"}}"#)),
            capabilities: "{}".to_owned(),
            instructions: None,
            refused_initialize: false,
        }
    }

    const LEGACY: Revision = Revision::LATEST_LEGACY;
    const MODERN: Revision = Revision::LATEST_MODERN;

    #[test]
    fn a_server_that_may_know_sessions_is_asked_for_one_only_for_clients_with_sessions() {
        let learned = Learned::default();
        assert_eq!(learned.opening(Some(Era::Legacy)), Opening::Discover);
        learned.note(&hello(MODERN, "1"), Opening::Discover);
        assert_eq!(learned.opening(None), Opening::Discover);
        assert_eq!(learned.opening(Some(Era::Modern)), Opening::Discover);
        assert_eq!(
            learned.opening(Some(Era::Legacy)),
            Opening::InitializeOrDiscover
        );
        learned.note(&hello(LEGACY, "1"), Opening::InitializeOrDiscover);
        assert_eq!(learned.revisions(), [LEGACY.as_str(), MODERN.as_str()]);
        assert_eq!(learned.only_era(), None);
    }

    #[test]
    fn a_server_of_one_era_is_not_asked_for_the_other_again() {
        let learned = Learned::default();
        learned.note(&hello(LEGACY, "1"), Opening::Discover);
        assert_eq!(learned.opening(Some(Era::Modern)), Opening::Initialize);
        assert_eq!(learned.only_era(), Some(Era::Legacy));
        assert!(!learned.may_speak(Era::Modern));

        let learned = Learned::default();
        let mut refuses = hello(MODERN, "1");
        refuses.refused_initialize = true;
        learned.note(&refuses, Opening::InitializeOrDiscover);
        assert_eq!(learned.opening(Some(Era::Legacy)), Opening::Discover);
        assert_eq!(learned.revisions(), [MODERN.as_str()]);
    }

    #[test]
    fn another_version_of_the_server_is_another_server() {
        let learned = Learned::default();
        learned.note(&hello(LEGACY, "1"), Opening::Discover);
        learned.note(&hello(LEGACY, "1"), Opening::Initialize);
        assert_eq!(learned.only_era(), Some(Era::Legacy));
        learned.note(&hello(LEGACY, "2"), Opening::Initialize);
        assert!(learned.may_speak(Era::Modern));
        assert_eq!(learned.opening(None), Opening::Discover);
    }

    #[test]
    fn what_a_server_does_not_declare_is_remembered_for_its_version() {
        let learned = Learned::default();
        learned.note(&hello(LEGACY, "1"), Opening::Discover);
        assert_eq!(learned.undeclared().has("tools/list"), None);
        learned.undeclared().note("tools/list", true);
        learned.undeclared().note("prompts/list", false);
        learned.note(&hello(LEGACY, "1"), Opening::Initialize);
        assert_eq!(learned.undeclared().has("tools/list"), Some(true));
        assert_eq!(learned.undeclared().has("prompts/list"), Some(false));
        // One request may fail for another reason.
        learned.undeclared().note("tools/list", false);
        assert_eq!(learned.undeclared().has("tools/list"), Some(true));
        learned.note(&hello(LEGACY, "2"), Opening::Initialize);
        assert!(learned.undeclared().all().is_empty());
    }
}
