//! The lists of several servers as one: how names are kept apart, and who wins where they are not.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::listing::{self, ListKind, Listing};
use crate::reply::Failure;
use crate::revision::Era;
use crate::splice;

/// How the names of tools and prompts tell which server they belong to.
///
/// # Examples
///
/// The tool `search` of the server `git` is called `git_search` with [`Always`](Self::Always). With
/// [`OnCollision`](Self::OnCollision) it is called so only if another server has a `search`, too, which
/// is then called by its server's name as well: whoever comes later must not take a name away.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Naming {
    /// As they are before one server, [`Always`](Self::Always) before several.
    #[default]
    AsNeeded,
    /// `server_name`, before one server, too.
    Always,
    /// As they are; of two with one name the server that was configured first wins.
    Never,
    /// As they are, but for names that several servers have.
    OnCollision,
}

/// Two servers offer the same thing by the same name, so that only one can be reached.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Collision {
    /// The list, by its method: `tools/list` for example.
    pub list: &'static str,
    /// The name or URI.
    pub id: String,
    /// The server that is reached by it: the one that was configured first.
    pub kept_by: String,
    /// The server whose item is hidden.
    pub hidden: String,
}

/// What one server lists, with what merging needs to know of the server.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) server: Arc<str>,
    pub(crate) era: Era,
    /// Whether it was ever connected to.
    pub(crate) is_known: bool,
    /// `None` when the server has no such list.
    pub(crate) listing: Option<Result<Arc<Listing>, Failure>>,
}

impl Part {
    fn is_read(&self) -> bool {
        self.is_known && !matches!(self.listing, Some(Err(_)))
    }
}

/// One list over all servers.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) kind: ListKind,
    /// The result of the only page of the only server, as it was written.
    pub(crate) whole: Option<Arc<str>>,
    /// The members of a result; the items are an empty array.
    pub(crate) frame: Arc<str>,
    /// Why there are none, when no server's list could be read.
    pub(crate) items: Result<Vec<Item>, Failure>,
    /// The names of the servers.
    pub(crate) servers: Vec<Arc<str>>,
    /// Whether the lists of all servers could be read.
    pub(crate) is_complete: bool,
    pub(crate) collisions: Vec<Collision>,
}

/// One item as clients see it in `standard`, and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) id: Arc<str>,
    pub(crate) json: Arc<str>,
    pub(crate) place: Place,
    pub(crate) era: Era,
}

/// Which server has something, and what it is called there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Place {
    /// The index of the server.
    pub(crate) server: usize,
    pub(crate) own: Arc<str>,
}

impl Merged {
    /// Merges what the servers list of `kind`, in the order in which they were configured.
    pub(crate) fn new(kind: ListKind, parts: &[Part], naming: Naming) -> Self {
        let renamed = Renaming::new(kind, parts, naming);
        if let ([part], false) = (parts, renamed.all) {
            return Self::of_one(kind, part);
        }
        let mut items = Vec::new();
        let mut collisions = Vec::new();
        let mut owners: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        for (at, part) in parts.iter().enumerate() {
            let Some(Ok(listing)) = &part.listing else {
                continue;
            };
            let mut reported = BTreeSet::new();
            for item in &listing.items {
                let item = renamed.item(at, part, item);
                let owner = *owners.entry(Arc::clone(&item.id)).or_insert(at);
                if owner == at {
                    items.push(item);
                } else if reported.insert(Arc::clone(&item.id)) {
                    collisions.push(Collision {
                        list: kind.method(),
                        id: item.id.to_string(),
                        kept_by: parts[owner].server.to_string(),
                        hidden: part.server.to_string(),
                    });
                }
            }
        }
        Self {
            kind,
            whole: None,
            frame: format!(r#"{{"{}":[]}}"#, kind.items_key()).into(),
            items: unreadable(parts).map_or(Ok(items), Err),
            servers: parts.iter().map(|part| Arc::clone(&part.server)).collect(),
            is_complete: parts.iter().all(Part::is_read),
            collisions,
        }
    }

    /// The list of the only server is carried as it was written.
    fn of_one(kind: ListKind, part: &Part) -> Self {
        let empty = || format!(r#"{{"{}":[]}}"#, kind.items_key()).into();
        let (whole, frame, items) = match &part.listing {
            Some(Ok(listing)) => (
                listing.whole.clone(),
                Arc::clone(&listing.frame),
                Ok(listing
                    .items
                    .iter()
                    .map(|item| as_it_is(0, part, item))
                    .collect()),
            ),
            Some(Err(failure)) => (None, empty(), Err(failure.clone())),
            None => (None, empty(), Ok(Vec::new())),
        };
        Self {
            kind,
            whole,
            frame,
            items,
            servers: vec![Arc::clone(&part.server)],
            is_complete: part.is_read(),
            collisions: Vec::new(),
        }
    }

    pub(crate) fn items(&self) -> &[Item] {
        self.items.as_deref().unwrap_or_default()
    }
}

/// Why nothing can be listed: every server that has such a list failed.
fn unreadable(parts: &[Part]) -> Option<Failure> {
    let mut first = None;
    for listing in parts.iter().filter_map(|part| part.listing.as_ref()) {
        match listing {
            Ok(_) => return None,
            Err(failure) => first = first.or(Some(failure)),
        }
    }
    first.cloned()
}

fn as_it_is(server: usize, part: &Part, item: &listing::Item) -> Item {
    Item {
        id: Arc::clone(&item.id),
        json: Arc::clone(&item.json),
        place: Place {
            server,
            own: Arc::clone(&item.id),
        },
        era: part.era,
    }
}

/// Which names of a list are prefixed.
struct Renaming<'a> {
    kind: ListKind,
    all: bool,
    /// The names that several servers have.
    shared: BTreeSet<&'a str>,
    /// All names as the servers have them, where some keep theirs.
    kept: BTreeSet<&'a str>,
}

impl<'a> Renaming<'a> {
    fn new(kind: ListKind, parts: &'a [Part], naming: Naming) -> Self {
        let is_named = matches!(kind, ListKind::Tools | ListKind::Prompts);
        let all = match naming {
            Naming::AsNeeded => parts.len() > 1,
            Naming::Always => true,
            Naming::Never | Naming::OnCollision => false,
        };
        let shared = match naming {
            Naming::OnCollision if is_named => shared_names(parts),
            _ => BTreeSet::new(),
        };
        let kept = match shared.is_empty() {
            true => BTreeSet::new(),
            false => names(parts).map(|(_, name)| name).collect(),
        };
        Self {
            kind,
            all: all && is_named,
            shared,
            kept,
        }
    }

    fn item(&self, server: usize, part: &Part, item: &listing::Item) -> Item {
        let mut out = as_it_is(server, part, item);
        if self.all || self.shared.contains(&*item.id) {
            let name = prefixed(&part.server, &item.id);
            // A name that a server gave itself stays its own.
            let is_taken = self.kept.contains(name.as_str());
            out.id = if is_taken { marked(name) } else { name }.into();
            let name = mcp_vary::json::string(&out.id);
            out.json = match splice::set(&item.json, self.kind.id_key(), &name) {
                Cow::Borrowed(_) => Arc::clone(&item.json),
                Cow::Owned(json) => json.into(),
            };
        }
        out
    }
}

fn shared_names(parts: &[Part]) -> BTreeSet<&str> {
    let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
    let mut shared = BTreeSet::new();
    for (at, name) in names(parts) {
        if *owners.entry(name).or_insert(at) != at {
            shared.insert(name);
        }
    }
    shared
}

/// Every name, with the index of its server.
fn names(parts: &[Part]) -> impl Iterator<Item = (usize, &str)> {
    parts.iter().enumerate().flat_map(|(at, part)| {
        let items = match &part.listing {
            Some(Ok(listing)) => &listing.items[..],
            _ => &[],
        };
        items.iter().map(move |item| (at, &*item.id))
    })
}

/// The longest name that the large models' interfaces take.
const MAX_NAME: usize = 64;
/// What a cut name ends with, so that two of them stay apart.
const MARK: usize = 7;

/// `server_name`, within what clients take: letters, digits, `_`, `-` and `.`, at most 64.
///
/// Names without a prefix are the server's own and left alone, however long they are.
fn prefixed(server: &str, name: &str) -> String {
    let whole = format!("{server}_{name}");
    let takes = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut plain: String = whole
        .chars()
        .map(|c| if takes(c) { c } else { '_' })
        .collect();
    // What was written otherwise must not be taken for what is written so.
    if plain.len() > MAX_NAME || plain != whole {
        plain = with_mark(plain, &whole);
    }
    plain
}

/// A name that nobody else has.
fn marked(name: String) -> String {
    let whole = name.clone();
    with_mark(name, &whole)
}

fn with_mark(mut name: String, whole: &str) -> String {
    let digest = Sha256::digest(whole.as_bytes());
    name.truncate(MAX_NAME - MARK);
    name.push('_');
    name.extend(digest[..3].iter().map(|byte| format!("{byte:02x}")));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(server: &str, names: &[&str]) -> Part {
        let item = |name: &&str| listing::Item {
            id: (*name).into(),
            json: format!(r#"{{"name": "{name}","x":1.0}}"#).into(),
        };
        let listing = Listing {
            whole: None,
            frame: r#"{"tools":[]}"#.into(),
            items: names.iter().map(item).collect(),
            ttl: std::time::Duration::ZERO,
        };
        Part {
            server: server.into(),
            era: Era::Legacy,
            is_known: true,
            listing: Some(Ok(listing.into())),
        }
    }

    #[track_caller]
    fn are_called(naming: Naming, parts: &[Part], expected: &[&str]) -> Vec<Collision> {
        let merged = Merged::new(ListKind::Tools, parts, naming);
        let names: Vec<_> = merged.items().iter().map(|item| &*item.id).collect();
        assert_eq!(names, expected, "{naming:?}");
        for item in merged.items() {
            assert_eq!(
                splice::get(&item.json, "name"),
                Some(mcp_vary::json::string(&item.id).as_str())
            );
        }
        merged.collisions
    }

    #[test]
    fn names_are_kept_apart_as_the_operator_says() {
        let two = [part("git", &["log", "show"]), part("web", &["get", "show"])];
        let prefixed = ["git_log", "git_show", "web_get", "web_show"];
        assert_eq!(are_called(Naming::AsNeeded, &two, &prefixed), []);
        assert_eq!(are_called(Naming::Always, &two, &prefixed), []);
        let some = ["log", "git_show", "get", "web_show"];
        assert_eq!(are_called(Naming::OnCollision, &two, &some), []);
        let hidden = are_called(Naming::Never, &two, &["log", "show", "get"]);
        let collision = Collision {
            list: "tools/list",
            id: "show".into(),
            kept_by: "git".into(),
            hidden: "web".into(),
        };
        assert_eq!(hidden, [collision]);
        are_called(Naming::AsNeeded, &two[..1], &["log", "show"]);
        are_called(Naming::Always, &two[..1], &["git_log", "git_show"]);
    }

    #[test]
    fn a_server_that_is_called_like_a_prefix_takes_nothing_away() {
        let two = [part("a", &["b_c"]), part("a_b", &["c", "d"])];
        let hidden = are_called(Naming::Always, &two, &["a_b_c", "a_b_d"]);
        assert_eq!((hidden[0].kept_by.as_str(), hidden.len()), ("a", 1));
    }

    #[test]
    fn a_name_that_a_server_gave_itself_stays_its_own() {
        let two = [part("git", &["show", "git_show"]), part("web", &["show"])];
        let merged = Merged::new(ListKind::Tools, &two, Naming::OnCollision);
        let names: Vec<_> = merged.items().iter().map(|item| &*item.id).collect();
        assert!(
            names[0].starts_with("git_show_") && names[0].len() == 15,
            "{names:?}"
        );
        assert_eq!(names[1..], ["git_show", "web_show"]);
        assert_eq!(merged.collisions, []);
    }

    #[test]
    fn a_prefixed_name_is_one_that_clients_take() {
        assert_eq!(prefixed("git", "log"), "git_log");
        let odd = prefixed("git", "größe/öffnen");
        assert!(odd.starts_with("git_gr__e__ffnen_"), "{odd}");
        assert_ne!(odd, prefixed("git", "größe.öffnen"));
        let long = "x".repeat(100);
        let (one, other) = (prefixed("a", &long), prefixed("a", &format!("{long}x")));
        assert_eq!((one.len(), other.len()), (MAX_NAME, MAX_NAME));
        assert_ne!(one, other);
    }

    #[test]
    fn what_cannot_be_read_hides_nothing_else() {
        let mut two = [part("git", &["log"]), part("web", &["get"])];
        two[0].listing = Some(Err(Failure::internal("broken")));
        are_called(Naming::AsNeeded, &two, &["web_get"]);
        two[1].listing = None;
        let merged = Merged::new(ListKind::Tools, &two, Naming::AsNeeded);
        assert_eq!(merged.items.unwrap_err().message(), "broken");
    }
}
