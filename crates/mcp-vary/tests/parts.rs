//! What was left out of a value is read back where its notice leads, and then nothing is missing (CN-13).

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use mcp_vary::json::Json;
use mcp_vary::render::{
    DEFAULT_PAGE, ELLIPSIS, Index, LeftOut, LeftOutRule, Limits, MAX_PAGE_BYTES, Part, PartError,
    compact, read,
};
use mcp_vary_testkit::recordings::{ROWS, Rows};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Reads everything from `part` on, a page after the other.
fn read_on(whole: &Json<'_>, part: &Part) -> Value {
    let mut all: Option<Value> = None;
    let mut next = Some(part.offset);
    while let Some(offset) = next {
        let page = read(whole, &part.clone().with_offset(offset)).unwrap();
        assert_eq!(page.offset, offset, "what is cut ends with a character");
        let value: Value = serde_json::from_str(&page.value.to_json()).unwrap();
        all = Some(match (all, value) {
            (None, value) => value,
            (Some(Value::Array(mut all)), Value::Array(more)) => {
                all.extend(more);
                all.into()
            }
            (Some(Value::Object(mut all)), Value::Object(more)) => {
                all.extend(more);
                all.into()
            }
            (Some(Value::String(all)), Value::String(more)) => (all + &more).into(),
            (all, value) => panic!("{value} follows {all:?}"),
        });
        assert!(page.next.is_none_or(|next| next > offset), "a page goes on");
        next = page.next;
    }
    all.unwrap()
}

/// The places of `path` in `value`, where `*` stands for every element.
fn places(value: &Value, path: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for token in path.split('/').skip(1) {
        let step = |at: &String| match value.pointer(at) {
            Some(Value::Array(elements)) if token == "*" => {
                (0..elements.len()).map(|n| format!("{at}/{n}")).collect()
            }
            _ => vec![format!("{at}/{token}")],
        };
        found = found.iter().flat_map(step).collect();
    }
    found
}

/// `short` with what `left_out` says is missing, read from `whole`.
fn completed(mut short: Value, left_out: &[LeftOut], whole: &Json<'_>) -> Value {
    // Rows first: what is missing within them comes with them.
    let mut in_order: Vec<_> = left_out.iter().collect();
    in_order.sort_by_key(|one| match one.rule {
        LeftOutRule::Elements => (0, one.path.len()),
        LeftOutRule::Details => (1, one.path.len()),
        _ => (2, one.path.len()),
    });
    for one in in_order {
        match one.rule {
            LeftOutRule::Details => {
                let part = one.part();
                let remaining = read_on(whole, &part);
                let rows = short.pointer_mut(&part.pointer).unwrap().as_array_mut();
                let rows = rows.unwrap();
                rows.truncate(part.offset);
                rows.extend(remaining.as_array().unwrap().clone());
            }
            LeftOutRule::Elements => add_elements(&mut short, one, whole),
            LeftOutRule::Empty => {
                for place in places(&short, &one.path) {
                    let (parent, key) = place.rsplit_once('/').unwrap();
                    let Ok(page) = read(whole, &Part::at(place.as_str())) else {
                        continue;
                    };
                    let empty: Value = serde_json::from_str(&page.value.to_json()).unwrap();
                    let key = key.replace("~1", "/").replace("~0", "~");
                    if let Some(Value::Object(members)) = short.pointer_mut(parent) {
                        members.entry(key).or_insert(empty);
                    }
                }
            }
            LeftOutRule::Text => {
                for place in places(&short, &one.path) {
                    let Some(Value::String(text)) = short.pointer_mut(&place) else {
                        continue;
                    };
                    let Some(retained) = text.strip_suffix(ELLIPSIS) else {
                        continue;
                    };
                    let from = Part::at(place.as_str()).with_offset(retained.len());
                    *text = format!("{retained}{}", read_on(whole, &from).as_str().unwrap());
                }
            }
            other => panic!("{other:?} leads nowhere"),
        }
    }
    short
}

/// Adds the elements of arrays that `one` says are missing.
fn add_elements(short: &mut Value, one: &LeftOut, whole: &Json<'_>) {
    for place in places(short, &one.path) {
        let Some(Value::Array(retained)) = short.pointer(&place) else {
            continue;
        };
        let from = Part::at(place.as_str()).with_offset(retained.len());
        if let Err(error) = read(whole, &from) {
            assert!(matches!(error, PartError::PastEnd { .. }), "{error}");
            continue;
        }
        let remaining = read_on(whole, &from);
        let retained = short.pointer_mut(&place).unwrap().as_array_mut().unwrap();
        retained.extend(remaining.as_array().unwrap().clone());
    }
}

#[track_caller]
fn reads_back(whole: &str, limits: &Limits) {
    let value = Json::parse(whole).unwrap();
    let short = compact(&value, limits);
    let left: Value = serde_json::from_str(&short.value.to_json()).unwrap();
    let expected: Value = serde_json::from_str(whole).unwrap();
    assert_eq!(completed(left, &short.left_out, &value), expected);
}

/// CN-13: of every set of rows, what is left and what the notice leads to are the whole.
#[test]
fn rows_are_read_back_whole() {
    for (_, set) in ROWS {
        let value = Rows::of(set).value.to_string();
        for limits in [
            Limits::default(),
            Limits::default().with_rows(3).with_text(20),
            Limits::default().with_whole_rows().with_elements(1),
        ] {
            reads_back(&value, &limits);
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        2 => (0..50_i32).prop_map(Value::from),
        3 => "[a-z東é. ]{0,40}".prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map("[a-d/~]", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Rows with a key, so that some keep it alone.
fn rows() -> impl Strategy<Value = Value> {
    prop::collection::vec(value(), 0..12).prop_map(|values| {
        let rows = values.into_iter().enumerate();
        json!({"rows": rows.map(|(at, any)| json!({"id": at, "any": any, "x": null})).collect::<Value>()})
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    let counts = (0..12_usize, 0..4_usize, 0..4_usize);
    (counts, 0..30_usize, 0..300_usize).prop_map(|((rows, detailed, elements), text, bytes)| {
        Limits::default()
            .with_rows(rows)
            .with_detailed(detailed)
            .with_detailed_bytes(bytes)
            .with_elements(elements)
            .with_text(text)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// CN-13: nothing is lost: what is left and the parts that the notice leads to are the whole.
    #[test]
    fn what_was_left_out_is_read_back(value in prop_oneof![value(), rows()], limits in limits()) {
        reads_back(&value.to_string(), &limits);
    }

    /// CN-13: a part says itself in a query, and any query is read or refused without a panic.
    #[test]
    fn a_part_reads_back_as_it_prints(pointer in "\\PC{0,12}", offset in 0..9_usize, limit in prop::option::of(1..9_usize), query in "\\PC{0,24}") {
        let mut part = Part::at(pointer).with_offset(offset);
        part.limit = limit;
        let printed = part.to_query();
        prop_assert!(printed.is_ascii() && !printed.contains(['#', ' ', '"', '<', '?']));
        prop_assert_eq!(Part::parse(&printed), Ok(part));
        let whole = Json::parse(r#"{"a":[1,{"b":"é"}]}"#).unwrap();
        let _ = Part::parse(&query).and_then(|part| read(&whole, &part));
    }
}

/// Every place in `value`.
fn pointers(value: &Value, at: &str) -> Vec<String> {
    let mut all = vec![at.to_owned()];
    match value {
        Value::Array(elements) => {
            for (n, one) in elements.iter().enumerate() {
                all.extend(pointers(one, &format!("{at}/{n}")));
            }
        }
        Value::Object(members) => {
            for (key, one) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                all.extend(pointers(one, &format!("{at}/{key}")));
            }
        }
        _ => {}
    }
    all
}

/// CN-13: a page of many rows has an end, whatever its reader asks for.
#[test]
fn a_page_is_bounded() {
    let written = Rows::of(ROWS[2].1).value.to_string();
    let whole = Json::parse(&written).unwrap();
    let page = read(&whole, &Part::at("/logs")).unwrap();
    assert_eq!((page.total, page.next), (5000, Some(DEFAULT_PAGE)));
    let page = read(&whole, &Part::at("/logs").with_limit(usize::MAX)).unwrap();
    assert!(page.value.to_json().len() <= MAX_PAGE_BYTES);
    assert!(page.next.is_some_and(|next| next > DEFAULT_PAGE));
}

/// Every page that there is, by the value and by the index of its text.
#[track_caller]
fn agree(written: &str, pointer: &str, limit: usize) {
    let value = Json::parse(written).unwrap();
    let index = Index::of(written, pointer);
    let mut next = Some(0);
    while let Some(offset) = next {
        let mut part = Part::at(pointer).with_offset(offset);
        if limit > 0 {
            part = part.with_limit(limit);
        }
        let page = read(&value, &part);
        let indexed = index.as_ref().map_err(Clone::clone);
        let found = indexed.and_then(|index| index.page(written, &part));
        assert_eq!(found, page, "{part:?}");
        next = page.ok().and_then(|page| page.next);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// CN-13: an index of the text leads to the same pages as the value does, however it is written.
    #[test]
    fn an_index_leads_to_the_same_pages(value in value(), limit in 0..5_usize, is_pretty in any::<bool>()) {
        let written = if is_pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        for pointer in pointers(&value, "") {
            agree(&written, &pointer, limit);
        }
        agree(&written, "/nothing/here", 1);
    }
}

/// CN-13: so it does beyond the first mark, in arrays, objects and texts with escapes.
#[test]
fn an_index_has_marks() {
    let rows: Vec<_> = (0..3000)
        .map(|at| json!({"n": at, "t": "東\n\"é\u{1f682}"}))
        .collect();
    let members: serde_json::Map<_, _> = (0..3000)
        .map(|at| (format!("k\"{at}"), json!([at])))
        .collect();
    let text = "a\u{1f682}\n東é".repeat(3000);
    let written = json!({"rows": rows, "members": members, "text": text}).to_string();
    let escaped = written
        .replace('東', "\\u6771")
        .replace('\u{1f682}', "\\ud83d\\ude82");
    for written in [&written, &escaped] {
        for pointer in [
            "",
            "/rows",
            "/members",
            "/text",
            "/rows/2999/t",
            "/members/k\"7",
        ] {
            agree(written, pointer, 0);
        }
        agree(written, "/text", 7001);
    }
    let index = Index::of(&escaped, "/text").unwrap();
    assert!(index.bytes() * 100 < escaped.len(), "{}", index.bytes());
}

#[test]
fn what_is_no_json_has_no_index() {
    for text in [
        "",
        "[1",
        "[1,2",
        "{\"a\" 1}",
        "{\"a\":1",
        "\"abc",
        "nothing",
    ] {
        assert!(Index::of(text, "").is_err(), "{text}");
    }
}
