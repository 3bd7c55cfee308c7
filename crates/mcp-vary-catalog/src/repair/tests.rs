use std::collections::BTreeMap;

use mcp_vary_wire::revision::Era;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::list_fault::ListFaults;
use crate::listing::{ListKind, ListedItem};

/// The ways in which items are broken: the official clients read the same ones through Vary.
fn breaks() -> BTreeMap<String, Vec<Value>> {
    let table = include_str!("../../../../tests/interop/broken-items.json");
    serde_json::from_str(table).unwrap()
}

fn good(kind: ListKind, name: &str) -> Value {
    match kind {
        ListKind::Tools => {
            let input = json!({"type": "object", "properties": {"a": {"type": "string"}}});
            let output = json!({"type": "object", "properties": {"b": {"type": "integer"}}});
            json!({"name": name, "title": "T", "description": "D", "inputSchema": input, "outputSchema": output,
                "annotations": {"readOnlyHint": true, "x": null}, "_meta": {"x": null}, "x": null})
        }
        ListKind::Prompts => json!({"name": name, "arguments": [{"name": "a", "required": true}]}),
        ListKind::Resources => json!({"uri": format!("note:{name}"), "name": name, "size": 3,
            "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-11-28T05:30:00Z"}}),
        ListKind::Templates => json!({"uriTemplate": format!("note:{name}/{{a}}"), "name": name}),
    }
}

fn broken(kind: ListKind, name: &str, how: &Value) -> Value {
    if let Some(whole) = how.get("whole") {
        return whole.clone();
    }
    let mut item = good(kind, name);
    let members = item.as_object_mut().unwrap();
    for key in how["without"].as_array().into_iter().flatten() {
        members.remove(key.as_str().unwrap());
    }
    members.extend(how["set"].as_object().cloned().unwrap_or_default());
    item
}

fn read(kind: ListKind, era: Era, item: &str) -> (Option<ListedItem>, ListFaults) {
    let mut faults = ListFaults::default();
    let read = ListedItem::read(item, kind, era, 4, &mut faults);
    (read, faults)
}

/// What every client demands, written anew: the members that it knows have their types, and schemas are valid.
fn assert_readable(kind: ListKind, era: Era, item: &Value) {
    let text = |it: &Value| it.is_string();
    let object = |it: &Value| it.is_object();
    let flag = |it: &Value| it.is_boolean();
    let has = |item: &Value, key: &str, is_right: &dyn Fn(&Value) -> bool| {
        assert!(item.get(key).is_none_or(is_right), "{key} of {item}");
    };
    for key in ["title", "description", "mimeType"] {
        has(item, key, &text);
    }
    has(item, "_meta", &object);
    has(item, "size", &|it| it.is_i64());
    assert!(item["name"].is_string(), "{item}");
    assert!(
        item[kind.id_key()]
            .as_str()
            .is_some_and(|id| !id.is_empty()),
        "{item}"
    );
    has(item, "icons", &|icons| {
        icons
            .as_array()
            .is_some_and(|icons| icons.iter().all(|it| it["src"].is_string()))
    });
    has(item, "arguments", &|all| {
        all.as_array()
            .is_some_and(|all| all.iter().all(|it| it["name"].is_string()))
    });
    has(item, "annotations", &object);
    let nothing = Value::Null;
    let annotations = item.get("annotations").unwrap_or(&nothing);
    for hint in [
        "readOnlyHint",
        "destructiveHint",
        "idempotentHint",
        "openWorldHint",
    ] {
        has(annotations, hint, &flag);
    }
    has(annotations, "title", &text);
    has(annotations, "priority", &|it| {
        it.as_f64().is_some_and(|it| (0.0..=1.0).contains(&it))
    });
    has(annotations, "lastModified", &|it| {
        it.as_str().is_some_and(|it| it.ends_with('Z'))
    });
    if kind == ListKind::Tools {
        assert_usable_schemas(era, item);
    }
}

fn assert_usable_schemas(era: Era, item: &Value) {
    assert_eq!(item["inputSchema"]["type"], "object", "{item}");
    for key in ["inputSchema", "outputSchema"] {
        let Some(schema) = item.get(key) else {
            continue;
        };
        assert!(era == Era::Modern || schema["type"] == "object", "{schema}");
        assert!(jsonschema::meta::is_valid(schema), "{schema}");
        assert!(jsonschema::validator_for(schema).is_ok(), "{schema}");
        let properties = schema["properties"]
            .as_object()
            .cloned()
            .unwrap_or_else(Map::new);
        assert!(properties.values().all(Value::is_object), "{schema}");
    }
}

fn kind_of(items_key: &str) -> ListKind {
    let mut kinds = ListKind::ALL.into_iter();
    kinds.find(|kind| kind.items_key() == items_key).unwrap()
}

#[test]
fn each_broken_item_is_repaired_or_named() {
    for (key, breaks) in breaks() {
        let kind = kind_of(&key);
        for (how, era) in breaks
            .iter()
            .flat_map(|it| [(it, Era::Legacy), (it, Era::Modern)])
        {
            let item = broken(kind, "odd", how);
            let (read, faults) = read(kind, era, &item.to_string());
            let sentences: Vec<_> = faults.sentences(kind).collect();
            let Some(read) = read else {
                assert_eq!(sentences.len(), 1, "{item}: {sentences:?}");
                assert!(sentences[0].contains("left out: "), "{item}: {sentences:?}");
                continue;
            };
            let repaired: Value = serde_json::from_str(&read.json).unwrap();
            assert_readable(kind, era, &repaired);
            let is_right = repaired == item;
            assert_eq!(is_right, faults.is_empty(), "{item}: {sentences:?}");
            assert_eq!(
                repaired.get(kind.id_key()),
                item.get(kind.id_key()),
                "a name changed"
            );
            let again = super::repair_item(&read.json, kind, era).unwrap();
            assert_eq!((&*again.json, again.problems.len()), (&*read.json, 0));
        }
    }
}

#[test]
fn what_was_right_stays_as_written() {
    let written = r#"{ "x" : 1.50, "name":"a\u0062", "title" :null, "inputSchema": {"type" : "object", "maximum": 1e2} ,"y":null}"#;
    let (read, faults) = read(ListKind::Tools, Era::Legacy, written);
    let repaired = r#"{ "x" : 1.50, "name":"a\u0062", "inputSchema": {"type" : "object", "maximum": 1e2} ,"y":null}"#;
    assert_eq!(&*read.unwrap().json, repaired);
    let sentences: Vec<_> = faults.sentences(ListKind::Tools).collect();
    assert_eq!(sentences, ["tool `ab` is repaired: `title` cannot be null"]);
}

#[test]
fn the_reasons_are_sentences() {
    for (kind, item, sentence) in [
        (
            ListKind::Tools,
            r#"{"name":"odd","inputSchema":{"type":"string"}}"#,
            "tool `odd` is left out: `inputSchema` has the type `string`",
        ),
        (
            ListKind::Tools,
            r#"{"name":"odd"}"#,
            "tool `odd` is repaired: `inputSchema` is missing",
        ),
        (
            ListKind::Tools,
            r#"{"name":""}"#,
            "tool `#4` is left out: its `name` is not a text, or empty",
        ),
        (
            ListKind::Prompts,
            "[]",
            "prompt `#4` is left out: it is not an object",
        ),
        (
            ListKind::Prompts,
            r#"{"name":"a\u202e","arguments":{}}"#,
            r"prompt `a\u{202e}` is repaired: `arguments` cannot be {}",
        ),
        (
            ListKind::Resources,
            r#"{"uri":"a:b"}"#,
            "resource `a:b` is repaired: `name` is missing or not a text",
        ),
        (
            ListKind::Templates,
            r#"{"uriTemplate":7}"#,
            "resource template `#4` is left out: its `uriTemplate` is not a text, or empty",
        ),
        (
            ListKind::Prompts,
            r#"{"name":"odd","name":"odd"}"#,
            "prompt `odd` is repaired: the key `name` is there twice",
        ),
        (
            ListKind::Prompts,
            r#"{"name":"odd","description":"\ud800"}"#,
            "prompt `odd` is left out: it cannot be read: a string holds an invalid escape or control character at byte 36",
        ),
    ] {
        let (_, faults) = read(kind, Era::Legacy, item);
        let sentences: Vec<_> = faults.sentences(kind).collect();
        assert_eq!(sentences, [sentence], "{item}");
    }
}

#[test]
fn faults_are_bounded_and_alike_ones_are_one() {
    let mut faults = ListFaults::default();
    for at in 0..1_000 {
        faults.add(
            &format!("{at}"),
            &format!("problem {}", at % 100),
            at % 2 == 0,
        );
        faults.add("same", "`title` cannot be null", false);
    }
    let sentences: Vec<_> = faults.sentences(ListKind::Tools).collect();
    assert!(sentences.len() <= 42, "{}", sentences.len());
    assert!(sentences.iter().all(|it| it.len() < 2_000));
    assert!(
        sentences
            .iter()
            .any(|it| it.ends_with("and 980 more are repaired: `title` cannot be null")),
        "{sentences:#?}"
    );
}

proptest! {
    /// A list with broken items between good ones has all good ones as they were.
    #[test]
    fn broken_items_harm_no_other(
        picks in prop::collection::vec((0..4_usize, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..8),
        is_modern: bool,
    ) {
        let (breaks, era) = (breaks(), if is_modern { Era::Modern } else { Era::Legacy });
        for (kind, one, other) in picks {
            let kind = ListKind::ALL[kind];
            let of_kind = &breaks[kind.items_key()];
            let mut item = broken(kind, "odd", one.get(of_kind));
            if let (Value::Object(item), Some(Value::Object(more))) = (&mut item, other.get(of_kind).get("set")) {
                item.extend(more.clone());
            }
            let (odd, faults) = read(kind, era, &item.to_string());
            if let Some(odd) = odd {
                assert_readable(kind, era, &serde_json::from_str(&odd.json).unwrap());
            } else {
                prop_assert!(!faults.is_empty());
            }
            let good = good(kind, "good").to_string();
            let (read, faults) = read(kind, era, &good);
            prop_assert_eq!(&*read.unwrap().json, good.as_str());
            prop_assert!(faults.is_empty());
        }
    }
}
