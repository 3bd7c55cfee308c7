//! The variants that a server advertised to this client.

use std::collections::BTreeSet;

use mcp_vary::extension::{SERVER_VARIANTS, find};
use mcp_vary::hints;
use mcp_vary::ignored::{Ignored, Reason};
use mcp_vary::variant::{ServerVariant, VariantId};
use serde::Deserialize;
use serde_json::Value;

/// The largest number of variants that are read of one server.
pub const MAX_VARIANTS: usize = 32;

/// The variants that a server advertised, best first.
///
/// # Properties
///
/// At most [`MAX_VARIANTS`], each identifier once, each within the limits of hints. Reading never
/// fails: invalid entries are ignored one by one. The server wrote the descriptions: do not show
/// them to a model as your own text.
///
/// "If the extension payload is present but `availableVariants` is absent or empty, clients SHOULD
/// treat this as 'no variants supported'": such offers are [empty](Self::is_empty).
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::client::Offers;
/// use serde_json::json;
///
/// let offered = json!({"availableVariants": [
///     {"id": "compact", "description": "in few words"},
///     {"id": "", "description": "no identifier"},
/// ]});
/// let capabilities = json!({"extensions": {"io.modelcontextprotocol/server-variants": offered}});
/// let (offers, ignored) = Offers::read(&capabilities);
/// assert_eq!(offers.first().unwrap().id, "compact");
/// assert_eq!((offers.iter().len(), ignored.count()), (1, 1));
///
/// // Some servers advertise under `experimental`.
/// let capabilities = json!({"experimental": {"io.modelcontextprotocol/server-variants": offered}});
/// assert!(!Offers::read(&capabilities).0.is_empty());
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Offers {
    variants: Vec<ServerVariant>,
    has_more: bool,
}

impl Offers {
    /// Reads a server's capabilities, as `initialize` or `server/discover` returned them.
    #[must_use]
    pub fn read(capabilities: &Value) -> (Self, Ignored) {
        let (found, mut ignored) = find(capabilities, SERVER_VARIANTS);
        let mut offers = Self::default();
        let Some(settings) = found.map(|settings| settings.value()) else {
            return (offers, ignored);
        };
        match settings.get("availableVariants") {
            None => {}
            Some(Value::Array(entries)) => offers.read_entries(entries, &mut ignored),
            Some(_) => ignored.add("availableVariants", Reason::NotAnArray),
        }
        offers.has_more =
            !offers.is_empty() && settings.get("moreVariantsAvailable") == Some(&Value::Bool(true));
        (offers, ignored)
    }

    /// The server's default: a request without a selector runs in it.
    pub fn first(&self) -> Option<&ServerVariant> {
        self.variants.first()
    }

    /// The variant `id`, if it is advertised.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&ServerVariant> {
        self.iter().find(|variant| variant.id == *id)
    }

    /// The variants, best first.
    pub fn iter(&self) -> std::slice::Iter<'_, ServerVariant> {
        self.variants.iter()
    }

    /// Whether the server has variants that it did not advertise.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Whether the server supports no variants.
    pub fn is_empty(&self) -> bool {
        self.variants.is_empty()
    }

    /// Whether a request may select `id`: it is advertised, or the server has more variants than it
    /// advertises.
    #[must_use]
    pub fn allows(&self, id: &VariantId) -> bool {
        self.has_more || self.get(id.as_str()).is_some()
    }

    fn read_entries(&mut self, entries: &[Value], ignored: &mut Ignored) {
        let mut ids = BTreeSet::new();
        for entry in entries {
            // A server's list has no bound. Entries above the limit are counted without being read.
            if self.variants.len() == MAX_VARIANTS {
                ignored.add("availableVariants", Reason::TooMany(MAX_VARIANTS));
                continue;
            }
            match read_entry(entry) {
                Ok(variant) if ids.insert(variant.id.clone()) => self.variants.push(variant),
                // Two entries with the same identifier: keep the first, since the other could never
                // be selected.
                Ok(_) => {}
                Err(reason) => ignored.add(&entry_name(entry), reason),
            }
        }
    }
}

impl<'a> IntoIterator for &'a Offers {
    type Item = &'a ServerVariant;
    type IntoIter = std::slice::Iter<'a, ServerVariant>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

fn read_entry(entry: &Value) -> Result<ServerVariant, Reason> {
    let mut variant = ServerVariant::deserialize(entry).map_err(|_| Reason::NotAVariant)?;
    if variant.description.len() > hints::MAX_DESCRIPTION {
        return Err(Reason::TooLong(hints::MAX_DESCRIPTION));
    }
    variant
        .hints
        .retain(|key, value| key.len() <= hints::MAX_KEY && value.len() <= hints::MAX_VALUE);
    while variant.hints.len() > hints::MAX_KEYS {
        variant.hints.pop_last();
    }
    Ok(variant)
}

/// The name of an entry in logs.
fn entry_name(entry: &Value) -> String {
    match entry.get("id") {
        Some(Value::String(id)) if !id.is_empty() => id.clone(),
        _ => "a variant without a usable id".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The identifiers that are read from `settings`, and the number of ignored entries.
    #[track_caller]
    fn reads(settings: &Value, expected: &[&str], ignored: usize) -> Offers {
        let capabilities = json!({"extensions": {SERVER_VARIANTS: settings}});
        let (offers, what) = Offers::read(&capabilities);
        let ids: Vec<_> = offers.iter().map(|variant| variant.id.as_str()).collect();
        assert_eq!(ids, expected);
        assert_eq!(what.count(), ignored, "{what}");
        offers
    }

    /// SV-19, EXT-5: an invalid offer is ignored alone; an absent or empty list means no support.
    #[test]
    fn a_bad_offer_is_dropped_alone() {
        let good = json!({"id": "a", "description": "", "icon": 1});
        for bad in [
            json!(7),
            json!({"id": "b"}),
            json!({"id": "", "description": ""}),
            json!({"id": "b\n", "description": ""}),
            json!({"id": "b".repeat(129), "description": ""}),
            json!({"id": "b", "description": "", "status": "beta"}),
            json!({"id": "b", "description": "", "hints": {"a": 1}}),
            json!({"id": "b", "description": "x".repeat(2_049)}),
        ] {
            reads(&json!({"availableVariants": [bad, good]}), &["a"], 1);
        }
        for none in [json!({}), json!({"availableVariants": []})] {
            assert!(reads(&none, &[], 0).is_empty());
        }
        assert!(reads(&json!({"availableVariants": {"id": "a"}}), &[], 1).is_empty());
    }

    /// SV-19: of two offers with one identifier the first is used; offers above the limit are
    /// ignored.
    #[test]
    fn offers_are_bounded_and_unlike() {
        let twice = json!([
            {"id": "a", "description": "first"},
            {"id": "a", "description": "second"},
        ]);
        let offers = reads(&json!({"availableVariants": twice}), &["a"], 0);
        assert_eq!(offers.first().unwrap().description, "first");
        let many: Vec<_> = (0..1_000)
            .map(|id| json!({"id": id.to_string(), "description": ""}))
            .collect();
        let names: Vec<_> = (0..MAX_VARIANTS).map(|id| id.to_string()).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let settings = json!({"availableVariants": many});
        reads(&settings, &names, 1_000 - MAX_VARIANTS);
    }

    /// SV-19: a variant that is not advertised can be selected if the server has more; without any
    /// offer there is no more.
    #[test]
    fn more_is_more_than_nothing() {
        let offered = json!([{"id": "a", "description": ""}]);
        let some = json!({"availableVariants": offered, "moreVariantsAvailable": true});
        let hidden: VariantId = "hidden".parse().unwrap();
        assert!(reads(&some, &["a"], 0).allows(&hidden));
        let none = json!({"availableVariants": [], "moreVariantsAvailable": true});
        assert!(!reads(&none, &[], 0).allows(&hidden));
    }
}
