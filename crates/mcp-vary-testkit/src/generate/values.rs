//! Values for a schema. Most of them are valid.

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use crate::generate::random::Random;

/// Generates values for one schema.
#[derive(Debug)]
pub struct Values<'s> {
    /// The source of randomness.
    pub random: Random,
    root: &'s Value,
    /// The percentage of optional properties that are generated.
    pub optional: usize,
}

impl<'s> Values<'s> {
    /// Values for `root`, determined by `seed`.
    pub fn new(root: &'s Value, seed: u64) -> Self {
        Self {
            random: Random(seed),
            root,
            optional: 50,
        }
    }

    /// A value for the whole schema.
    pub fn value(&mut self) -> Value {
        self.after(self.root, 0)
    }

    fn after(&mut self, schema: &Value, depth: usize) -> Value {
        let Some(members) = schema.as_object() else {
            return self.anything(depth);
        };
        if depth > DEEPEST {
            return Value::Null;
        }
        let flat = self.flat(members, depth);
        if let Some(value) = flat.get("const") {
            return value.clone();
        }
        if let Some(values) = flat
            .get("enum")
            .and_then(Value::as_array)
            .filter(|all| !all.is_empty())
        {
            return self.random.pick(values).clone();
        }
        match self.kind(&flat).as_str() {
            "object" => self.object(&flat, depth),
            "array" => self.array(&flat, depth),
            "string" => json!(self.string(&flat)),
            "integer" => self.number(&flat, true),
            "number" => self.number(&flat, false),
            "boolean" => json!(self.random.chance(50)),
            "null" => Value::Null,
            _ => self.anything(depth),
        }
    }

    /// The schema with its references followed and one branch of each choice taken.
    fn flat(&mut self, schema: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut flat = schema.clone();
        let mut parts = Vec::new();
        if let Some(target) = flat
            .remove("$ref")
            .and_then(|pointer| resolve(self.root, &pointer))
        {
            parts.push(target.clone());
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = flat.remove(keyword) {
                // Deep in the schema, the first branch without members ends the recursion.
                let simple = branches.iter().find(|branch| {
                    depth > 6
                        && branch
                            .get("type")
                            .is_some_and(|kind| kind != "object" && kind != "array")
                });
                parts.extend(simple.cloned().or_else(|| {
                    (!branches.is_empty()).then(|| self.random.pick(&branches).clone())
                }));
            }
        }
        if let Some(Value::Array(all)) = flat.remove("allOf") {
            parts.extend(all);
        }
        for part in parts {
            if let (Value::Object(part), true) = (part, depth < DEEPEST) {
                let part = self.flat(&part, depth + 1);
                merge(&mut flat, part);
            }
        }
        flat
    }

    fn kind(&mut self, schema: &Map<String, Value>) -> String {
        match schema.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            Some(Value::Array(kinds)) if !kinds.is_empty() => self
                .random
                .pick(kinds)
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            _ => {
                let known = |(keyword, _): (&String, &Value)| match keyword.as_str() {
                    "properties"
                    | "required"
                    | "additionalProperties"
                    | "patternProperties"
                    | "minProperties"
                    | "dependentSchemas"
                    | "dependencies"
                    | "propertyNames" => Some("object"),
                    "items" | "minItems" | "maxItems" | "prefixItems" | "contains" => Some("array"),
                    "pattern" | "minLength" | "maxLength" | "format" => Some("string"),
                    "minimum" | "maximum" | "multipleOf" => Some("number"),
                    _ => None,
                };
                schema.iter().find_map(known).unwrap_or_default().to_owned()
            }
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> Value {
        let none = Map::new();
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&none);
        let required = strings(schema.get("required"));
        let least = size(schema, "minProperties").unwrap_or(0);
        let most = size(schema, "maxProperties").unwrap_or(usize::MAX);
        let mut object = Map::new();
        for name in &required {
            let schema = properties.get(*name).unwrap_or(&Value::Null);
            object.insert((*name).to_owned(), self.after(schema, depth + 1));
        }
        for (name, schema) in properties {
            let wanted = self.random.chance(self.optional / (depth + 1)) || object.len() < least;
            if wanted && object.len() < most && !required.contains(&name.as_str()) {
                object.insert(name.clone(), self.after(schema, depth + 1));
            }
        }
        let more = schema.get("additionalProperties");
        while object.len() < least || (object.len() < most && self.random.chance(15)) {
            if more == Some(&Value::Bool(false)) {
                break;
            }
            let name = self
                .random
                .pick(&["extra", "x-1", "title", "description", "müll", ""]);
            let schema = more.unwrap_or(&Value::Null);
            let value = self.after(schema, depth + 1);
            object.entry(*name).or_insert(value);
        }
        Value::Object(object)
    }

    fn array(&mut self, schema: &Map<String, Value>, depth: usize) -> Value {
        let least = size(schema, "minItems").unwrap_or(0);
        let most = size(schema, "maxItems").unwrap_or(usize::MAX);
        let length = least
            .saturating_add(self.random.below(3 / (depth / 4 + 1) + 1))
            .min(most);
        let items = schema.get("items").unwrap_or(&Value::Null);
        let first = schema.get("prefixItems").unwrap_or(items).as_array();
        let remaining = if items.is_array() {
            schema.get("additionalItems")
        } else {
            Some(items)
        };
        let unique = schema.get("uniqueItems").and_then(Value::as_bool);
        let mut elements = Vec::new();
        for at in 0..length {
            let schema = first
                .and_then(|first| first.get(at))
                .or(remaining)
                .unwrap_or(&Value::Null);
            let element = self.after(schema, depth + 1);
            if unique != Some(true) || !elements.contains(&element) {
                elements.push(element);
            }
        }
        Value::Array(elements)
    }

    fn string(&mut self, schema: &Map<String, Value>) -> String {
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
            let mut runner = TestRunner::deterministic();
            return proptest::string::string_regex(pattern)
                .ok()
                .and_then(|strings| strings.new_tree(&mut runner).ok())
                .map_or_else(String::new, |tree| tree.current());
        }
        let digits = self.random.below(10_000);
        match schema.get("format").and_then(Value::as_str) {
            Some("uuid") => format!("0a1b2c3d-{digits:04}-4e5f-8a9b-0c1d2e3f{digits:04}"),
            Some("uri" | "url") => format!("https://example.com/{digits}?a=b#c"),
            Some("date") => format!("2026-11-{:02}", digits % 28 + 1),
            Some("date-time") => format!("2026-11-{:02}T10:20:30Z", digits % 28 + 1),
            Some("time") => format!("10:20:{:02}Z", digits % 60),
            Some("email") => format!("a{digits}@example.com"),
            Some("hostname") => format!("host{digits}.example.com"),
            Some("ipv4") => format!("10.0.0.{}", digits % 256),
            Some("ipv6") => format!("::{}", digits % 256),
            _ => self.text(schema),
        }
    }

    fn text(&mut self, schema: &Map<String, Value>) -> String {
        let least = size(schema, "minLength").unwrap_or(0);
        let most = size(schema, "maxLength").unwrap_or(least + 8);
        let length = least + self.random.below(most.saturating_sub(least) + 1);
        let letters = [
            'a', 'Z', '0', ' ', 'é', '字', '🚀', '"', '\\', '\n', '.', '/',
        ];
        (0..length).map(|_| *self.random.pick(&letters)).collect()
    }

    fn number(&mut self, schema: &Map<String, Value>, whole: bool) -> Value {
        let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "saturates, which is what is wanted"
        )]
        let low = bound("minimum")
            .or(bound("exclusiveMinimum").map(|low| low + 1.0))
            .map(|low| low.ceil() as i64);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "saturates, which is what is wanted"
        )]
        let high = bound("maximum")
            .or(bound("exclusiveMaximum").map(|high| high - 1.0))
            .map(|high| high.floor() as i64);
        let low =
            low.unwrap_or_else(|| high.map_or(-1000, |high| high.saturating_sub(1000).min(0)));
        let high = high.unwrap_or_else(|| low.saturating_add(1000));
        let number = match self.random.below(6) {
            0 => low,
            1 => high,
            _ => self.random.between(low, high),
        };
        let step = bound("multipleOf");
        if whole || step.is_some() || number == high || self.random.chance(40) {
            let step = step.map_or(1, |step| if step >= 1.0 { step as i64 } else { 1 });
            return json!(number - number % step);
        }
        json!(number as f64 + 0.25)
    }

    /// A value of any kind.
    pub fn anything(&mut self, depth: usize) -> Value {
        match self.random.below(if depth > 4 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.random.chance(50)),
            2 => json!(self.random.between(-3, 3)),
            3 => json!(0.5),
            4 => json!(self.random.pick(&["", "a", "text", "2026-11-20"])),
            5 => json!([self.anything(depth + 1)]),
            _ => {
                let name = *self.random.pick(&["a", "title", "description", "type"]);
                json!({ name: self.anything(depth + 1) })
            }
        }
    }
}

/// The maximum depth to which a recursive schema is followed.
const DEEPEST: usize = 12;

/// The target of the reference, if it is in the same document.
pub fn resolve<'s>(root: &'s Value, reference: &Value) -> Option<&'s Value> {
    root.pointer(reference.as_str()?.strip_prefix('#')?)
}

/// Adds the keywords of `part`: merges properties and required names, and replaces all others.
fn merge(schema: &mut Map<String, Value>, part: Map<String, Value>) {
    for (keyword, value) in part {
        match (keyword.as_str(), schema.get_mut(&keyword), value) {
            ("properties", Some(Value::Object(old)), Value::Object(new)) => {
                for (name, schema) in new {
                    let both = old
                        .remove(&name)
                        .map(|old| json!({"allOf": [old, schema.clone()]}));
                    old.insert(name, both.unwrap_or(schema));
                }
            }
            ("required", Some(Value::Array(old)), Value::Array(new)) => old.extend(new),
            (_, _, value) => {
                schema.insert(keyword, value);
            }
        }
    }
}

/// The strings of an array.
pub fn strings(value: Option<&Value>) -> Vec<&str> {
    let all = value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    all.iter().filter_map(Value::as_str).collect()
}

/// The number of a keyword, such as `minLength`.
pub fn size(schema: &Map<String, Value>, keyword: &str) -> Option<usize> {
    schema
        .get(keyword)?
        .as_u64()
        .and_then(|size| usize::try_from(size).ok())
}
