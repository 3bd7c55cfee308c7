//! References within a schema, and whether each leads to a schema.

use std::collections::BTreeSet;

use mcp_vary::json::Json;

use crate::normal::decoded;

/// The references of a schema, and the names that they can have.
#[derive(Debug, Default)]
pub(super) struct References {
    used: BTreeSet<String>,
    anchors: BTreeSet<String>,
    ids: BTreeSet<String>,
    /// Whether a schema within has an id, from which its references count.
    has_inner_ids: bool,
}

impl References {
    /// Adds the keyword `key` of the root, or of a schema within.
    pub(super) fn add(&mut self, key: &str, value: &str, is_within: bool) {
        let names = match key {
            "$ref" | "$dynamicRef" => &mut self.used,
            "$id" => {
                self.has_inner_ids |= is_within;
                &mut self.ids
            }
            _ => &mut self.anchors,
        };
        names.insert(value.to_owned());
    }

    /// The references that lead to no schema within `root`.
    pub(super) fn dangling(mut self, root: &Json<'_>) -> BTreeSet<String> {
        let used = std::mem::take(&mut self.used);
        let leads_nowhere = |reference: &String| !self.resolves(reference, root);
        used.into_iter().filter(leads_nowhere).collect()
    }

    fn resolves(&self, reference: &str, root: &Json<'_>) -> bool {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let is_meta_schema = document.contains("//json-schema.org/");
        if !document.is_empty() {
            let is_known = |id: &String| id.trim_end_matches('#').ends_with(document);
            return is_meta_schema || self.ids.iter().any(is_known);
        }
        if self.has_inner_ids || self.anchors.contains(fragment) {
            return true;
        }
        let fragment = decoded(fragment);
        let target = match fragment.strip_prefix('/') {
            None => fragment.is_empty().then_some(root),
            Some(pointer) => pointer.split('/').try_fold(root, |value, token| {
                let key = token.replace("~1", "/").replace("~0", "~");
                match value {
                    Json::Array(elements) => elements.get(key.parse::<usize>().ok()?),
                    value => value.get(&key),
                }
            }),
        };
        matches!(target, Some(Json::Object(_) | Json::Bool(_)))
    }
}

/// Removes the references `dangling`: what they stand for is unknown, so that it is not restricted.
pub(super) fn remove(value: &mut Json<'_>, dangling: &BTreeSet<String>) {
    match value {
        Json::Object(members) => {
            members.retain_mut(|(key, value)| {
                let is_dangling = (key == "$ref" || key == "$dynamicRef")
                    && value.as_str().is_some_and(|text| dangling.contains(text));
                if !is_dangling {
                    remove(value, dangling);
                }
                !is_dangling
            });
        }
        Json::Array(elements) => elements.iter_mut().for_each(|item| remove(item, dangling)),
        _ => {}
    }
}
