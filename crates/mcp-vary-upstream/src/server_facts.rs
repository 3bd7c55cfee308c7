//! Facts about a server that it does not declare, shared by all connections to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mcp_vary::json::Members;
use mcp_vary_base::lock::Lock;
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::revision::Revision;
use mcp_vary_wire::undeclared::UndeclaredMethods;
use tokio::sync::watch;

use super::handshake::Opening;

/// The eras that one server supports, and the methods that it has without declaring them.
///
/// # Properties
///
/// The facts are valid until the server's entry in the configuration changes, or until the server reports another name
/// or version than before in the same era.
///
/// Servers of both eras that are built with the official SDKs list only 2026-07-28 in their answer to
/// `server/discover`, so only `initialize` shows whether a server supports sessions.
#[derive(Debug, Default)]
pub struct ServerFacts {
    eras: Lock<Eras>,
    /// Whether it is known to support the modern era, and that it does not support the other one: for requests, which
    /// read them without the lock.
    is_modern: AtomicBool,
    is_modern_only: AtomicBool,
    /// The extensions that it declared so far, besides those that the gateway negotiates itself.
    extensions: Lock<BTreeSet<String>>,
    /// How many these are: for requests, which read it without the lock.
    extension_count: AtomicUsize,
    undeclared: Arc<UndeclaredMethods>,
    /// Whether it was logged that the server declares more of its variants than is kept.
    has_cut_variants: AtomicBool,
    /// Whether it was logged that a client got a list without the server, which was starting.
    was_missed: AtomicBool,
    /// How often a connection came up.
    reached: watch::Sender<u64>,
    /// Why it was lost or not reached, as logged last; `None` once a connection came up.
    failure: Lock<Option<String>>,
    /// Locked while the gateway requests a list that the server does not declare; by method.
    probes: Lock<BTreeMap<&'static str, Arc<tokio::sync::Mutex<()>>>>,
}

#[derive(Debug, Default)]
struct Eras {
    legacy: EraFacts,
    modern: EraFacts,
}

/// The facts about one era.
#[derive(Debug, Default)]
struct EraFacts {
    support: Support,
    /// `name` and `version` of the server, as reported in this era.
    identity: Option<[Option<String>; 2]>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Support {
    #[default]
    Unknown,
    Supported(Revision),
    Unsupported,
}

impl ServerFacts {
    /// The first request of a new connection, for clients of the era `preferred`.
    ///
    /// While nothing is known, it is `server/discover`. Some legacy servers exit when they receive it, and are started
    /// again. The first process of a server (`is_first`) gets `initialize` if its clients have sessions: the first request
    /// may decide its era, and they would wait for the start of a second process.
    pub fn opening(&self, preferred: Option<Era>, is_first: bool) -> Opening {
        let facts = self.eras.lock();
        match (facts.modern.support, facts.legacy.support, preferred) {
            (Support::Unsupported, _, _) => Opening::Initialize,
            (
                Support::Supported(_),
                Support::Unknown | Support::Supported(_),
                Some(Era::Legacy),
            ) => Opening::InitializeOrDiscover,
            (Support::Unknown, Support::Supported(_), Some(Era::Legacy)) => Opening::Initialize,
            (Support::Unknown, Support::Unknown, Some(Era::Legacy)) if is_first => {
                Opening::InitializeUnknown
            }
            _ => Opening::Discover,
        }
    }

    /// Records the result of a handshake that began with `opening`.
    pub fn record(&self, handshake: &Handshake, opening: Opening) {
        self.note_extensions(handshake);
        let mut facts = self.eras.lock();
        let identity = Some(identity(handshake));
        let known = &facts.era(handshake.era()).identity;
        if known.is_some() && *known != identity {
            *facts = Eras::default();
            self.undeclared.clear();
        }
        let knows_sessions = handshake.supports_sessions();
        let side = facts.era(handshake.era());
        side.support = Support::Supported(handshake.revision);
        side.identity = identity;
        match handshake.era() {
            Era::Legacy if opening == Opening::Discover => {
                facts.modern.support = Support::Unsupported
            }
            Era::Legacy => {}
            Era::Modern if handshake.refused_initialize => {
                facts.legacy.support = Support::Unsupported
            }
            Era::Modern if knows_sessions && facts.legacy.support == Support::Unknown => {
                facts.legacy.support = Support::Supported(Revision::LATEST_LEGACY);
            }
            Era::Modern => {}
        }
        self.publish(&facts);
    }

    /// Removes all facts: the server may have been replaced.
    pub fn clear(&self) {
        let mut facts = self.eras.lock();
        *facts = Eras::default();
        self.publish(&facts);
        drop(facts);
        self.undeclared.clear();
    }

    fn note_extensions(&self, handshake: &Handshake) {
        let mut known = self.extensions.lock();
        let room = MAX_EXTENSIONS.saturating_sub(known.len());
        let found = handshake.other_extensions().into_iter();
        let new: Vec<_> = found.filter(|id| !known.contains(id)).take(room).collect();
        known.extend(new);
        self.extension_count.store(known.len(), Ordering::Relaxed);
    }

    /// The extensions that the server declared so far, besides those that the gateway negotiates itself. None is ever
    /// removed.
    pub fn extensions(&self) -> BTreeSet<String> {
        self.extensions.lock().clone()
    }

    /// How many [extensions](Self::extensions) are known.
    pub fn extension_count(&self) -> usize {
        self.extension_count.load(Ordering::Relaxed)
    }

    fn publish(&self, facts: &Eras) {
        let is_modern = matches!(facts.modern.support, Support::Supported(_));
        let is_only = is_modern && facts.legacy.support == Support::Unsupported;
        self.is_modern.store(is_modern, Ordering::Relaxed);
        self.is_modern_only.store(is_only, Ordering::Relaxed);
    }

    /// Whether connections for clients of `era` are known to be of the modern era, which has no sessions.
    pub fn is_stateless_for(&self, era: Era) -> bool {
        match era {
            Era::Modern => self.is_modern.load(Ordering::Relaxed),
            Era::Legacy => self.is_modern_only.load(Ordering::Relaxed),
        }
    }

    /// The undeclared methods that were tried, and whether the server has them.
    pub fn undeclared_methods(&self) -> &Arc<UndeclaredMethods> {
        &self.undeclared
    }

    /// A connection came up: others that wait to be tried again need not wait any longer.
    pub(crate) fn note_reached(&self) {
        self.reached.send_modify(|count| *count += 1);
        *self.failure.lock() = None;
    }

    /// Changes when a connection comes up.
    pub(crate) fn reached(&self) -> watch::Receiver<u64> {
        self.reached.subscribe()
    }

    /// Notes why a connection was lost or not opened; returns whether that is to be logged. One line tells it of all
    /// connections.
    pub(crate) fn note_failure(&self, failure: &str) -> bool {
        let mut last = self.failure.lock();
        let is_new = last.as_deref() != Some(failure);
        if is_new {
            *last = Some(failure.to_owned());
        }
        is_new
    }

    /// The lock to hold while `method`, which the server does not declare, is tried, so that it is tried only once.
    pub fn probe_lock(&self, method: &'static str) -> Arc<tokio::sync::Mutex<()>> {
        let mut probes = self.probes.lock();
        Arc::clone(probes.entry(method).or_default())
    }

    /// Whether the server supports `era`, or no connection has tried it yet.
    pub fn may_support(&self, era: Era) -> bool {
        self.eras.lock().era(era).support != Support::Unsupported
    }

    /// The era of a server that is known to support only one.
    pub fn only_era(&self) -> Option<Era> {
        let facts = self.eras.lock();
        match (facts.legacy.support, facts.modern.support) {
            (Support::Unsupported, _) => Some(Era::Modern),
            (_, Support::Unsupported) => Some(Era::Legacy),
            _ => None,
        }
    }

    /// Whether the server was reached before, and it is not known yet whether it supports `era`.
    pub fn is_undecided(&self, era: Era) -> bool {
        let mut facts = self.eras.lock();
        facts.modern.support != facts.legacy.support && facts.era(era).support == Support::Unknown
    }

    /// Records that the server declares more of its variants than is kept. Returns whether that is new.
    pub(super) fn note_cut_variants(&self) -> bool {
        !self.has_cut_variants.swap(true, Ordering::Relaxed)
    }

    /// Records that a client got a list without the server, which is starting. Returns whether that is new.
    pub fn note_missed(&self) -> bool {
        !self.was_missed.swap(true, Ordering::Relaxed)
    }

    /// Whether no connection has shown yet which eras the server supports.
    pub(super) fn is_unknown(&self) -> bool {
        let facts = self.eras.lock();
        [facts.legacy.support, facts.modern.support] == [Support::Unknown; 2]
    }

    /// The newest revision of each era that the server is known to support.
    pub fn known_revisions(&self) -> Vec<&'static str> {
        let facts = self.eras.lock();
        let spoken = [facts.legacy.support, facts.modern.support].into_iter();
        let revisions = spoken.filter_map(|spoken| match spoken {
            Support::Supported(revision) => Some(revision.as_str()),
            Support::Unknown | Support::Unsupported => None,
        });
        revisions.collect()
    }
}

impl Eras {
    fn era(&mut self, era: Era) -> &mut EraFacts {
        match era {
            Era::Legacy => &mut self.legacy,
            Era::Modern => &mut self.modern,
        }
    }
}

fn identity(handshake: &Handshake) -> [Option<String>; 2] {
    let info = handshake.server_info.as_deref().unwrap_or("{}");
    let info = Members::parse(info).unwrap_or_default();
    ["name", "version"].map(|key| info.get_str(key))
}

/// The most extensions of one server that are kept.
const MAX_EXTENSIONS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn handshake(revision: Revision, version: &str) -> Handshake {
        Handshake {
            revision,
            result: r#"{"supportedVersions":["2026-07-28"]}"#.to_owned(),
            server_info: Some(format!(r#"{{"name":"s","version":"{version}"}}"#)),
            capabilities: "{}".to_owned(),
            instructions: None,
            refused_initialize: false,
            has_cut_variants: false,
        }
    }

    const LEGACY: Revision = Revision::LATEST_LEGACY;
    const MODERN: Revision = Revision::LATEST_MODERN;

    #[test]
    fn a_server_that_may_know_sessions_is_asked_for_one_only_for_clients_with_sessions() {
        let learned = ServerFacts::default();
        assert_eq!(learned.opening(Some(Era::Legacy), false), Opening::Discover);
        assert!(learned.is_unknown());
        learned.record(&handshake(MODERN, "1"), Opening::Discover);
        assert_eq!(learned.opening(None, false), Opening::Discover);
        assert_eq!(learned.opening(Some(Era::Modern), false), Opening::Discover);
        assert_eq!(
            learned.opening(Some(Era::Legacy), false),
            Opening::InitializeOrDiscover
        );
        learned.record(&handshake(LEGACY, "1"), Opening::InitializeOrDiscover);
        assert_eq!(
            learned.known_revisions(),
            [LEGACY.as_str(), MODERN.as_str()]
        );
        assert_eq!(learned.only_era(), None);
        assert!(learned.is_stateless_for(Era::Modern) && !learned.is_stateless_for(Era::Legacy));
    }

    #[test]
    fn a_server_of_one_era_is_not_asked_for_the_other_again() {
        let learned = ServerFacts::default();
        learned.record(&handshake(LEGACY, "1"), Opening::Discover);
        assert_eq!(
            learned.opening(Some(Era::Modern), false),
            Opening::Initialize
        );
        assert_eq!(learned.only_era(), Some(Era::Legacy));
        assert!(!learned.may_support(Era::Modern));

        let learned = ServerFacts::default();
        let mut refuses = handshake(MODERN, "1");
        refuses.refused_initialize = true;
        learned.record(&refuses, Opening::InitializeOrDiscover);
        assert_eq!(learned.opening(Some(Era::Legacy), false), Opening::Discover);
        assert_eq!(learned.known_revisions(), [MODERN.as_str()]);
    }

    /// What a process answers first may decide its era, so `initialize` alone shows nothing of the other one.
    #[test]
    fn a_process_gets_the_first_request_of_its_first_client() {
        let learned = ServerFacts::default();
        assert_eq!(learned.opening(None, true), Opening::Discover);
        assert_eq!(learned.opening(Some(Era::Modern), true), Opening::Discover);
        let first = learned.opening(Some(Era::Legacy), true);
        assert_eq!(first, Opening::InitializeUnknown);
        learned.record(&handshake(LEGACY, "1"), first);
        assert_eq!(
            learned.opening(Some(Era::Legacy), true),
            Opening::Initialize
        );
        assert_eq!(learned.opening(Some(Era::Modern), true), Opening::Discover);
        assert!(learned.may_support(Era::Modern) && learned.is_undecided(Era::Modern));
    }

    #[test]
    fn another_version_of_the_server_is_another_server() {
        let learned = ServerFacts::default();
        learned.record(&handshake(LEGACY, "1"), Opening::Discover);
        learned.record(&handshake(LEGACY, "1"), Opening::Initialize);
        assert_eq!(learned.only_era(), Some(Era::Legacy));
        learned.record(&handshake(LEGACY, "2"), Opening::Initialize);
        assert!(learned.may_support(Era::Modern));
        assert_eq!(learned.opening(None, false), Opening::Discover);
    }

    #[test]
    fn what_a_server_does_not_declare_is_remembered_for_its_version() {
        let learned = ServerFacts::default();
        learned.record(&handshake(LEGACY, "1"), Opening::Discover);
        assert_eq!(learned.undeclared_methods().has("tools/list"), None);
        learned.undeclared_methods().note("tools/list", true);
        learned.undeclared_methods().note("prompts/list", false);
        learned.record(&handshake(LEGACY, "1"), Opening::Initialize);
        assert_eq!(learned.undeclared_methods().has("tools/list"), Some(true));
        assert_eq!(
            learned.undeclared_methods().has("prompts/list"),
            Some(false)
        );
        // One request may fail for another reason.
        learned.undeclared_methods().note("tools/list", false);
        assert_eq!(learned.undeclared_methods().has("tools/list"), Some(true));
        learned.record(&handshake(LEGACY, "2"), Opening::Initialize);
        assert!(learned.undeclared_methods().all().is_empty());
    }
}
