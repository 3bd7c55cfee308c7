//! What holds of every value that is said in fewer words (CN-13, TR-4).

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod limits;

use std::collections::{BTreeMap, BTreeSet};

use mcp_vary::feature::Features;
use mcp_vary::json::{Json, Members};
use mcp_vary::render::{
    Contract, ELLIPSIS, LeftOut, LeftOutRule, Limits, META_LEFT_OUT, compact, compact_columns,
    compact_markdown, compact_structured, compact_text, notice, read,
};
use mcp_vary::shape::{
    Compaction, Policy, Shaped, ToolFacts, Whole, compact_tool_result, tool_result,
};
use mcp_vary_testkit::recordings::{ROWS, Rows};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The key of each row.
fn keys_of(set: &Rows) -> Vec<&Value> {
    let rows = set.value[&set.list].as_array().unwrap();
    rows.iter().map(|row| &row[&set.key]).collect()
}

/// CN-13: the key of each row is readable inline up to 500 rows, and beyond that in pages, where the notice leads.
#[test]
fn rows_keep_their_keys_or_lead_to_them() {
    for (name, text) in ROWS {
        let set = Rows::of(text);
        let written = set.value.to_string();
        let whole = Json::parse(&written).unwrap();
        let short = compact_columns(&whole, &Limits::default());
        let read_back: Value = serde_json::from_str(&short.value.to_json()).unwrap();
        let key = |row: &BTreeMap<String, String>| serde_json::from_str(&row[&set.key]).unwrap();
        let mut keys: Vec<Value> = rows_of(&read_back[&set.list]).iter().map(key).collect();
        assert_eq!(keys.len(), keys_of(&set).len().min(500), "{name}");
        let cut = short
            .left_out
            .iter()
            .find(|one| one.rule == LeftOutRule::Elements);
        let mut part = cut.map(LeftOut::part);
        let mut pages = 0;
        while let Some(asked) = part {
            let page = read(&whole, &asked).unwrap();
            let rows: Value = serde_json::from_str(&page.value.to_json()).unwrap();
            keys.extend(
                rows.as_array()
                    .unwrap()
                    .iter()
                    .map(|row| row[&set.key].clone()),
            );
            part = page.next.map(|next| asked.with_offset(next));
            pages += 1;
        }
        assert_eq!(keys.iter().collect::<Vec<_>>(), keys_of(&set), "{name}");
        assert_eq!(pages > 1, keys.len() > 500, "{name}");
    }
}

/// CN-13: in markdown and plain text as well, each key stands in a row or among the others.
#[test]
fn keys_are_read_in_every_form() {
    for (name, text) in ROWS {
        let set = Rows::of(text);
        let written = set.value.to_string();
        let whole = Json::parse(&written).unwrap();
        for render in [compact_markdown, compact_text] {
            let (text, _) = render(&whole, &Limits::default());
            let is_edge = |c: char| !c.is_alphanumeric() && c != '-';
            let words: BTreeSet<&str> = text.split(is_edge).collect();
            for key in keys_of(&set).into_iter().take(500) {
                let key = plain(key);
                assert!(words.contains(key.as_str()), "{name}: {key}");
            }
        }
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// CN-13: the first rows of each set as an agent and a person read them.
#[test]
fn rows_in_few_words() {
    for (name, text) in ROWS {
        let set = Rows::of(text);
        let mut value = set.value.clone();
        value[&set.list].as_array_mut().unwrap().truncate(5);
        let written = value.to_string();
        let whole = Json::parse(&written).unwrap();
        let limits = Limits::default().with_detailed(3);
        let json = compact_columns(&whole, &limits);
        let lines = json
            .value
            .to_json()
            .replace("],[", "],\n[")
            .replace("],\"", "],\n\"");
        let (markdown, _) = compact_markdown(&whole, &limits);
        let (text, _) = compact_text(&whole, &limits);
        let notice = notice(&json.left_out, Some("vary://result/x")).join("\n");
        insta::assert_snapshot!(
            format!("few_words_{name}"),
            format!("{lines}\n\n{markdown}\n\n{text}\n\n{notice}")
        );
    }
}

/// The rows of `table` by label, cells as JSON, as a reader puts them together again.
fn rows_of(table: &Value) -> Vec<BTreeMap<String, String>> {
    let Some(columns) = table["columns"].as_array() else {
        let rows = table.as_array().unwrap().iter();
        return rows.map(|row| flat(row, "")).collect();
    };
    let mut rows = Vec::new();
    for cells in table["rows"].as_array().unwrap() {
        let mut row = BTreeMap::new();
        for (key, value) in table["each"].as_object().into_iter().flatten() {
            row.insert(key.clone(), value.to_string());
        }
        for (label, cell) in columns.iter().zip(cells.as_array().unwrap()) {
            if !cell.is_null() {
                row.insert(label.as_str().unwrap().to_owned(), cell.to_string());
            }
        }
        for (key, template) in table["from"].as_object().into_iter().flatten() {
            let template = template.as_str().unwrap();
            let (before, remaining) = template.split_once('{').unwrap();
            let (source, after) = remaining.split_once('}').unwrap();
            let cell: Value = serde_json::from_str(&row[source]).unwrap();
            let plain = cell
                .as_str()
                .map_or_else(|| cell.to_string(), str::to_owned);
            row.insert(
                key.clone(),
                json!(format!("{before}{plain}{after}")).to_string(),
            );
        }
        rows.push(row);
    }
    for (key, values) in table["others"].as_object().into_iter().flatten() {
        for value in values.as_array().unwrap() {
            rows.push(BTreeMap::from([(key.clone(), value.to_string())]));
        }
    }
    rows
}

/// `value` with labels like `from.station`, without cells that are null.
fn flat(value: &Value, prefix: &str) -> BTreeMap<String, String> {
    let mut row = BTreeMap::new();
    for (key, value) in value.as_object().unwrap() {
        let label = format!("{prefix}{key}");
        match value {
            Value::Null => {}
            Value::Object(members) if !members.is_empty() => {
                row.extend(flat(value, &format!("{label}.")));
            }
            _ => {
                row.insert(label, value.to_string());
            }
        }
    }
    row
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        2 => (0..50_i32).prop_map(Value::from),
        2 => "[a-zé. /]{0,40}".prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map("[a-d/~]", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    let counts = (0..24_usize, 0..6_usize, 0..4_usize);
    let bytes = (0..30_usize, 0..60_usize, 0..800_usize, 0..60_usize);
    (counts, bytes).prop_map(
        |((rows, detailed, elements), (text, passage, detailed_bytes, prose))| {
            Limits::default()
                .with_rows(rows)
                .with_detailed(detailed)
                .with_detailed_bytes(detailed_bytes)
                .with_elements(elements)
                .with_text(text)
                .with_passage(passage)
                .with_prose(prose)
        },
    )
}

/// Rows of which some share a value, some are made from another and some lack one.
fn rows() -> impl Strategy<Value = Vec<Value>> {
    let row = (0..1000_u32, any::<[bool; 2]>(), scalar(), "[a-z]{1,3}");
    prop::collection::vec(row, 0..24).prop_map(|rows| {
        let row = |(at, (number, has, any, name)): (usize, (u32, [bool; 2], Value, String))| {
            let id = u32::try_from(at).unwrap() * 1000 + number;
            let mut row = json!({
                "id": id, "kind": "x", "level": number % 2, "url": format!("https://a.test/{id}"), "at": {"name": name, "deep": {"n": number}},
            });
            if has[0] {
                row["any"] = any;
            }
            if has[1] {
                row["list"] = json!([number]);
            }
            row
        };
        rows.into_iter().enumerate().map(row).collect()
    })
}

/// Whether `short` says nothing that `whole` does not, in the same places.
fn is_part(short: &Value, whole: &Value) -> bool {
    match (short, whole) {
        (Value::Object(short), Value::Object(whole)) => short
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|whole| is_part(value, whole))),
        (Value::Array(short), Value::Array(whole)) => {
            short.len() <= whole.len() && short.iter().zip(whole).all(|(s, w)| is_part(s, w))
        }
        (Value::String(short), Value::String(whole)) => {
            let retained = short.strip_suffix(ELLIPSIS);
            short == whole || retained.is_some_and(|retained| whole.starts_with(retained))
        }
        (short, whole) => short == whole,
    }
}

/// A schema that `value` meets; `strict` where it names what must be there.
fn schema_of(value: &Value, strict: bool) -> Value {
    match value {
        Value::Object(members) => {
            let properties = members
                .iter()
                .map(|(key, value)| (key.clone(), schema_of(value, !strict)));
            let mut schema = json!({"type": "object", "properties": properties.collect::<serde_json::Map<_, _>>()});
            if strict {
                schema["required"] = members.keys().cloned().collect();
            }
            schema
        }
        Value::Array(elements) => {
            let least = if strict { elements.len() } else { 0 };
            let mut schema = json!({"type": "array", "minItems": least});
            if !elements.is_empty() {
                schema["prefixItems"] = elements.iter().map(|one| schema_of(one, strict)).collect();
            }
            schema
        }
        Value::String(text) if strict => {
            json!({"type": "string", "minLength": text.chars().count()})
        }
        Value::String(text) => json!({"type": "string", "maxLength": text.chars().count()}),
        scalar => json!({"const": scalar}),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// CN-13: what is left is a part of the whole, in its place, and what is missing is said.
    #[test]
    fn what_is_left_is_a_part_of_the_whole(value in value(), limits in limits()) {
        let written = value.to_string();
        let short = compact(&Json::parse(&written).unwrap(), &limits);
        let left: Value = serde_json::from_str(&short.value.to_json()).unwrap();
        prop_assert!(is_part(&left, &value), "{} of {}", left, value);
        prop_assert_eq!(short.left_out.is_empty(), left == value);
        for one in &short.left_out {
            let first = value.pointer(&one.first);
            let is_row = one.rule == LeftOutRule::Details;
            prop_assert!(first.is_some_and(|first| is_row || is_part(&json!(null), first) || !first.is_number()), "{}", one);
            prop_assert!(one.retained < one.total && one.occurrences > 0);
        }
    }

    /// CN-13: twice is once.
    #[test]
    fn a_short_value_stays_as_it_is(value in value(), limits in limits()) {
        let written = value.to_string();
        let once = compact(&Json::parse(&written).unwrap(), &limits).value;
        let twice = compact(&once, &limits).value;
        prop_assert_eq!(once, twice);
    }

    /// CN-13: columns say the same as the rows that they are made of.
    #[test]
    fn columns_can_be_read_back(rows in rows(), limits in limits()) {
        let written = Value::from(rows).to_string();
        let value = Json::parse(&written).unwrap();
        let same: Value = serde_json::from_str(&compact(&value, &limits).value.to_json()).unwrap();
        let columns = compact_columns(&value, &limits).value.to_json();
        prop_assert_eq!(rows_of(&serde_json::from_str(&columns).unwrap()), rows_of(&same), "{}", columns);
        prop_assert!(columns.len() <= same.to_string().len());
    }

    /// CN-13: what is said once for all rows holds for those that are not whole, too.
    #[test]
    fn what_rows_share_is_true_of_all(rows in rows(), limits in limits()) {
        let whole = Value::from(rows);
        let written = whole.to_string();
        let columns = compact_columns(&Json::parse(&written).unwrap(), &limits).value.to_json();
        let table: Value = serde_json::from_str(&columns).unwrap();
        let shown = rows_of(&table).len();
        for row in &whole.as_array().unwrap()[..shown] {
            let row = flat(row, "");
            for (label, value) in table["each"].as_object().into_iter().flatten() {
                prop_assert_eq!(&row[label], &value.to_string());
            }
            for (label, template) in table["from"].as_object().into_iter().flatten() {
                let (before, rest) = template.as_str().unwrap().split_once('{').unwrap();
                let (source, after) = rest.split_once('}').unwrap();
                let source: Value = serde_json::from_str(&row[source]).unwrap();
                let made = json!(format!("{before}{}{after}", plain(&source)));
                prop_assert_eq!(&row[label], &made.to_string());
            }
        }
    }

    /// TR-4: a structured value is cut only as its schema allows, and says so itself.
    #[test]
    fn a_short_structured_value_meets_its_schema(value in value(), limits in limits(), strict in any::<bool>()) {
        let schema = schema_of(&value, strict);
        let written = value.to_string();
        let whole = Json::parse(&written).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        prop_assert!(validator.is_valid(&value));
        let accepts = |value: &Value| validator.is_valid(value);
        let guided = Contract::of(&schema);
        for contract in [guided, guided.accepted_by(&accepts), Contract::default().accepted_by(&accepts)] {
            let Some(short) = compact_structured(&whole, &contract, &limits, None) else { continue };
            let left: Value = serde_json::from_str(&short.value.to_json()).unwrap();
            prop_assert!(validator.is_valid(&left), "{} of {} under {}", left, value, schema);
            prop_assert!(!left[META_LEFT_OUT].as_array().unwrap().is_empty());
        }
    }
}

const TAGS: &[&str] = &[
    "agent",
    "human",
    "format=json",
    "format=markdown",
    "format=text",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// CN-8, CN-13, TR-4: a result in few words keeps its images, meets its schema, and is shorter once.
    #[test]
    fn a_result_in_few_words_keeps_what_it_must(
        rows in rows(), limits in limits(), prose in any::<bool>(), strict in any::<Option<bool>>(),
        tags in prop::sample::subsequence(TAGS, 0..3).prop_shuffle(),
    ) {
        let value = json!({"rows": rows, "next": null});
        let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        let text = if prose { "prose".to_owned() } else { value.to_string() };
        let result = json!({
            "content": [image, {"type": "text", "text": text}, image],
            "structuredContent": value,
        }).to_string();
        let (features, _) = Features::from_tags(tags.into_iter().chain(["verbosity=compact"]));
        let schema = strict.map(|strict| schema_of(&value, strict));
        let tool = ToolFacts { output_schema: schema.is_some(), ui: false };
        let policy = Policy { report: true, ..Policy::default() };
        let contract = schema.as_ref().map_or(Contract::default(), Contract::of);
        let whole = Whole { uri: "vary://result/x", is_linked: true };
        let compaction = Compaction {
            limits,
            contract,
            whole: Some(whole),
            ..Compaction::default()
        };
        let shape = |result: &str| compact_tool_result(result, &features, tool, &policy, &compaction);
        let compacted = shape(&result);
        let Shaped::Changed { result: short, .. } = compacted.shaped else { return Ok(()) };
        if let Shaped::Changed { result: plain, .. } = tool_result(&result, &features, tool, &policy) {
            prop_assert!(read_by_models(&short) <= read_by_models(&plain));
        }
        prop_assert_eq!(shape(&short).shaped, Shaped::Unchanged);
        let short: Value = serde_json::from_str(&short).unwrap();
        let content = short["content"].as_array().unwrap();
        prop_assert_eq!(content.iter().filter(|block| **block == image).count(), 2);
        let left_out = compacted.left_out;
        let said = notice(&left_out, Some("vary://result/x")).join("\n");
        prop_assert!(left_out.is_empty() || content.iter().any(|block| block["text"] == said));
        prop_assert!(left_out.is_empty() || compacted.whole == Some(value.to_string()));
        if let Some(schema) = schema {
            let validator = jsonschema::validator_for(&schema).unwrap();
            prop_assert!(validator.is_valid(&short["structuredContent"]), "{} under {}", short, schema);
        }
    }
}

/// The bytes of a result that a model may read: those of both fields.
fn read_by_models(result: &str) -> usize {
    let result = Members::parse(result).unwrap();
    let fields = ["content", "structuredContent"].into_iter();
    fields
        .filter_map(|field| result.get(field))
        .map(str::len)
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// CN-13: whatever else happens to it, a JSON text costs no more than without its white space; and where nothing is
    /// said to be missing and no rows became columns, that is all that happens.
    #[test]
    fn json_texts_are_at_least_minified(
        values in prop::collection::vec(value().prop_filter("a container", |it| it.is_array() || it.is_object()), 1..3),
        structure in prop::option::of(value()), limits in limits(),
    ) {
        let spelled = |spell: fn(&Value) -> String| {
            let text = |value: &Value| json!({"type": "text", "text": spell(value)});
            let content: Vec<_> = values.iter().map(text).collect();
            let result = json!({"content": content, "structuredContent": structure});
            result.to_string()
        };
        let pretty = spelled(|value| serde_json::to_string_pretty(value).unwrap());
        let plain = spelled(Value::to_string);
        let Some(short) = in_few_words(&pretty, "", limits) else {
            prop_assert_eq!(pretty, plain);
            return Ok(());
        };
        prop_assert!(read_by_models(&short.to_string()) <= read_by_models(&plain), "{}", short);
        let texts: Vec<_> = short["content"].as_array().unwrap().iter().map(|block| &block["text"]).collect();
        if texts.len() == values.len() && !short.to_string().contains("columns") {
            for (text, value) in texts.into_iter().zip(&values) {
                let text: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
                prop_assert_eq!(&text, value);
            }
        }
    }
}

/// CN-13: numbers, escapes and keys that are given twice stay as the server wrote them.
#[test]
fn a_minified_text_is_spelled_as_before() {
    let text = "{\n  \"b\": 1.10,\n  \"a\": \"\\u00e9  :\",\n  \"b\": 2e0\n}";
    let result = json!({"content": [{"type": "text", "text": text}]}).to_string();
    let short = in_few_words(&result, "", Limits::default()).unwrap();
    let expected = r#"{"b":1.10,"a":"\u00e9  :","b":2e0}"#;
    let expected = json!([{"type": "text", "text": expected}]);
    assert_eq!(short["content"], expected);

    // An operator's words and a file that was read are no data.
    let file = json!({"content": [{"type": "text", "text": "{\n}"}], "structuredContent": {"content": "{\n}"}});
    assert_eq!(in_few_words(&file.to_string(), "", Limits::default()), None);
}

/// `result` in few words for who asks for them, with `limits`; none when it stays.
fn in_few_words(result: &str, tags: &str, limits: Limits) -> Option<Value> {
    let tags = tags.split(',').filter(|tag| !tag.is_empty());
    let (features, _) = Features::from_tags(tags.chain(["verbosity=compact"]));
    let compaction = Compaction {
        limits,
        whole: Some(Whole {
            uri: "vary://result/x",
            is_linked: true,
        }),
        ..Compaction::default()
    };
    let (tool, policy) = (ToolFacts::default(), Policy::default());
    match compact_tool_result(result, &features, tool, &policy, &compaction).shaped {
        Shaped::Changed { result, .. } => Some(serde_json::from_str(&result).unwrap()),
        Shaped::Unchanged => None,
    }
}
