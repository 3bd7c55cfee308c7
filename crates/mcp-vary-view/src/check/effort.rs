//! How often a schema makes a validator look at one value.

use std::collections::BTreeMap;

use mcp_vary::json::{self, Json};

/// The maximum number of schema evaluations for one value, computed from the schema.
///
/// `allOf`, `anyOf` and references evaluate one value several times, and its children several times for each of
/// these. A short list of self-references costs two to the power of the depth.
pub(super) struct Effort<'j> {
    root: &'j Json<'j>,
    /// Computed costs, by schema and remaining depth.
    memo: BTreeMap<(*const Json<'j>, usize), Option<u64>>,
    /// How many schemas enclose the current one.
    nesting: usize,
}

impl<'j> Effort<'j> {
    /// The cost by nesting depth, up to the depth that can be checked; empty if none can.
    pub(super) fn by_depth(schema: &'j Json<'j>) -> Vec<u64> {
        let mut effort = Effort {
            root: schema,
            memo: BTreeMap::new(),
            nesting: 0,
        };
        // The costs of one depth are reused for the next.
        let depths = 0..=json::MAX_DEPTH;
        depths
            .map_while(|depth| effort.cost(schema, depth).filter(|it| *it <= MAX_EFFORT))
            .collect()
    }

    /// The cost for a value that is nested `depth` deep; `None` if the schema recurses without end.
    fn cost(&mut self, schema: &'j Json<'j>, depth: usize) -> Option<u64> {
        let place = (std::ptr::from_ref(schema), depth);
        if let Some(known) = self.memo.get(&place) {
            return *known;
        }
        if self.memo.len() > MAX_MEMO || self.nesting > MAX_NESTING {
            return None;
        }
        // Until the cost is known, a recursive visit means endless recursion.
        self.memo.insert(place, None);
        self.nesting += 1;
        let effort = self.compute(schema, depth);
        self.nesting -= 1;
        self.memo.insert(place, effort);
        effort
    }

    fn compute(&mut self, schema: &'j Json<'j>, depth: usize) -> Option<u64> {
        let mut here: u64 = 1;
        let mut within: u64 = 0;
        for (keyword, value) in schema.as_object().unwrap_or_default() {
            let (inner, same) = subschemas(keyword, value);
            for part in inner {
                if same {
                    here = here.saturating_add(self.cost(part, depth)?);
                } else if depth > 0 {
                    within = within.max(self.cost(part, depth - 1)?);
                }
            }
            if let (true, Some(reference)) =
                (REFERENCES.contains(&keyword.as_ref()), value.as_str())
                && let Some(target) = self.target(reference)
            {
                here = here.saturating_add(self.cost(target, depth)?);
            }
        }
        Some(here.saturating_add(within))
    }

    fn target(&self, reference: &str) -> Option<&'j Json<'j>> {
        use crate::derive::schema::{Reference, find};
        match Reference::parse(reference)? {
            Reference::Pointer(tokens) => find(self.root, &tokens),
            // An anchor may be anywhere.
            Reference::Anchor => Some(self.root),
        }
    }
}

/// The schemas under a keyword, and whether they apply to the same value.
fn subschemas<'j>(keyword: &str, value: &'j Json<'j>) -> (Vec<&'j Json<'j>>, bool) {
    let named = || {
        value
            .as_object()
            .unwrap_or_default()
            .iter()
            .map(|(_, schema)| schema)
            .collect()
    };
    match keyword {
        "allOf" | "anyOf" | "oneOf" => {
            (value.as_array().unwrap_or_default().iter().collect(), true)
        }
        "if" | "then" | "else" | "not" => (vec![value], true),
        "dependentSchemas" | "dependencies" => (named(), true),
        "properties" | "patternProperties" => (named(), false),
        "items" | "prefixItems" if value.as_array().is_some() => {
            (value.as_array().unwrap_or_default().iter().collect(), false)
        }
        "items"
        | "additionalItems"
        | "additionalProperties"
        | "contains"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties" => (vec![value], false),
        _ => (Vec::new(), true),
    }
}

const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Schema evaluations for one value.
const MAX_EFFORT: u64 = 100_000;
/// Computed costs that are stored.
const MAX_MEMO: usize = 200_000;
/// Deeper nesting of schemas is not followed.
const MAX_NESTING: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_that_looks_at_a_value_is_counted() {
        #[track_caller]
        fn takes(schema: &str, flat: u64, nested: u64) {
            let schema = Json::parse(schema).unwrap();
            let mut effort = Effort {
                root: &schema,
                memo: BTreeMap::new(),
                nesting: 0,
            };
            let efforts = [0, 1].map(|depth| effort.cost(&schema, depth));
            assert_eq!(efforts, [Some(flat), Some(nested)]);
        }
        takes("{}", 1, 1);
        takes(r#"{"const": {"not": {}}}"#, 1, 1);
        for list in ["allOf", "anyOf", "oneOf"] {
            takes(&format!(r#"{{"{list}": [{{}}, {{"not": {{}}}}]}}"#), 4, 4);
        }
        takes(r#"{"if": {}, "then": {}, "else": {}, "not": {}}"#, 5, 5);
        takes(
            r#"{"dependentSchemas": {"a": {}}, "dependencies": {"b": {}, "c": ["d"]}}"#,
            4,
            4,
        );
        takes(
            r#"{"properties": {"a": {}, "b": {"not": {}}}, "patternProperties": {"c": {}}}"#,
            1,
            3,
        );
        for inner in [
            "items",
            "additionalItems",
            "additionalProperties",
            "contains",
            "propertyNames",
        ] {
            takes(&format!(r#"{{"{inner}": {{"not": {{}}}}}}"#), 1, 3);
        }
        takes(r#"{"items": [{}, {"not": {}}]}"#, 1, 3);
        takes(
            r#"{"prefixItems": [{"not": {}}], "unevaluatedItems": {}}"#,
            1,
            3,
        );
        takes(r#"{"unevaluatedProperties": {"not": {}}}"#, 1, 3);
        // Subschemas of one `allOf` stand side by side: however many there are, they do not nest.
        takes(
            &format!(r#"{{"allOf": [{}]}}"#, vec!["{}"; 600].join(",")),
            601,
            601,
        );
    }

    #[test]
    fn a_row_of_schemas_is_followed_so_far() {
        let effort = |length: usize| {
            let one = |at: usize| format!(r##""d{at}": {{"$ref": "#/$defs/d{}"}}"##, at + 1);
            let row: Vec<String> = (0..length).map(one).collect();
            let row = row.join(",");
            let schema =
                format!(r##"{{"$ref": "#/$defs/d0", "$defs": {{{row}, "d{length}": {{}}}}}}"##);
            Effort::by_depth(&Json::parse(&schema).unwrap()).len()
        };
        assert_eq!(effort(MAX_NESTING - 1), 129);
        assert_eq!(effort(MAX_NESTING), 0);
    }
}
