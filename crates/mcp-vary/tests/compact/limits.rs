//! Limits: what is shortened, and what stays as it was written.

use super::*;

/// CN-13: few words are fewer: a byte more in the text is a byte more to save, and at none nothing changes.
#[test]
fn what_is_not_shorter_by_a_byte_stays() {
    let limits = Limits::default().with_prose(100);
    let saved = |length: usize| {
        let text = format!("{}{}", "word ".repeat(20), "x".repeat(length));
        let result = json!({"content": [{"type": "text", "text": text}]}).to_string();
        let short = in_few_words(&result, "", limits)?;
        Some(result.len() - short.to_string().len())
    };
    assert_eq!(saved(50), None);
    // The first that changes is shorter by one byte, and none by less.
    let first = (50..1000).find_map(saved);
    assert_eq!(first, Some(1));
}

/// CN-13: a text that has no fewer words is not written anew, however it was spelled.
#[test]
fn a_text_that_is_short_keeps_its_spelling() {
    let result = r#"{"content":[{"type":"text","text":"\u007b\u0022a\u0022:1}"}],"structuredContent":{"a":1}}"#;
    assert_eq!(in_few_words(result, "", Limits::default()), None);
}

/// CN-13: an empty text beside it does not keep the one that repeats the value from being shorter.
#[test]
fn an_empty_text_repeats_nothing_that_could_be_shorter() {
    let value =
        json!({"rows": (0..20).map(|n| json!({"id": n, "note": null})).collect::<Vec<_>>()});
    let texts = [
        json!({"type": "text", "text": ""}),
        json!({"type": "text", "text": value.to_string()}),
    ];
    let result = json!({"content": texts, "structuredContent": value}).to_string();
    let short = in_few_words(&result, "", Limits::default()).unwrap();
    assert_eq!(short["content"][0], texts[0]);
    let text = short["content"][1]["text"].as_str().unwrap();
    assert!(text.len() < value.to_string().len() / 2, "{text}");
}

/// CN-13: a text that says something else than the one string of the value cannot be read on there, so it stays.
#[test]
fn a_long_text_beside_another_string_stays() {
    let long = "word ".repeat(2000);
    let result = |note: &str| {
        json!({
            "content": [{"type": "text", "text": long}],
            "structuredContent": {"note": note},
        })
        .to_string()
    };
    assert!(in_few_words(&result(&long), "", Limits::default()).is_some());
    assert_eq!(in_few_words(&result("short"), "", Limits::default()), None);
}

/// CN-13: a text as long as the limit stays.
#[test]
fn a_text_as_long_as_it_may_be_stays() {
    let text = format!("{}. {}", "x".repeat(2000), "y".repeat(2998));
    let result = json!({"content": [{"type": "text", "text": text}]}).to_string();
    let limited = |prose: usize| in_few_words(&result, "", Limits::default().with_prose(prose));
    assert_eq!(limited(5000), None);
    assert!(limited(4999).is_some());
    let written = json!("one two three four").to_string();
    let value = Json::parse(&written).unwrap();
    let is_cut = |text| {
        compact(&value, &Limits::default().with_text(text))
            .left_out
            .len()
    };
    assert_eq!([18, 17].map(is_cut), [0, 1]);
}

/// CN-13: as many rows stay whole as have the bytes for it, keys and what stands between counted.
#[test]
fn rows_stay_whole_while_there_are_bytes() {
    let whole = |row: fn(usize) -> Value, bytes: usize| {
        let written = (0..6).map(row).collect::<Value>().to_string();
        let limits = Limits::default().with_detailed_bytes(bytes);
        let short = compact(&Json::parse(&written).unwrap(), &limits)
            .value
            .to_json();
        let rows: Vec<Value> = serde_json::from_str(&short).unwrap();
        rows.iter().filter(|row| row.get("more").is_some()).count()
    };
    // `"id":1,` is counted as 7 bytes, `"more":"xxxxxxxxxx",` as 20, and its list of three as 17.
    let text = |n: usize| json!({"id": n, "more": "xxxxxxxxxx"});
    assert_eq!([53, 54].map(|bytes| whole(text, bytes)), [1, 2]);
    let list = |n: usize| json!({"id": n, "more": [1, 2, 3]});
    assert_eq!([71, 72].map(|bytes| whole(list, bytes)), [2, 3]);
}

/// CN-13: a text is said to be made from another column where that is so in all rows, those that lost it too.
#[test]
fn a_text_is_made_from_another_in_all_rows_or_in_none() {
    let is_made = |number: fn(usize) -> usize| {
        let row = |n: usize| json!({"id": n, "url": format!("https://example.org/{}", number(n))});
        let written = (0..8).map(row).collect::<Value>().to_string();
        let limits = Limits::default().with_detailed(4);
        let columns = compact_columns(&Json::parse(&written).unwrap(), &limits)
            .value
            .to_json();
        columns.contains("https://example.org/{id}")
    };
    assert!(is_made(|n| n));
    assert!(!is_made(|n| if n == 0 { 0 } else { n + 1 }));
    assert!(!is_made(|n| if n < 4 { n } else { n + 1 }));
}

/// TR-4: rows whose schema is more than can be followed stay as they are, however many and long.
#[test]
fn rows_of_a_schema_that_cannot_be_followed_stay() {
    let row = |n: usize| json!({"id": n, "note": "word ".repeat(500), "none": null});
    let value = json!({"rows": (0..6).map(row).collect::<Value>(), "next": null});
    let rows = json!({"type": "array", "items": {"oneOf": [{"required": ["id"]}]}});
    let schema = json!({"type": "object", "properties": {"rows": rows}});
    let written = value.to_string();
    let whole = Json::parse(&written).unwrap();
    let limits = Limits::default().with_detailed(2);
    let short = compact_structured(&whole, &Contract::of(&schema), &limits, None).unwrap();
    let left: Value = serde_json::from_str(&short.value.to_json()).unwrap();
    assert_eq!((&left["rows"], left.get("next")), (&value["rows"], None));
}

/// TR-4: a schema binds, and so does who validates.
#[test]
fn a_contract_with_a_schema_or_a_validator_is_not_free() {
    let schema = json!({"type": "object"});
    let accepts = |_: &Value| true;
    assert!(!Contract::of(&schema).is_free());
    assert!(!Contract::default().accepted_by(&accepts).is_free());
    assert!(Contract::default().is_free());
}

/// TR-4: a validator is asked about the value that clients read, in which no key has a meaning of its own.
#[test]
fn a_validator_sees_every_object_as_it_is_written() {
    let object = r#"{"$serde_json::private::RawValue":"7"}"#;
    let notes = vec![json!({"id": 1, "note": null}); 20];
    let written = format!(r#"{{"kept":{object},"rows":{}}}"#, json!(notes));
    let whole = Json::parse(&written).unwrap();
    let short = |accepts: &dyn Fn(&Value) -> bool| {
        let contract = Contract::default().accepted_by(accepts);
        let short = compact_structured(&whole, &contract, &Limits::default(), None)?;
        Some(short.value.to_json())
    };
    let text = short(&|value| value["kept"].is_object()).unwrap();
    assert!(text.contains(object), "{text}");
    assert_eq!(short(&|value| value["kept"] == 7), None);
}

/// CN-13: long keys and many rows take time in proportion to their size.
#[test]
fn a_hostile_value_is_compacted_within_limits() {
    let key = "k".repeat(200_000);
    let list = vec!["null,\"\",0"; 20_000].join(",");
    let text = format!(
        r#"{{"{key}":[{list}],"rows":[{}]}}"#,
        vec![r#"{"a":null}"#; 20_000].join(",")
    );
    let value = Json::parse(&text).unwrap();
    let short = compact_columns(&value, &Limits::default());
    assert_eq!(short.left_out.len(), 3);
    assert!(short.value.to_json().len() < text.len() / 2);
}

/// CN-13: an object of many members is folded like an array of many elements.
#[test]
fn an_object_of_many_members_is_a_list_of_them() {
    let rows = (0..1000).map(|at| (format!("k{at}"), json!({"n": at, "none": null})));
    let value = json!({"by_key": rows.collect::<serde_json::Map<_, _>>(), "total": 1000});
    let written = value.to_string();
    let whole = Json::parse(&written).unwrap();
    let short = compact(&whole, &Limits::default());
    let left: Value = serde_json::from_str(&short.value.to_json()).unwrap();
    assert_eq!(left["by_key"].as_object().unwrap().len(), 500);
    assert_eq!(left["by_key"]["k63"], json!({"n": 63}));
    assert_eq!(left["by_key"]["k499"], "…", "its key stays");
    assert_eq!(left["total"], 1000, "it stands beside the list");
    let said: Vec<_> = short.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "/by_key: 500 of 1000 members",
            "/by_key/*/none: 64 empty",
            "/by_key/*: 64 of 500 in full, the others by their key",
        ]
    );
    for (rule, first) in [
        (LeftOutRule::Members, "k500"),
        (LeftOutRule::Details, "k64"),
    ] {
        let cut = short.left_out.iter().find(|one| one.rule == rule);
        let page = read(&whole, &cut.unwrap().part()).unwrap();
        let begins = format!(r#"{{"{first}":{{"n":"#);
        assert!(page.value.to_json().starts_with(&begins), "{rule:?}");
    }
    // A record is none, however long.
    let record = (0..64).map(|at| (format!("k{at}"), json!([at])));
    let record = Value::Object(record.collect()).to_string();
    let record = Json::parse(&record).unwrap();
    assert_eq!(compact(&record, &Limits::default()).value, record);
}

/// CN-13: every row keeps what tells it apart, be it several members together, or the one that differs most.
#[test]
fn rows_that_no_member_tells_apart_keep_several() {
    let of = |row: fn(usize) -> Value, text: fn(&Json<'_>, &Limits) -> String| {
        let rows: Vec<_> = (0..60).map(row).collect();
        let written = json!({"rows": rows, "total": 60}).to_string();
        text(
            &Json::parse(&written).unwrap(),
            &Limits::default().with_detailed(1),
        )
    };
    let as_json =
        |value: &Json<'_>, limits: &Limits| compact_columns(value, limits).value.to_json();
    let stops =
        |at: usize| json!({"line": at / 10, "stop": at % 10, "note": "x".repeat(90), "at": [at]});
    let json = of(stops, as_json);
    let expected = r#""others":{"columns":["line","stop"],"rows":[[0,1],"#;
    assert!(json.contains(expected), "{json}");
    assert!(json.contains("[5,9]]"), "{json}");
    let page = of(stops, |value, limits| compact_markdown(value, limits).0);
    let expected = "- **others**: line, stop: \\[0, 1], ";
    assert!(page.contains(expected), "{page}");
    // A log says many things twice.
    let log = |at: usize| json!({"level": "info", "time": at / 2, "text": "y".repeat(90)});
    let json = of(log, as_json);
    assert!(json.contains(r#""others":{"time":[0,1,1,2,2,"#), "{json}");
}

/// CN-13: a text that is cut is no key, since the rows would look alike.
#[test]
fn a_text_that_is_cut_tells_no_rows_apart() {
    let rows: Vec<_> = (0..9)
        .map(|at| json!({"place": at / 2, "name": format!("a station with number {at}"), "at": [at]}))
        .collect();
    let written = json!(rows).to_string();
    let limits = Limits::default()
        .with_rows(6)
        .with_detailed(1)
        .with_text(16);
    let once = compact(&Json::parse(&written).unwrap(), &limits).value;
    let expected = json!([
        {"place": 0, "name": "a station …", "at": [0]},
        {"place": 0}, {"place": 1}, {"place": 1}, {"place": 2}, {"place": 2},
    ]);
    assert_eq!(once.to_json(), expected.to_string());
    assert_eq!(compact(&once, &limits).value, once);
}

/// How much is cut, and only cut.
fn cuts() -> impl Strategy<Value = Limits> {
    let some = |range| prop_oneof![1 => Just(usize::MAX), 3 => range];
    (some(0..6_usize), some(1..4), some(0..400), some(0..4)).prop_map(
        |(elements, depth, bytes, members)| {
            let limits = Limits::none().with_at_most(elements).with_bytes(bytes);
            limits.with_depth(depth).with_members(members)
        },
    )
}

/// CN-13: nothing of a recorded value is lost by a cut: what is not in the short value is read where the notice leads.
#[test]
fn what_is_cut_of_a_recorded_value_can_be_read() {
    let recorded = mcp_vary_testkit::recordings::results();
    let values = recorded.iter().map(|it| serde_json::from_str(it).unwrap());
    let values = values.map(|mut result: Value| result["structuredContent"].take());
    let rows = ROWS.iter().map(|(_, text)| Rows::of(text).value);
    let (mut all, mut cut) = (0, 0);
    for value in values.chain(rows).filter(|value| !value.is_null()) {
        let written = value.to_string();
        let whole = Json::parse(&written).unwrap();
        for bytes in [8000, 2000, 200] {
            let short = compact(&whole, &Limits::none().with_bytes(bytes));
            let mut found = Vec::new();
            scalars(
                &serde_json::from_str(&short.value.to_json()).unwrap(),
                &mut found,
            );
            for one in &short.left_out {
                // The pages of a text are joined.
                let (mut part, mut text) = (Some(one.part().with_offset(0)), String::new());
                while let Some(asked) = part {
                    let page = read(&whole, &asked).unwrap();
                    let value: Value = serde_json::from_str(&page.value.to_json()).unwrap();
                    text.push_str(value.as_str().unwrap_or_default());
                    scalars(&value, &mut found);
                    part = page.next.map(|next| asked.with_offset(next));
                }
                found.push(json!(text).to_string());
            }
            let mut expected = Vec::new();
            scalars(&value, &mut expected);
            let found: BTreeSet<String> = found.into_iter().collect();
            let lost: Vec<&String> = expected.iter().filter(|it| !found.contains(*it)).collect();
            assert!(
                lost.is_empty(),
                "{bytes} bytes: {lost:?} {:?}",
                short.left_out
            );
            all += 1;
            cut += usize::from(!short.left_out.is_empty());
        }
    }
    assert!(cut >= 15, "{cut} of {all}");
}

/// The scalars of a value, as JSON.
fn scalars(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.values().for_each(|value| scalars(value, found)),
        Value::Array(elements) => elements.iter().for_each(|value| scalars(value, found)),
        scalar => found.push(scalar.to_string()),
    }
}

/// Whether `short` says nothing that `whole` does not, but for what is nested too deep.
fn is_cut_of(short: &Value, whole: &Value) -> bool {
    let is_container = whole.is_object() || whole.is_array();
    match (short, whole) {
        (Value::String(sign), _) if is_container => sign == ELLIPSIS,
        (Value::Object(short), Value::Object(whole)) => short.iter().all(|(key, value)| {
            let whole = whole.get(key);
            whole.is_some_and(|whole| is_cut_of(value, whole))
        }),
        (Value::Array(short), Value::Array(whole)) => {
            short.len() <= whole.len() && short.iter().zip(whole).all(|(s, w)| is_cut_of(s, w))
        }
        (short, whole) => is_part(short, whole),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// CN-13: a cut leaves a part of the whole, says what is missing, and is within the limits.
    #[test]
    fn a_cut_is_said(value in value(), limits in cuts()) {
        let written = value.to_string();
        let whole = Json::parse(&written).unwrap();
        let short = compact(&whole, &limits);
        let left: Value = serde_json::from_str(&short.value.to_json()).unwrap();
        prop_assert!(is_cut_of(&left, &value), "{} of {}", left, value);
        prop_assert_eq!(short.left_out.is_empty(), left == value, "{} of {}: {:?}", left, value, short.left_out);
        for one in &short.left_out {
            prop_assert!(one.retained < one.total && one.occurrences > 0, "{:?}", one);
            prop_assert!(read(&whole, &one.part()).is_ok(), "{:?} of {}", one, value);
        }
        prop_assert!(depth(&left) <= limits.depth.min(99), "{}", left);
    }

    /// CN-13: with bytes to spare nothing is cut.
    #[test]
    fn what_fits_is_whole(value in value()) {
        let written = value.to_string();
        let limits = Limits::none().with_bytes(written.len() * 3 + 8);
        prop_assert_eq!(compact(&Json::parse(&written).unwrap(), &limits).left_out, []);
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(elements) if !elements.is_empty() => {
            1 + elements.iter().map(depth).max().unwrap()
        }
        Value::Object(members) if !members.is_empty() => {
            1 + members.values().map(depth).max().unwrap()
        }
        _ => 0,
    }
}
