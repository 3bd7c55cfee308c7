//! The resources that servers pointed to in results: where to read them, and for whom they exist, is known
//! only from that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use mcp_vary::json::edit;
use mcp_vary::json::elements;
use mcp_vary_view::uri_identity;

use crate::item::Place;
use crate::listing::ListKind;

/// What pointed to a resource: a tool, a prompt or another resource.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Origin {
    /// The list that has it.
    pub kind: ListKind,
    /// What its server calls it.
    pub own: Arc<str>,
}

impl Origin {
    /// What the list of `kind` has at `place`.
    pub fn at(place: &Place, kind: ListKind) -> Self {
        let own = Arc::clone(&place.own);
        Self { kind, own }
    }
}

/// Which server pointed to a URI, and by what.
///
/// # Properties
///
/// A URI is remembered by what all its spellings share.
///
/// Of each server the same number of links is remembered. When one has told more, whatever told most of them
/// loses the older half of its own: a tool that prints links without end takes none from another.
#[derive(Debug, Default)]
pub struct Links {
    /// By name, which stays when the configuration changes.
    servers: Mutex<BTreeMap<Arc<str>, OfServer>>,
}

#[derive(Debug, Default)]
struct OfServer {
    told: BTreeMap<Arc<Origin>, Told>,
    origins: BTreeMap<Arc<str>, BTreeSet<Arc<Origin>>>,
    /// How many links there are, and when the last one was told.
    count: usize,
    clock: u64,
}

/// What one origin pointed to, and when it last did.
#[derive(Debug, Default)]
struct Told {
    times: BTreeMap<Arc<str>, u64>,
    oldest: BTreeMap<u64, Arc<str>>,
}

/// Servers that are remembered, those included that are no longer configured.
const SERVERS: usize = 1_024;
/// Links of one server.
const MOST: usize = 4_096;
/// URIs that one result may add.
const OF_ONE: usize = 256;
/// Longer ones are not remembered.
const LONGEST: usize = 2048;

impl Links {
    /// Remembers the resources that `result` of `server` holds or links to.
    pub fn note(&self, server: &Arc<str>, origin: &Origin, result: &str) {
        // Most results hold no resource at all.
        if !result.contains("resource") && !result.contains("contents") {
            return;
        }
        let found = uris(result);
        if found.is_empty() {
            return;
        }
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if servers.len() >= SERVERS && !servers.contains_key(server) {
            // So many were taken out of the configuration, one after the other.
            servers.pop_first();
        }
        let links = servers.entry(Arc::clone(server)).or_default();
        for uri in found {
            links.add(origin, uri);
        }
    }

    /// Whether something of `server` that `shows` pointed to `uri`: a tool, a prompt or a resource, or a resource
    /// that such a one pointed to, and so on, a few steps and so many origins far.
    pub fn leads(&self, server: &str, uri: &str, shows: impl Fn(&Origin) -> bool) -> bool {
        let mut seen: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut near: Vec<Arc<str>> = vec![uri.into()];
        let mut left = LOOKED_AT;
        for _ in 0..STEPS {
            let origins = near.iter().flat_map(|uri| self.origins(server, uri));
            let origins: Vec<_> = origins.take(left).collect();
            if origins.iter().any(|origin| shows(origin)) {
                return true;
            }
            left -= origins.len();
            let resources = origins.iter().filter(|it| it.kind == ListKind::Resources);
            let resources = resources.map(|origin| Arc::clone(&origin.own));
            near = resources
                .filter(|own| seen.insert(Arc::clone(own)))
                .collect();
        }
        false
    }

    /// What of `server` pointed to `uri`, so many of it.
    fn origins(&self, server: &str, uri: &str) -> Vec<Arc<Origin>> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let uri = uri_identity(uri);
        let origins = servers.get(server).and_then(|it| it.origins.get(&*uri));
        let origins = origins.into_iter().flatten();
        origins.take(LOOKED_AT).cloned().collect()
    }
}

/// A resource that was pointed to may point on, so many times.
const STEPS: usize = 5;
/// Origins that are looked at to find out whether one shows.
const LOOKED_AT: usize = 1_024;

impl OfServer {
    fn add(&mut self, origin: &Origin, uri: String) {
        let known = self.told.get_key_value(origin);
        let origin = known.map_or_else(|| Arc::new(origin.clone()), |(known, _)| Arc::clone(known));
        let known = self.origins.get_key_value(&*uri);
        let uri: Arc<str> = known.map_or_else(|| uri.into(), |(known, _)| Arc::clone(known));
        let origins = self.origins.entry(Arc::clone(&uri)).or_default();
        origins.insert(Arc::clone(&origin));
        let told = self.told.entry(origin).or_default();
        self.clock += 1;
        match told.times.insert(Arc::clone(&uri), self.clock) {
            Some(before) => drop(told.oldest.remove(&before)),
            None => self.count += 1,
        }
        told.oldest.insert(self.clock, uri);
        if self.count > MOST {
            self.forget();
        }
    }

    /// Forgets the older half of what was told by whoever told most.
    fn forget(&mut self) {
        let most = self.told.iter().max_by_key(|(_, told)| told.times.len());
        let Some(origin) = most.map(|(origin, _)| Arc::clone(origin)) else {
            return;
        };
        let Some(told) = self.told.get_mut(&origin) else {
            return;
        };
        for _ in 0..told.times.len().div_ceil(2) {
            let Some((_, uri)) = told.oldest.pop_first() else {
                break;
            };
            told.times.remove(&uri);
            self.count -= 1;
            if let Some(origins) = self.origins.get_mut(&uri) {
                origins.remove(&origin);
                if origins.is_empty() {
                    self.origins.remove(&uri);
                }
            }
        }
        if told.times.is_empty() {
            self.told.remove(&origin);
        }
    }
}

/// The URIs in the content of a call, the messages of a prompt, or the contents of a resource.
fn uris(result: &str) -> Vec<String> {
    let array = |key| edit::get(result, key).and_then(|text| elements(text).ok());
    let mut blocks = array("content").unwrap_or_default();
    for message in array("messages").unwrap_or_default() {
        match edit::get(message, "content") {
            Some(many) if many.starts_with('[') => {
                blocks.extend(elements(many).unwrap_or_default())
            }
            Some(one) => blocks.push(one),
            None => {}
        }
    }
    let of_blocks = blocks.into_iter().filter_map(|block| {
        edit::get(block, "resource")
            .map_or_else(|| edit::get(block, "uri"), |inner| edit::get(inner, "uri"))
    });
    let of_contents = array("contents").unwrap_or_default();
    let of_contents = of_contents
        .into_iter()
        .filter_map(|part| edit::get(part, "uri"));
    of_blocks
        .chain(of_contents)
        .take(OF_ONE)
        .filter_map(|uri| serde_json::from_str::<String>(uri).ok())
        .filter(|uri| uri.len() <= LONGEST)
        .map(|uri| uri_identity(&uri).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_result_points_to_is_found() {
        let result = r#"{"content":[{"type":"text","text":"resource"},{"type":"resource_link","uri":"a:1"},
            {"type":"resource","resource":{"uri":"a:2","text":""}},7]}"#;
        assert_eq!(uris(result), ["a:1", "a:2"]);
        let prompt = r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"a:3"}}}]}"#;
        assert_eq!(uris(prompt), ["a:3"]);
        assert_eq!(uris(r#"{"contents":[{"uri":"a:4"},{"uri":5}]}"#), ["a:4"]);
        assert!(uris("7").is_empty());
    }

    fn tool(name: &str) -> Origin {
        Origin {
            kind: ListKind::Tools,
            own: name.into(),
        }
    }

    fn link(uri: &str) -> String {
        format!(r#"{{"content":[{{"type":"resource_link","uri":"{uri}"}}]}}"#)
    }

    #[test]
    fn who_points_to_something_is_remembered_by_name() {
        let links = Links::default();
        for (server, name) in [("c", "b"), ("b", "c"), ("b", "a"), ("d", "a"), ("b", "a")] {
            links.note(&server.into(), &tool(name), &link("a:1"));
        }
        let told = |server, uri| {
            let origins = links.origins(server, uri).into_iter();
            let origins = origins.map(|origin| origin.own.to_string());
            origins.collect::<Vec<_>>().join(" ")
        };
        let all = ["a", "b", "c", "d"].map(|server| told(server, "a:1"));
        assert_eq!(all, ["", "a c", "b", "a"]);
        assert_eq!(told("b", "a:2"), "");
        assert!(links.leads("b", "a:1", |origin| &*origin.own == "c"));
        assert!(!links.leads("c", "a:1", |origin| &*origin.own == "c"));
    }

    /// Resources that all point to each other, and to what is read: each is looked at once.
    #[test]
    fn a_web_of_links_is_looked_at_once() {
        let links = Links::default();
        let page = |n: usize| Origin {
            kind: ListKind::Resources,
            own: format!("web:{n}").into(),
        };
        for (from, to) in (0..64).flat_map(|from| (0..64).map(move |to| (from, to))) {
            links.note(&"a".into(), &page(from), &link(&format!("web:{to}")));
        }
        let looked = std::cell::Cell::new(0);
        let found = links.leads("a", "web:1", |_| {
            looked.set(looked.get() + 1);
            false
        });
        assert!(!found && looked.get() <= LOOKED_AT, "{}", looked.get());
        // A tool that pointed to one of them leads to all, a few steps on.
        links.note(&"a".into(), &tool("index"), &link("web:63"));
        assert!(links.leads("a", "web:63", |origin| origin.kind == ListKind::Tools));
        links.note(&"b".into(), &tool("index"), &link("web:0"));
        for n in 0..STEPS {
            links.note(&"b".into(), &page(n), &link(&format!("web:{}", n + 1)));
        }
        let leads =
            |n: usize| links.leads("b", &format!("web:{n}"), |it| it.kind == ListKind::Tools);
        assert!((0..STEPS).all(leads) && !leads(STEPS));
    }

    /// SV-14: what is remembered is bounded, and who points to many things takes nothing from others.
    #[test]
    fn a_tool_that_links_without_end_takes_nothing_from_others() {
        let links = Links::default();
        links.note(&"a".into(), &tool("modest"), &link("a:1"));
        links.note(&"b".into(), &tool("loud"), &link("a:2"));
        for n in 0..3 * MOST {
            links.note(&"a".into(), &tool("loud"), &link(&format!("b:{n}")));
        }
        assert_eq!(links.origins("a", "a:1").len(), 1);
        assert_eq!(links.origins("b", "a:2").len(), 1);
        let known = |n: usize| links.origins("a", &format!("b:{n}")).len();
        assert_eq!(
            (known(0), known(3 * MOST - 1)),
            (0, 1),
            "its oldest go first"
        );
        let servers = links.servers.lock().unwrap();
        let held = &servers["a"];
        assert!(
            held.count <= MOST && held.count > MOST / 2,
            "{}",
            held.count
        );
        let told: usize = held.told.values().map(|told| told.times.len()).sum();
        let oldest: usize = held.told.values().map(|told| told.oldest.len()).sum();
        let origins: usize = held.origins.values().map(BTreeSet::len).sum();
        assert_eq!([told, oldest, origins], [held.count; 3]);
    }

    #[test]
    fn what_is_told_again_is_young_again() {
        let links = Links::default();
        for n in 0..MOST {
            links.note(&"a".into(), &tool("a"), &link(&format!("b:{n}")));
        }
        links.note(&"a".into(), &tool("a"), &link("b:0"));
        links.note(&"a".into(), &tool("a"), &link("b:more"));
        let known = |uri| links.origins("a", uri).len();
        assert_eq!((known("b:0"), known("b:1")), (1, 0));
    }
}
