//! Remembers the resources that results linked to. Such resources may not be listed, so the links decide which server
//! to read them from, and which clients may read them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_vary::json::{edit, elements, may_contain};
use mcp_vary_base::lock::Lock;
use mcp_vary_view::uri_identity;
use mcp_vary_wire::list_kind::ListKind;

/// The source of a link to a resource: a tool, a prompt or another resource.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct LinkSource {
    /// The list that contains the source.
    pub kind: ListKind,
    /// The name or URI that its server gives it.
    pub upstream_name: Arc<str>,
}

impl LinkSource {
    /// The item of the list of `kind` that its server calls `upstream_name`.
    pub fn new(kind: ListKind, upstream_name: &Arc<str>) -> Self {
        Self {
            kind,
            upstream_name: Arc::clone(upstream_name),
        }
    }
}

/// For each server, the URIs that its results linked to, with the sources of the links.
///
/// # Properties
///
/// URIs are stored in normalized form, so that all spellings match.
///
/// Each server has the same maximum number of links. When it is exceeded, the source with the most links loses the
/// older half of them. So a tool that returns endless links does not evict the links of others.
#[derive(Debug, Default)]
pub struct LinkIndex {
    /// By the name of the server, which stays the same when the configuration changes.
    servers: Lock<BTreeMap<Arc<str>, ServerLinks>>,
}

#[derive(Debug, Default)]
struct ServerLinks {
    by_source: BTreeMap<Arc<LinkSource>, SourceLinks>,
    sources: BTreeMap<Arc<str>, BTreeSet<Arc<LinkSource>>>,
    /// The number of links, and a counter that orders them by age.
    count: usize,
    clock: u64,
}

/// The links of one source, and when each was last seen.
#[derive(Debug, Default)]
struct SourceLinks {
    last_seen: BTreeMap<Arc<str>, u64>,
    by_age: BTreeMap<u64, Arc<str>>,
}

/// The maximum number of servers, including servers that are no longer configured.
const MAX_SERVERS: usize = 1_024;
/// The maximum number of links of one server.
const MAX_LINKS_PER_SERVER: usize = 4_096;
/// The maximum number of URIs from one result.
const MAX_URIS_PER_RESULT: usize = 256;
/// The maximum length of a URI. Longer URIs are not stored.
const MAX_URI_BYTES: usize = 2048;

impl LinkIndex {
    /// Records the resources that `result` of `server` contains or links to.
    pub fn record(&self, server: &Arc<str>, origin: &LinkSource, result: &str) {
        // Fast path: most results contain no resources.
        if !may_contain(result, "resource") && !may_contain(result, "contents") {
            return;
        }
        let found = resource_uris(result);
        if found.is_empty() {
            return;
        }
        let mut servers = self.servers.lock();
        if servers.len() >= MAX_SERVERS && !servers.contains_key(server) {
            // Most of these servers are no longer configured.
            servers.pop_first();
        }
        let links = servers.entry(Arc::clone(server)).or_default();
        for uri in found {
            links.add(origin, uri);
        }
    }

    /// Whether an item of `server` that `shows` accepts has linked to `uri`, directly or through other resources. The
    /// number of steps and sources is limited.
    pub fn is_reachable(
        &self,
        server: &str,
        uri: &str,
        shows: impl Fn(&LinkSource) -> bool,
    ) -> bool {
        let mut seen: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut near: Vec<Arc<str>> = vec![uri.into()];
        let mut left = MAX_SOURCES;
        for _ in 0..MAX_STEPS {
            let sources = near.iter().flat_map(|uri| self.sources(server, uri));
            let origins: Vec<_> = sources.take(left).collect();
            if origins.iter().any(|origin| shows(origin)) {
                return true;
            }
            left -= origins.len();
            let resources = origins.iter().filter(|it| it.kind == ListKind::Resources);
            let uris = resources.map(|origin| Arc::clone(&origin.upstream_name));
            near = uris
                .filter(|upstream_uri| seen.insert(Arc::clone(upstream_uri)))
                .collect();
        }
        false
    }

    /// The sources of `server` that linked to `uri`, up to a maximum number.
    fn sources(&self, server: &str, uri: &str) -> Vec<Arc<LinkSource>> {
        let servers = self.servers.lock();
        let uri = uri_identity(uri);
        let links = servers.get(server);
        let origins = links.and_then(|links| links.sources.get(&*uri));
        let all = origins.into_iter().flatten();
        all.take(MAX_SOURCES).cloned().collect()
    }
}

/// The maximum number of links to follow from one resource to the next.
const MAX_STEPS: usize = 5;
/// The maximum number of sources to check.
const MAX_SOURCES: usize = 1_024;

impl ServerLinks {
    fn add(&mut self, origin: &LinkSource, uri: String) {
        let known = self.by_source.get_key_value(origin);
        let origin = known.map_or_else(|| Arc::new(origin.clone()), |(known, _)| Arc::clone(known));
        let known = self.sources.get_key_value(&*uri);
        let uri: Arc<str> = known.map_or_else(|| uri.into(), |(known, _)| Arc::clone(known));
        let origins = self.sources.entry(Arc::clone(&uri)).or_default();
        origins.insert(Arc::clone(&origin));
        let of_source = self.by_source.entry(origin).or_default();
        self.clock += 1;
        match of_source.last_seen.insert(Arc::clone(&uri), self.clock) {
            Some(before) => drop(of_source.by_age.remove(&before)),
            None => self.count += 1,
        }
        of_source.by_age.insert(self.clock, uri);
        if self.count > MAX_LINKS_PER_SERVER {
            self.evict();
        }
    }

    /// Removes the older half of the links of the source that has the most.
    fn evict(&mut self) {
        let most = self
            .by_source
            .iter()
            .max_by_key(|(_, of_source)| of_source.last_seen.len());
        let Some(origin) = most.map(|(origin, _)| Arc::clone(origin)) else {
            return;
        };
        let Some(of_source) = self.by_source.get_mut(&origin) else {
            return;
        };
        for _ in 0..of_source.last_seen.len().div_ceil(2) {
            let Some((_, uri)) = of_source.by_age.pop_first() else {
                break;
            };
            of_source.last_seen.remove(&uri);
            self.count -= 1;
            if let Some(origins) = self.sources.get_mut(&uri) {
                origins.remove(&origin);
                if origins.is_empty() {
                    self.sources.remove(&uri);
                }
            }
        }
        if of_source.last_seen.is_empty() {
            self.by_source.remove(&origin);
        }
    }
}

/// The URIs in the content of a call, the messages of a prompt, or the contents of a resource.
fn resource_uris(result: &str) -> Vec<String> {
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
    let contents = array("contents").unwrap_or_default();
    let of_contents = contents
        .into_iter()
        .filter_map(|part| edit::get(part, "uri"));
    of_blocks
        .chain(of_contents)
        .take(MAX_URIS_PER_RESULT)
        .filter_map(|uri| serde_json::from_str::<String>(uri).ok())
        .filter(|uri| uri.len() <= MAX_URI_BYTES)
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
        assert_eq!(resource_uris(result), ["a:1", "a:2"]);
        let prompt = r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"a:3"}}}]}"#;
        assert_eq!(resource_uris(prompt), ["a:3"]);
        let blocks = r#"{"messages":[{"content":[{"type":"resource_link","uri":"a:5"}]}]}"#;
        assert_eq!(resource_uris(blocks), ["a:5"]);
        let found = resource_uris(r#"{"contents":[{"uri":"a:4"},{"uri":5}]}"#);
        assert_eq!(found, ["a:4"]);
        assert!(resource_uris("7").is_empty());
    }

    fn tool(name: &str) -> LinkSource {
        LinkSource {
            kind: ListKind::Tools,
            upstream_name: name.into(),
        }
    }

    fn link(uri: &str) -> String {
        format!(r#"{{"content":[{{"type":"resource_link","uri":"{uri}"}}]}}"#)
    }

    #[test]
    fn who_points_to_something_is_remembered_by_name() {
        let links = LinkIndex::default();
        for (server, name) in [("c", "b"), ("b", "c"), ("b", "a"), ("d", "a"), ("b", "a")] {
            links.record(&server.into(), &tool(name), &link("a:1"));
        }
        let told = |server, uri| {
            let origins = links.sources(server, uri).into_iter();
            let origins = origins.map(|origin| origin.upstream_name.to_string());
            origins.collect::<Vec<_>>().join(" ")
        };
        let all = ["a", "b", "c", "d"].map(|server| told(server, "a:1"));
        assert_eq!(all, ["", "a c", "b", "a"]);
        assert_eq!(told("b", "a:2"), "");
        assert!(links.is_reachable("b", "a:1", |origin| &*origin.upstream_name == "c"));
        assert!(!links.is_reachable("c", "a:1", |origin| &*origin.upstream_name == "c"));
    }

    /// Resources that all point to each other, and to what is read: each is looked at once.
    #[test]
    fn a_web_of_links_is_looked_at_once() {
        let links = LinkIndex::default();
        let page = |n: usize| LinkSource {
            kind: ListKind::Resources,
            upstream_name: format!("web:{n}").into(),
        };
        for (from, to) in (0..64).flat_map(|from| (0..64).map(move |to| (from, to))) {
            links.record(&"a".into(), &page(from), &link(&format!("web:{to}")));
        }
        let looked = std::cell::Cell::new(0);
        let found = links.is_reachable("a", "web:1", |_| {
            looked.set(looked.get() + 1);
            false
        });
        assert!(!found && looked.get() <= MAX_SOURCES, "{}", looked.get());
        // A tool that pointed to one of them leads to all, a few steps on.
        links.record(&"a".into(), &tool("index"), &link("web:63"));
        assert!(links.is_reachable("a", "web:63", |origin| origin.kind == ListKind::Tools));
        links.record(&"b".into(), &tool("index"), &link("web:0"));
        for n in 0..MAX_STEPS {
            links.record(&"b".into(), &page(n), &link(&format!("web:{}", n + 1)));
        }
        let leads = |n: usize| {
            links.is_reachable("b", &format!("web:{n}"), |it| it.kind == ListKind::Tools)
        };
        assert!((0..MAX_STEPS).all(leads) && !leads(MAX_STEPS));
    }

    /// SV-14: what is remembered is bounded, and who points to many things takes nothing from others.
    #[test]
    fn a_tool_that_links_without_end_takes_nothing_from_others() {
        let links = LinkIndex::default();
        links.record(&"a".into(), &tool("modest"), &link("a:1"));
        links.record(&"b".into(), &tool("loud"), &link("a:2"));
        for n in 0..3 * MAX_LINKS_PER_SERVER {
            links.record(&"a".into(), &tool("loud"), &link(&format!("b:{n}")));
        }
        assert_eq!(links.sources("a", "a:1").len(), 1);
        assert_eq!(links.sources("b", "a:2").len(), 1);
        let known = |n: usize| links.sources("a", &format!("b:{n}")).len();
        let found = (known(0), known(3 * MAX_LINKS_PER_SERVER - 1));
        assert_eq!(found, (0, 1), "its oldest go first");
        let servers = links.servers.lock();
        let held = &servers["a"];
        assert!(
            held.count <= MAX_LINKS_PER_SERVER && held.count > MAX_LINKS_PER_SERVER / 2,
            "{}",
            held.count
        );
        let told: usize = held
            .by_source
            .values()
            .map(|told| told.last_seen.len())
            .sum();
        let oldest: usize = held.by_source.values().map(|told| told.by_age.len()).sum();
        let origins: usize = held.sources.values().map(BTreeSet::len).sum();
        assert_eq!([told, oldest, origins], [held.count; 3]);
    }

    #[test]
    fn what_is_told_again_is_young_again() {
        let links = LinkIndex::default();
        for n in 0..MAX_LINKS_PER_SERVER {
            links.record(&"a".into(), &tool("a"), &link(&format!("b:{n}")));
        }
        links.record(&"a".into(), &tool("a"), &link("b:0"));
        links.record(&"a".into(), &tool("a"), &link("b:more"));
        let known = |uri| links.sources("a", uri).len();
        assert_eq!((known("b:0"), known("b:1")), (1, 0));
    }
}
