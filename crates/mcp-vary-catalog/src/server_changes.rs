//! What servers changed while they were used: their tools, prompts and instructions, from one reading to the next.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};

use mcp_vary::json::{Json, Members, string};
use mcp_vary_base::lock::Lock;
use mcp_vary_wire::sanitize::excerpt;
use tracing::warn;

use crate::list_fault::ListFaults;
use crate::listing::{ListKind, ListedItem, Listing};

/// A tool or prompt of a server, or its instructions, that differs from what was read before.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServerChange {
    /// The server's name in the configuration.
    pub server: Arc<str>,
    /// What changed.
    pub subject: ChangeSubject,
    /// The server's name of the tool or prompt; empty for instructions.
    pub name: Arc<str>,
    /// What was there before, as JSON; `None` if it is new.
    pub before: Option<Arc<str>>,
    /// What is there now; `None` if it is gone.
    pub after: Option<Arc<str>>,
    /// The members that differ, in the order of their names; empty if it is new or gone.
    pub members: Vec<String>,
}

/// What a server changed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ChangeSubject {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// The instructions.
    Instructions,
}

impl ChangeSubject {
    /// `tool`, `prompt` or `instructions`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Instructions => "instructions",
        }
    }
}

/// Reports what servers change, and what is wrong with their lists: in the log, to an observer, and to those who ask
/// later.
///
/// # Properties
///
/// - A list is compared with what the same connection listed before, since servers may list other things to other clients.
///   The first list does not count as a change.
/// - A change that several connections see is reported once.
/// - Memory is bounded: the last [`MAX_KEPT`] changes, and together not more than [`MAX_BYTES`] of definitions.
#[derive(Default)]
pub struct ServerChanges {
    /// Set once, before servers are read.
    observer: OnceLock<Observer>,
    state: Lock<State>,
}

/// What is done with each change.
struct Observer {
    /// The seconds since 1970-01-01 UTC.
    now: fn() -> u64,
    record: Box<dyn Fn(&ServerChange) + Send + Sync>,
}

mcp_vary_base::debug_by_name!(ServerChanges);

/// A change, and when it was seen.
#[derive(Clone, Debug)]
pub struct SeenChange {
    /// When it was seen, in seconds since 1970-01-01 UTC.
    pub at: u64,
    /// What changed.
    pub change: Arc<ServerChange>,
}

#[derive(Default)]
struct State {
    kept: VecDeque<SeenChange>,
    /// A digest of what was reported last of each item.
    reported: BTreeMap<(Arc<str>, ChangeSubject, Arc<str>), u64>,
    /// The faults that were logged last of each list.
    faults: BTreeMap<(Arc<str>, ListKind), ListFaults>,
}

impl ServerChanges {
    /// Has `record` called for each change, such as for the audit log. Only the first call counts.
    pub fn observe(
        &self,
        now: fn() -> u64,
        record: impl Fn(&ServerChange) + Send + Sync + 'static,
    ) {
        let record = Box::new(record);
        let _ = self.observer.set(Observer { now, record });
    }

    /// The last changes, the latest first.
    pub fn latest(&self) -> Vec<SeenChange> {
        self.state.lock().kept.iter().rev().cloned().collect()
    }

    /// Compares a list with the one that the same connection had `before`.
    pub fn compare(
        &self,
        server: &Arc<str>,
        kind: ListKind,
        before: &[ListedItem],
        after: &[ListedItem],
    ) {
        let subject = match kind {
            ListKind::Tools => ChangeSubject::Tool,
            ListKind::Prompts => ChangeSubject::Prompt,
            ListKind::Resources | ListKind::Templates => return,
        };
        if before != after {
            self.report(server, differences(server, subject, before, after));
        }
    }

    /// Compares the instructions of a server with those of the last connection.
    pub fn compare_instructions(
        &self,
        server: &Arc<str>,
        before: Option<&str>,
        after: Option<&str>,
    ) {
        if before != after {
            let definition = |text: &str| {
                let members = [("instructions", string(text))];
                Arc::from(Members::from_iter(members).to_json())
            };
            let before = before.map(definition);
            let after = after.map(definition);
            let name = "".into();
            let found = change(
                server,
                ChangeSubject::Instructions,
                &name,
                before.as_ref(),
                after.as_ref(),
            );
            self.report(server, found.into_iter().collect());
        }
    }

    /// Logs what is wrong with a list, unless that is known of it.
    pub fn note_faults(&self, server: &Arc<str>, kind: ListKind, listing: &Listing) {
        let key = (Arc::clone(server), kind);
        let known = if listing.faults.is_empty() {
            self.state.lock().faults.remove(&key)
        } else {
            self.state.lock().faults.insert(key, listing.faults.clone())
        };
        if known.as_ref() == Some(&listing.faults) {
            return;
        }
        for problem in listing.faults.sentences(kind) {
            warn!(
                server = &**server,
                list = kind.method(),
                problem,
                "a listed item is broken"
            );
        }
    }

    fn report(&self, server: &Arc<str>, changes: Vec<ServerChange>) {
        let now = self.observer.get().map_or(0, |observer| (observer.now)());
        let new = self.state.lock().add(changes, now);
        for change in new.iter().take(MAX_LINES) {
            let subject = change.subject.as_str();
            let name = excerpt(change.name.as_bytes(), MAX_NAME);
            let advice = match (change.subject, &change.before) {
                (ChangeSubject::Tool, None) => NEW_TOOL,
                _ => "",
            };
            let change = change.summary();
            warn!(
                server = &**server,
                subject, name, change, "the server changed{advice}"
            );
        }
        if new.len() > MAX_LINES {
            let more = new.len() - MAX_LINES;
            warn!(
                server = &**server,
                more, "the server changed more at the same time"
            );
        }
        if let Some(observer) = self.observer.get() {
            new.iter()
                .take(MAX_OBSERVED)
                .for_each(|change| (observer.record)(change));
        }
    }
}

impl State {
    /// Adds the changes that were not reported yet, and returns them.
    fn add(&mut self, changes: Vec<ServerChange>, now: u64) -> Vec<Arc<ServerChange>> {
        let mut new = Vec::new();
        for change in changes {
            let key = (
                Arc::clone(&change.server),
                change.subject,
                Arc::clone(&change.name),
            );
            let mut hasher = DefaultHasher::new();
            change.after.hash(&mut hasher);
            let digest = hasher.finish();
            if self.reported.len() > MAX_REPORTED {
                self.reported.clear();
            }
            if self.reported.insert(key, digest) != Some(digest) {
                new.push(Arc::new(change));
            }
        }
        let seen = new.iter().take(MAX_KEPT);
        self.kept.extend(seen.map(|change| SeenChange {
            at: now,
            change: Arc::clone(change),
        }));
        let mut bytes = 0;
        let latest = self.kept.iter().rev().take(MAX_KEPT).take_while(|event| {
            bytes += event.change.bytes();
            bytes <= MAX_BYTES
        });
        let count = latest.count().max(1).min(self.kept.len());
        self.kept.drain(..self.kept.len() - count);
        new
    }
}

impl ServerChange {
    /// `new`, `gone`, or the members that differ.
    pub fn summary(&self) -> String {
        match (&self.before, &self.after) {
            (None, _) => "new".to_owned(),
            (_, None) => "gone".to_owned(),
            _ => excerpt(self.members.join(", ").as_bytes(), MAX_NAME),
        }
    }

    fn bytes(&self) -> usize {
        let texts = [&self.before, &self.after].into_iter().flatten();
        texts.map(|text| text.len()).sum()
    }
}

fn differences(
    server: &Arc<str>,
    subject: ChangeSubject,
    before: &[ListedItem],
    after: &[ListedItem],
) -> Vec<ServerChange> {
    let known: BTreeMap<_, _> = before.iter().map(|item| (&*item.id, &item.json)).collect();
    let listed: BTreeMap<_, _> = after.iter().map(|item| (&*item.id, &item.json)).collect();
    let new = after.iter().filter_map(|item| {
        let before = known.get(&*item.id).copied();
        change(server, subject, &item.id, before, Some(&item.json))
    });
    let gone = before.iter().filter(|item| !listed.contains_key(&*item.id));
    let gone = gone.filter_map(|item| change(server, subject, &item.id, Some(&item.json), None));
    new.chain(gone).collect()
}

fn change(
    server: &Arc<str>,
    subject: ChangeSubject,
    name: &Arc<str>,
    before: Option<&Arc<str>>,
    after: Option<&Arc<str>>,
) -> Option<ServerChange> {
    let members = match (before, after) {
        (Some(before), Some(after)) => Some(different_members(before, after)),
        _ => None,
    };
    let is_same = members.as_ref().is_some_and(Vec::is_empty);
    (!is_same).then(|| ServerChange {
        server: Arc::clone(server),
        subject,
        name: Arc::clone(name),
        before: before.cloned(),
        after: after.cloned(),
        members: members.unwrap_or_default(),
    })
}

/// The members of two definitions whose values mean something else, without `_meta`, which no model reads and which may
/// count or date.
fn different_members(before: &str, after: &str) -> Vec<String> {
    if before == after {
        return Vec::new();
    }
    let before = Members::parse(before).unwrap_or_default();
    let after = Members::parse(after).unwrap_or_default();
    let is_same = |key: &str| match (before.get(key), after.get(key)) {
        (Some(before), Some(after)) => before == after || means_the_same(before, after),
        (before, after) => before == after,
    };
    let mut keys: Vec<_> = before
        .iter()
        .chain(after.iter())
        .map(|(key, _)| key)
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let different = keys
        .into_iter()
        .filter(|key| *key != "_meta" && !is_same(key));
    different.map(str::to_owned).collect()
}

fn means_the_same(before: &str, after: &str) -> bool {
    match (Json::parse(before), Json::parse(after)) {
        (Ok(before), Ok(after)) => before.is_same(&after),
        _ => false,
    }
}

/// The most changes that are kept.
pub const MAX_KEPT: usize = 100;
/// The most bytes of definitions that are kept, except for the latest change.
pub const MAX_BYTES: usize = 2 << 20;
/// What to do about a tool that is new, and that a variant by pattern or hint shows at once.
const NEW_TOOL: &str =
    "; to keep a new tool out of a variant, name those that it shows: tools: [...]";
/// The most changes of one reading that have a line in the log each.
const MAX_LINES: usize = 20;
/// The most changes of one reading that the observer gets.
const MAX_OBSERVED: usize = 1_000;
/// The most items of which it is known what was reported last.
const MAX_REPORTED: usize = 16_384;
/// Characters of a name in the log.
const MAX_NAME: usize = 80;

#[cfg(test)]
mod tests;
