//! The resources that servers pointed to in results: where to read them is known only from that.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_vary::json::elements;

use crate::splice;
use crate::upstream::UpstreamConfig;

/// Which servers pointed to a URI; of several the one that is configured first is asked, as with what is listed.
///
/// They are remembered by name, which stays when the configuration changes.
///
/// Two generations bound the memory: when the young one is full it becomes the old one.
#[derive(Debug, Default)]
pub(crate) struct Links {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    young: BTreeMap<String, Servers>,
    old: BTreeMap<String, Servers>,
}

/// Mostly one.
type Servers = Vec<Arc<str>>;

/// Servers of one URI.
const SERVERS: usize = 16;
/// URIs of one generation.
const MOST: usize = 5_000;
/// URIs that one result may add.
const OF_ONE: usize = 256;
/// Longer ones are not remembered.
const LONGEST: usize = 2048;

impl Links {
    /// Remembers the resources that `result` of `server` holds or links to.
    pub(crate) fn note(&self, server: &Arc<str>, result: &str) {
        // Most results hold no resource at all.
        if !result.contains("resource") && !result.contains("contents") {
            return;
        }
        let found = uris(result);
        if found.is_empty() {
            return;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.young.len() + found.len() > MOST {
            seen.old = std::mem::take(&mut seen.young);
        }
        for uri in found {
            let before = seen.young.remove(&uri).or_else(|| seen.old.remove(&uri));
            let mut servers = before.unwrap_or_default();
            if !servers.contains(server) && servers.len() < SERVERS {
                servers.push(Arc::clone(server));
            }
            seen.young.insert(uri, servers);
        }
    }

    /// The index of the first of `servers` that pointed to `uri`.
    pub(crate) fn server(&self, uri: &str, servers: &[UpstreamConfig]) -> Option<usize> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let known = seen.young.get(uri).or_else(|| seen.old.get(uri))?;
        let pointed = |server: &UpstreamConfig| known.iter().any(|name| **name == *server.name);
        servers.iter().position(pointed)
    }
}

/// The URIs in the content of a call, the messages of a prompt, or the contents of a resource.
fn uris(result: &str) -> Vec<String> {
    let array = |key| splice::get(result, key).and_then(|text| elements(text).ok());
    let mut blocks = array("content").unwrap_or_default();
    for message in array("messages").unwrap_or_default() {
        match splice::get(message, "content") {
            Some(many) if many.starts_with('[') => {
                blocks.extend(elements(many).unwrap_or_default())
            }
            Some(one) => blocks.push(one),
            None => {}
        }
    }
    let of_blocks = blocks.into_iter().filter_map(|block| {
        splice::get(block, "resource").map_or_else(
            || splice::get(block, "uri"),
            |inner| splice::get(inner, "uri"),
        )
    });
    let of_contents = array("contents").unwrap_or_default();
    let of_contents = of_contents
        .into_iter()
        .filter_map(|part| splice::get(part, "uri"));
    of_blocks
        .chain(of_contents)
        .take(OF_ONE)
        .filter_map(|uri| serde_json::from_str::<String>(uri).ok())
        .filter(|uri| uri.len() <= LONGEST)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::Target;

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

    #[test]
    fn the_first_server_that_points_to_something_is_asked_for_it() {
        let links = Links::default();
        let link =
            |uri: &str| format!(r#"{{"content":[{{"type":"resource_link","uri":"{uri}"}}]}}"#);
        let servers = |names: &[&str]| -> Vec<_> {
            let servers = names.iter();
            servers
                .map(|name| UpstreamConfig::new(*name, Target::command("none", [])))
                .collect()
        };
        for server in ["c", "b", "d"] {
            links.note(&server.into(), &link("a:1"));
        }
        let all = servers(&["a", "b", "c", "d"]);
        let found = |uri| links.server(uri, &all);
        assert_eq!((found("a:1"), found("a:2")), (Some(1), None));
        // The same when the configuration has changed in the meantime.
        assert_eq!(links.server("a:1", &servers(&["d", "a", "c"])), Some(0));
        assert_eq!(links.server("a:1", &servers(&["a"])), None);
        for n in 0..2 * MOST {
            links.note(&"a".into(), &link(&format!("b:{n}")));
        }
        assert_eq!(found("a:1"), None);
    }
}
