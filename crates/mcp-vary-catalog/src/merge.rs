//! Merges the lists of several servers: how names are made unique, and which server wins where they are not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_vary::json::Members;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use sha2::{Digest as _, Sha256};

use super::index::ServerIndex;
use super::item::{Item, ItemRef};
use super::listing::{ListKind, Listing};
use crate::listing;

/// How the names of tools and prompts indicate their server.
///
/// # Examples
///
/// The tool `search` of the server `git` is called `git_search` with [`Always`](Self::Always). With
/// [`OnCollision`](Self::OnCollision) it has this name only if another server also has a `search`. The other tool then
/// gets a prefix as well, so that a server that connects later cannot take over a name.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Naming {
    /// Unchanged with one server, [`Always`](Self::Always) with several.
    #[default]
    AsNeeded,
    /// `server_name`, even with a single server.
    Always,
    /// Unchanged. Of two servers with the same name, a variant shows the one that was configured first, of those whose
    /// item it shows at all.
    Never,
    /// Unchanged, except for names that several servers have.
    OnCollision,
}

/// Two servers offer an item with the same name, so that a variant that shows both reaches only one of them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Collision {
    /// The method of the list, `tools/list` for example.
    pub list: &'static str,
    /// The name or URI.
    pub id: String,
    /// The server that is reached by the name.
    pub reachable: String,
    /// The server whose item is hidden.
    pub hidden: String,
}

/// What one server lists, with what merging needs to know about the server.
#[derive(Clone, Debug)]
pub struct ServerListing {
    /// The name of the server.
    pub server: Arc<str>,
    /// The traits of the server that affect how its items are shown.
    pub server_era: Era,
    /// Whether there was ever a connection to it.
    pub was_connected: bool,
    /// `None` when the server has no such list.
    pub listing: Option<Result<Arc<Listing>, RpcError>>,
}

/// A list that was read again with the same contents is equal.
impl PartialEq for ServerListing {
    fn eq(&self, other: &Self) -> bool {
        let is_same = match (&self.listing, &other.listing) {
            (Some(Ok(one)), Some(Ok(other))) => Arc::ptr_eq(one, other) || one == other,
            (one, other) => one == other,
        };
        is_same
            && self.server == other.server
            && self.server_era == other.server_era
            && self.was_connected == other.was_connected
    }
}

impl ServerListing {
    fn is_readable(&self) -> bool {
        self.was_connected && !matches!(self.listing, Some(Err(_)))
    }
}

/// One list, merged from all servers.
#[derive(Debug)]
pub struct MergedList {
    /// Which list it is.
    pub kind: ListKind,
    /// The result of the only page of the only server, as written.
    pub passthrough: Option<Arc<str>>,
    /// The members of a result, with an empty array of items.
    pub frame: Arc<str>,
    /// The items, or the error if no server's list could be read.
    pub items: Result<Vec<Arc<Item>>, RpcError>,
    /// The names of the servers.
    pub servers: Vec<Arc<str>>,
    /// Whether the lists of all servers could be read.
    pub is_complete: bool,
    /// For each name or URI that several servers have, the server that it refers to where a view shows the items of all.
    pub(super) owners: SharedOwners,
    /// The items of the others.
    pub collisions: Vec<Collision>,
}

/// The owners of names that several servers have.
pub(super) type SharedOwners = BTreeMap<Arc<str>, ServerIndex>;

impl MergedList {
    /// Merges the servers' lists of `kind`, in the order of configuration. Items that are unchanged since `before` are
    /// reused. A name or URI that is `assigned` to one server refers to an item of another only in views that show no such
    /// item of the first.
    pub(super) fn new(
        kind: ListKind,
        parts: &[ServerListing],
        naming: Naming,
        before: Option<&Self>,
        assigned: &AssignedServers,
    ) -> Self {
        let renamed = NamePrefixes::new(kind, parts, naming, assigned);
        let known = PreviousItems::new(kind, before);
        if !renamed.all
            && let [part] = parts
        {
            return Self::from_single_server(kind, part, &known);
        }
        let mut items = Vec::new();
        let mut collisions = Vec::new();
        let mut owners = SharedOwners::new();
        let mut shared = SharedOwners::new();
        let assignee = |id: &Arc<str>| {
            let server = assigned.get(id)?;
            ServerIndex::find(parts, |part| part.server == *server)
        };
        for (at, part) in ServerIndex::enumerate(parts) {
            let Some(Ok(listing)) = &part.listing else {
                continue;
            };
            let mut reported = BTreeSet::new();
            for item in &listing.items {
                let item = known.get_or_create(at, part, item, &renamed.name(part, item));
                let owner = owners.entry(Arc::clone(&item.id));
                let owner = *owner.or_insert_with(|| assignee(&item.id).unwrap_or(at));
                if owner != at
                    && let Some(reachable) = owner.get(parts)
                    && reported.insert(Arc::clone(&item.id))
                {
                    shared.insert(Arc::clone(&item.id), owner);
                    collisions.push(Collision {
                        list: kind.method(),
                        id: item.id.to_string(),
                        reachable: reachable.server.to_string(),
                        hidden: part.server.to_string(),
                    });
                }
                items.push(item);
            }
        }
        Self {
            kind,
            passthrough: None,
            frame: empty_frame(kind),
            items: read_failure(parts).map_or(Ok(items), Err),
            servers: server_names(parts),
            is_complete: parts.iter().all(ServerListing::is_readable),
            owners: shared,
            collisions,
        }
    }

    /// The list of a single server keeps the text that the server wrote.
    fn from_single_server(kind: ListKind, part: &ServerListing, known: &PreviousItems<'_>) -> Self {
        let (passthrough, frame, items) = match &part.listing {
            Some(Ok(listing)) => (
                listing.passthrough.clone(),
                Arc::clone(&listing.frame),
                Ok(listing
                    .items
                    .iter()
                    .map(|item| known.get_or_create(ServerIndex::FIRST, part, item, &item.id))
                    .collect()),
            ),
            Some(Err(failure)) => (None, empty_frame(kind), Err(failure.clone())),
            None => (None, empty_frame(kind), Ok(Vec::new())),
        };
        Self {
            kind,
            passthrough,
            frame,
            items,
            servers: server_names(std::slice::from_ref(part)),
            is_complete: part.is_readable(),
            owners: SharedOwners::new(),
            collisions: Vec::new(),
        }
    }

    /// The items; empty if no server's list could be read.
    pub fn items(&self) -> &[Arc<Item>] {
        self.items.as_deref().unwrap_or_default()
    }

    /// The items, each with the name of its server.
    pub fn items_with_server(&self) -> impl Iterator<Item = (&Arc<Item>, &str)> {
        let items = self.items().iter();
        items.map(|item| (item, &**self.server_name(&item.item_ref)))
    }

    /// Whether another server's item has the name of `item` wherever a view shows both.
    pub fn is_shadowed(&self, item: &Item) -> bool {
        let owner = self.owners.get(&item.id);
        owner.is_some_and(|owner| *owner != item.item_ref.server)
    }

    /// The name of the server that has an item of this list.
    pub fn server_name(&self, item: &ItemRef) -> &Arc<str> {
        server_name(&self.servers, item)
    }
}

/// A result without items.
fn empty_frame(kind: ListKind) -> Arc<str> {
    Arc::from(Members::from_iter([(kind.items_key(), "[]")]).to_json())
}

fn server_names(parts: &[ServerListing]) -> Vec<Arc<str>> {
    parts.iter().map(|part| Arc::clone(&part.server)).collect()
}

/// For one list, the name of the server that each name or URI is assigned to.
pub(super) type AssignedServers = BTreeMap<Arc<str>, Arc<str>>;

/// The name of the server that has `item`, of the servers whose lists it was merged from.
pub(super) fn server_name<'a>(servers: &'a [Arc<str>], item: &ItemRef) -> &'a Arc<str> {
    item.server.entry(servers)
}

/// The error if every server that has such a list failed.
fn read_failure(parts: &[ServerListing]) -> Option<RpcError> {
    let mut first = None;
    for listing in parts.iter().filter_map(|part| part.listing.as_ref()) {
        match listing {
            Ok(_) => return None,
            Err(failure) => first = first.or(Some(failure)),
        }
    }
    first.cloned()
}

/// The previous items of a list, indexed for reuse.
struct PreviousItems<'a> {
    kind: ListKind,
    /// By server and the server's own name. A server may have several items with the same name.
    items: BTreeMap<(ServerIndex, &'a str), Vec<&'a Arc<Item>>>,
}

impl<'a> PreviousItems<'a> {
    fn new(kind: ListKind, before: Option<&'a MergedList>) -> Self {
        let mut items: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for item in before.map_or(&[][..], MergedList::items) {
            let place = (item.item_ref.server, &*item.item_ref.upstream_name);
            items.entry(place).or_default().push(item);
        }
        Self { kind, items }
    }

    /// The previous item if it is unchanged, else a new one with the name `id`.
    fn get_or_create(
        &self,
        server: ServerIndex,
        part: &ServerListing,
        item: &listing::ListedItem,
        id: &Arc<str>,
    ) -> Arc<Item> {
        let mut known = self.items.get(&(server, &*item.id)).into_iter().flatten();
        let same = known.find(|known| known.matches(server, part.server_era, item, id));
        let create = || {
            Arc::new(Item::new(
                self.kind,
                server,
                part.server_era,
                item,
                Arc::clone(id),
            ))
        };
        same.map_or_else(create, |same| Arc::clone(same))
    }
}

/// Which names of a list are prefixed.
struct NamePrefixes<'a> {
    all: bool,
    servers: Vec<&'a str>,
    /// The names that several servers have.
    shared: BTreeSet<&'a str>,
    /// All names that servers use, if names are prefixed on collision.
    upstream_names: BTreeSet<&'a str>,
    /// The servers that names are assigned to, where names are prefixed on collision.
    assigned: Option<&'a AssignedServers>,
}

impl<'a> NamePrefixes<'a> {
    fn new(
        kind: ListKind,
        parts: &'a [ServerListing],
        naming: Naming,
        assigned: &'a AssignedServers,
    ) -> Self {
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
        let is_assigned = naming == Naming::OnCollision && is_named;
        let assigned = is_assigned.then_some(assigned);
        let upstream_names = match assigned {
            None => BTreeSet::new(),
            Some(_) => upstream_names(parts).map(|(_, name)| name).collect(),
        };
        Self {
            all: all && is_named,
            servers: parts.iter().map(|part| &*part.server).collect(),
            shared,
            upstream_names,
            assigned,
        }
    }

    /// Whether the prefixed name would start with the prefix of another server: `git` and `hub_delete` if there is a
    /// server `git_hub`. The prefix is reserved for the server with the longer name.
    fn is_shadowing(&self, server: &str, name: &str) -> bool {
        let begins_with = |other: &str| {
            let of_server = other.strip_prefix(server);
            let native = of_server.and_then(|remaining| remaining.strip_prefix('_'));
            let after = native.and_then(|native| name.strip_prefix(native));
            after.is_some_and(|after| after.starts_with('_'))
        };
        self.servers.iter().any(|other| begins_with(other))
    }

    /// What clients call `item`.
    fn name(&self, part: &ServerListing, item: &listing::ListedItem) -> Arc<str> {
        let assignee = |name: &str| self.assigned?.get(name);
        let is_of_another = |name| assignee(name).is_some_and(|server| *server != part.server);
        let is_bare = !self.all && !self.shared.contains(&*item.id);
        if is_bare && !is_of_another(&item.id) {
            return Arc::clone(&item.id);
        }
        let name = if self.is_shadowing(&part.server, &item.id) {
            // The name is made distinct even if the other server does not have such an item now.
            let whole = format!("{}\0{}", part.server, item.id);
            with_digest_suffix(prefixed(&part.server, &item.id), &whole)
        } else {
            prefixed(&part.server, &item.id)
        };
        // A name that a server uses itself takes precedence, unless clients already know it as the name of this item.
        let is_listed = assignee(&name).is_some_and(|server| *server == part.server);
        let is_taken = self.upstream_names.contains(name.as_str()) && !is_listed;
        if is_taken {
            with_own_digest(name)
        } else {
            name
        }
        .into()
    }
}

fn shared_names(parts: &[ServerListing]) -> BTreeSet<&str> {
    let mut owners: BTreeMap<&str, ServerIndex> = BTreeMap::new();
    let mut shared = BTreeSet::new();
    for (at, name) in upstream_names(parts) {
        if *owners.entry(name).or_insert(at) != at {
            shared.insert(name);
        }
    }
    shared
}

/// All names, each with the index of its server.
fn upstream_names(parts: &[ServerListing]) -> impl Iterator<Item = (ServerIndex, &str)> {
    ServerIndex::enumerate(parts).flat_map(|(at, part)| {
        let items = match &part.listing {
            Some(Ok(listing)) => &listing.items[..],
            _ => &[],
        };
        items.iter().map(move |item| (at, &*item.id))
    })
}

/// The maximum length of a name in the APIs of the large models.
const MAX_NAME_BYTES: usize = 64;
/// The length of the digest that keeps truncated names distinct.
const DIGEST_SUFFIX_BYTES: usize = 7;

/// `server_name`, limited to what clients accept: at most 64 letters, digits, `_`, `-` and `.`.
///
/// Names without a prefix are not changed, even if they are longer.
pub fn prefixed(server: &str, name: &str) -> String {
    let whole = format!("{server}_{name}");
    let plain = with_plain_characters(&whole);
    if plain.len() <= MAX_NAME_BYTES && plain == whole {
        return plain;
    }
    let prefix = with_plain_characters(&format!("{server}_"));
    // Many models refuse `.`, and the name is another one anyway.
    let changed = prefix + &with_plain_characters(name).replace('.', "_");
    // It must stay distinct from a name that is spelled like this.
    with_digest_suffix(changed, &whole)
}

fn with_plain_characters(name: &str) -> String {
    let takes = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let plain = name.chars().map(|c| if takes(c) { c } else { '_' });
    plain.collect()
}

/// How the [`prefixed`] names of a server begin.
pub fn name_prefix(server: &str) -> String {
    let mut prefix = with_plain_characters(&format!("{server}_"));
    prefix.truncate(MAX_NAME_BYTES - DIGEST_SUFFIX_BYTES);
    prefix
}

/// Adds a digest of the name to make it unique.
fn with_own_digest(name: String) -> String {
    let whole = name.clone();
    with_digest_suffix(name, &whole)
}

fn with_digest_suffix(mut name: String, whole: &str) -> String {
    let digest = Sha256::digest(whole.as_bytes());
    name.truncate(MAX_NAME_BYTES - DIGEST_SUFFIX_BYTES);
    name.push('_');
    name.extend(digest[..3].iter().map(|byte| format!("{byte:02x}")));
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_vary::json::edit;

    fn part(server: &str, names: &[&str]) -> ServerListing {
        let item = |name: &&str| listing::ListedItem {
            id: (*name).into(),
            json: format!(r#"{{"name": "{name}","x":1.0}}"#).into(),
        };
        let listing = Listing {
            passthrough: None,
            frame: r#"{"tools":[]}"#.into(),
            items: names.iter().map(item).collect(),
            ttl: None,
            faults: crate::list_fault::ListFaults::default(),
        };
        ServerListing {
            server: server.into(),
            server_era: Era::Legacy,
            was_connected: true,
            listing: Some(Ok(listing.into())),
        }
    }

    #[track_caller]
    fn are_called(naming: Naming, parts: &[ServerListing], expected: &[&str]) -> Vec<Collision> {
        let merged = MergedList::new(
            ListKind::Tools,
            parts,
            naming,
            None,
            &AssignedServers::new(),
        );
        let reached = merged.items().iter().filter(|it| !merged.is_shadowed(it));
        let names: Vec<_> = reached.map(|item| &*item.id).collect();
        assert_eq!(names, expected, "{naming:?}");
        for item in merged.items() {
            assert_eq!(
                edit::get(&item.json, "name"),
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
            reachable: "git".into(),
            hidden: "web".into(),
        };
        assert_eq!(hidden, [collision]);
        are_called(Naming::AsNeeded, &two[..1], &["log", "show"]);
        are_called(Naming::Always, &two[..1], &["git_log", "git_show"]);
    }

    /// In either order of configuration, and whether or not the other server lists such a tool.
    #[test]
    fn a_prefix_makes_no_tool_of_another_server() {
        let (short, long) = (part("a", &["b_c", "d"]), part("a_b", &["c", "d"]));
        let marked = "a_b_c_662f0b";
        let both = [short.clone(), long.clone()];
        assert_eq!(
            are_called(Naming::Always, &both, &[marked, "a_d", "a_b_c", "a_b_d"]),
            []
        );
        let both = [long, short.clone()];
        assert_eq!(
            are_called(Naming::Always, &both, &["a_b_c", "a_b_d", marked, "a_d"]),
            []
        );
        let other = [short.clone(), part("a_b", &["x"])];
        are_called(Naming::Always, &other, &[marked, "a_d", "a_b_x"]);
        are_called(
            Naming::Always,
            &[short, part("a_bc", &["x"])],
            &["a_b_c", "a_d", "a_bc_x"],
        );
    }

    #[test]
    fn a_name_that_a_server_gave_itself_stays_its_own() {
        let two = [part("git", &["show", "git_show"]), part("web", &["show"])];
        let none = AssignedServers::new();
        let merged = MergedList::new(ListKind::Tools, &two, Naming::OnCollision, None, &none);
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
        let dotted = prefixed("git", "größe.öffnen");
        assert!(
            dotted.starts_with("git_gr__e__ffnen_") && dotted != odd,
            "{dotted}"
        );
        assert_eq!(prefixed("git", "a.b"), "git_a.b");
        let long = "x".repeat(100);
        let (one, other) = (prefixed("a", &long), prefixed("a", &format!("{long}x")));
        assert_eq!((one.len(), other.len()), (MAX_NAME_BYTES, MAX_NAME_BYTES));
        assert_ne!(one, other);
    }

    #[test]
    fn what_cannot_be_read_hides_nothing_else() {
        let mut two = [part("git", &["log"]), part("web", &["get"])];
        two[0].listing = Some(Err(RpcError::internal("broken")));
        are_called(Naming::AsNeeded, &two, &["web_get"]);
        two[1].listing = None;
        let none = AssignedServers::new();
        let merged = MergedList::new(ListKind::Tools, &two, Naming::AsNeeded, None, &none);
        assert_eq!(merged.items.unwrap_err().message(), "broken");
    }
}
