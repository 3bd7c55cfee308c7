//! Values that break one constraint of a schema each.

use serde_json::{Map, Value, json};

use crate::generate::values::{resolve, size, strings};

/// A value of the whole schema in which one constraint may be broken.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Where the constraint stands in the schema.
    pub constraint: String,
    /// The value.
    pub value: Value,
}

/// Every way to break one constraint on a part of `value`.
///
/// Where a choice (`anyOf`) has another branch, what breaks one branch may still be valid.
pub fn mutants(root: &Value, value: &Value) -> Vec<Mutant> {
    let mut walk = Walk {
        root,
        whole: value,
        found: Vec::new(),
    };
    walk.visit(root, value, "", "", 0);
    walk.found
}

struct Walk<'v> {
    root: &'v Value,
    whole: &'v Value,
    found: Vec<Mutant>,
}

impl Walk<'_> {
    fn visit(&mut self, schema: &Value, value: &Value, path: &str, at: &str, depth: usize) {
        let Some(keywords) = schema.as_object() else {
            return;
        };
        if depth > 16 {
            return;
        }
        for (keyword, constraint) in keywords {
            for broken in broken(keywords, keyword, constraint, value) {
                self.add(&format!("{at}/{keyword}"), path, broken);
            }
        }
        for (place, schema) in applied(self.root, keywords) {
            self.visit(schema, value, path, &format!("{at}{place}"), depth + 1);
        }
        for (place, step, schema, part) in inside(keywords, value) {
            let path = format!("{path}/{}", step.replace('~', "~0").replace('/', "~1"));
            self.visit(schema, part, &path, &format!("{at}{place}"), depth + 1);
        }
    }

    fn add(&mut self, constraint: &str, path: &str, broken: Value) {
        let mut whole = self.whole.clone();
        let part = whole.pointer_mut(path);
        *part.expect("the path was walked") = broken;
        self.found.push(Mutant {
            constraint: constraint.to_owned(),
            value: whole,
        });
    }
}

/// The schemas that a schema applies to the same value.
fn applied<'s>(root: &'s Value, schema: &'s Map<String, Value>) -> Vec<(String, &'s Value)> {
    let mut all = Vec::new();
    if let Some(target) = schema
        .get("$ref")
        .and_then(|pointer| resolve(root, pointer))
    {
        all.push(("/$ref".to_owned(), target));
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let branches = schema.get(keyword).and_then(Value::as_array);
        for (at, branch) in branches.into_iter().flatten().enumerate() {
            all.push((format!("/{keyword}/{at}"), branch));
        }
    }
    all
}

/// The schemas that a schema applies to the members or elements of `value`.
fn inside<'s, 'v>(
    schema: &'s Map<String, Value>,
    value: &'v Value,
) -> Vec<(String, String, &'s Value, &'v Value)> {
    let mut all = Vec::new();
    let properties = schema.get("properties");
    for (name, part) in value.as_object().into_iter().flatten() {
        let named = properties.and_then(|properties| properties.get(name));
        match (named, schema.get("additionalProperties")) {
            (Some(schema), _) => {
                all.push((format!("/properties/{name}"), name.clone(), schema, part))
            }
            (None, Some(schema)) => all.push((
                "/additionalProperties".to_owned(),
                name.clone(),
                schema,
                part,
            )),
            _ => {}
        }
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        for (at, part) in value.as_array().into_iter().flatten().enumerate().take(2) {
            all.push(("/items".to_owned(), at.to_string(), items, part));
        }
    }
    all
}

/// `value` with `keyword` broken, in as many ways as there are.
fn broken(
    schema: &Map<String, Value>,
    keyword: &str,
    constraint: &Value,
    value: &Value,
) -> Vec<Value> {
    let limit = constraint.as_f64().unwrap_or_default();
    match (keyword, value) {
        ("type", _) => of_other_types(constraint),
        ("const" | "enum", _) => vec![json!("no such value"), json!({"no": "such"}), Value::Null],
        ("not", _) => vec![constraint.get("const").cloned().unwrap_or_default()],
        ("minimum" | "exclusiveMinimum", Value::Number(_)) => vec![json!(limit - 1.0)],
        ("maximum" | "exclusiveMaximum", Value::Number(_)) => vec![json!(limit + 1.0)],
        ("multipleOf", Value::Number(_)) => vec![json!(limit * 1.5)],
        ("minLength", Value::String(text)) => {
            let retained = size(schema, keyword).unwrap_or(0).saturating_sub(1);
            vec![json!(text.chars().take(retained).collect::<String>())]
        }
        ("maxLength", Value::String(_)) => {
            vec![json!("x".repeat(size(schema, keyword).unwrap_or(0) + 1))]
        }
        ("format", _) if !FORMATS.contains(&constraint.as_str().unwrap_or_default()) => Vec::new(),
        ("pattern" | "format", Value::String(_)) => vec![json!("\u{1}not:: so%%"), json!("")],
        ("required", Value::Object(members)) => {
            let without = |name: &&str| {
                let mut members = members.clone();
                members.shift_remove(*name);
                Value::Object(members)
            };
            strings(Some(constraint)).iter().map(without).collect()
        }
        ("additionalProperties" | "unevaluatedProperties", Value::Object(members))
            if asks(constraint) =>
        {
            vec![
                with(members, "no such property", json!({"no": "such"})),
                with(members, "$ref", json!(1)),
            ]
        }
        ("propertyNames", Value::Object(members)) if asks(constraint) => {
            vec![with(members, "\u{1} no such name", json!(1))]
        }
        ("minProperties", Value::Object(_)) => vec![json!({})],
        ("minItems", Value::Array(elements)) => {
            let retained = size(schema, keyword).unwrap_or(0).saturating_sub(1);
            vec![json!(elements.iter().take(retained).collect::<Vec<_>>())]
        }
        ("maxItems", Value::Array(elements)) => {
            let filler = elements.first().cloned().unwrap_or_default();
            vec![json!(vec![filler; size(schema, keyword).unwrap_or(0) + 1])]
        }
        ("uniqueItems", Value::Array(elements)) => {
            let twice = elements.iter().chain(elements.first());
            vec![json!(twice.collect::<Vec<_>>())]
        }
        _ => Vec::new(),
    }
}

/// Whether the schema asks anything of a member that it could lack.
fn asks(schema: &Value) -> bool {
    let vacuous = |(keyword, value): (&String, &Value)| {
        keyword == "description" || (keyword == "type" && value == "string")
    };
    *schema != json!(true)
        && !schema
            .as_object()
            .is_some_and(|members| members.iter().all(vacuous))
}

/// The formats that the validator knows, of those that the lists use.
const FORMATS: [&str; 3] = ["date", "uri", "uuid"];

/// One value of every type but those that `constraint` names.
fn of_other_types(constraint: &Value) -> Vec<Value> {
    let named =
        |kind: &str| *constraint == json!(kind) || strings(Some(constraint)).contains(&kind);
    let values = [
        ("null", Value::Null),
        ("boolean", json!(true)),
        ("number", json!(1.5)),
        ("string", json!("text")),
        ("array", json!([])),
        ("object", json!({})),
    ];
    values
        .into_iter()
        .filter(|(kind, _)| !named(kind))
        .map(|(_, value)| value)
        .collect()
}

fn with(members: &Map<String, Value>, name: &str, value: Value) -> Value {
    let mut members = members.clone();
    members.insert(name.to_owned(), value);
    Value::Object(members)
}
