//! Results that an operator has told otherwise, client by client.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use mcp_vary::feature::Features;
use mcp_vary::json::string;
use mcp_vary::shape::{Alternative, Policy, Shaped, ToolFacts, ToolOutput};
use mcp_vary_testkit::defaults::default_with;
use mcp_vary_view::OutputCheck;

const WEATHER: &str = r#"{"content":[{"type":"image"},{"type":"text","text":"It is 8 °C."},{"type":"text","text":"{\"c\":8,\"log\":[]}"},{"type":"audio"}],"structuredContent":{"c":8,"log":[]},"x":1}"#;

fn weather() -> Alternative {
    Alternative::default()
        .with_value(r#"{"c":8}"#)
        .with_markdown("**8 °C**")
        .with_text("8 °C")
        .with_hint("take a jacket")
        .with_hints_under("reasoning")
}

struct Client<'c> {
    tags: &'c [&'c str],
    schema: Option<&'c str>,
    tool: ToolFacts,
    policy: Policy<'c>,
}

fn client<'c>(tags: &'c [&'c str]) -> Client<'c> {
    Client {
        tags,
        schema: None,
        tool: ToolFacts::default(),
        policy: Policy::default(),
    }
}

impl<'c> Client<'c> {
    fn with_schema(self, schema: &'c str) -> Self {
        let schema = Some(schema);
        Self { schema, ..self }
    }

    fn with_tool(self, output_schema: bool, ui: bool) -> Self {
        let tool = ToolFacts { output_schema, ui };
        Self { tool, ..self }
    }
}

/// Asserts how `result` is told; `expected` is empty where it stays.
#[track_caller]
fn tells(sent: &Alternative, result: &str, client: &Client<'_>, expected: &str) {
    let (features, _) = Features::from_tags(client.tags.iter().copied());
    let check = client
        .schema
        .map(|schema| OutputCheck::new(schema).unwrap());
    let schema = check.as_ref().map(|check| check as _);
    let shaped = sent.apply(result, &features, client.tool, schema, &client.policy);
    let is = match &shaped {
        Shaped::Changed { result, .. } => result.as_str(),
        _ => "",
    };
    assert_eq!(is, expected);
}

/// Asserts the texts between the image and the audio of [`WEATHER`], and its value; "" is none.
#[track_caller]
fn tells_weather(sent: &Alternative, client: &Client<'_>, texts: &[&str], value: &str) {
    let texts = texts.iter().map(|text| string(text));
    let texts: String = texts
        .map(|text| format!(r#"{{"type":"text","text":{text}}},"#))
        .collect();
    let value = match value {
        "" => String::new(),
        value => format!(r#""structuredContent":{value},"#),
    };
    let blocks = format!(r#"{{"type":"image"}},{texts}{{"type":"audio"}}"#);
    let expected = format!(r#"{{"content":[{blocks}],{value}"x":1}}"#);
    tells(sent, WEATHER, client, &expected);
}

const SERVED: &str = r#"{"c":8,"log":[]}"#;
const SHORT: &str = r#"{"c":8}"#;

/// CN-9, CN-10, CN-12, CN-14: each client gets the alternative in its form; what is no text stays.
#[test]
fn an_alternative_is_told_in_the_form_of_the_client() {
    let sampled = r#"{"c":8,"reasoning":["take a jacket"]}"#;
    let cases: [(&[&str], &[&str], &str); 6] = [
        (&["agent", "format=json"], &[], SHORT),
        (&["agent"], &[SHORT], SHORT),
        (&["agent", "sampling"], &[sampled], sampled),
        (&["human", "sampling"], &["**8 °C**", "- take a jacket"], ""),
        (&["format=text"], &["8 °C"], ""),
        (&[], &["**8 °C**"], SHORT),
    ];
    for (tags, texts, value) in cases {
        tells_weather(&weather(), &client(tags), texts, value);
    }
}

/// TR-4: what was promised stays where what the operator makes of it is no object, which older clients cannot have.
#[test]
fn a_promised_value_stays_beside_one_that_is_no_object() {
    let told = Alternative::default().with_value("[8]");
    let json = || client(&["format=json"]);
    let promised = json().with_tool(true, false);
    let promised = promised.with_schema(r#"{"type":"object","required":["c"]}"#);
    tells_weather(&told, &promised, &["[8]"], SERVED);
    tells_weather(&told, &json().with_tool(false, true), &["[8]"], SERVED);
    tells_weather(&told, &json(), &["[8]"], "");
}

/// CN-10: without words of the operator the author's own stay, but not the value in other words.
#[test]
fn an_author_keeps_the_word_where_the_operator_has_none() {
    let told = Alternative::default().with_value(SHORT);
    tells_weather(&told, &client(&["human"]), &["It is 8 °C."], "");
    tells_weather(&told, &client(&["format=text"]), &["It is 8 °C."], "");
    let bare = r#"{"content":[{"type":"text","text":"{\"c\":8,\"log\":[]}"}],"structuredContent":{"c":8,"log":[]}}"#;
    let markdown = r#"{"content":[{"type":"text","text":"- **c**: 8"}]}"#;
    tells(&told, bare, &client(&["human"]), markdown);
}

/// TR-4, TR-5: a value that a schema or a user interface does not take is told in `content` alone.
#[test]
fn what_the_schema_does_not_take_stays_out_of_the_structure() {
    let told = Alternative::default().with_value(SHORT);
    let agent = |output_schema, ui| client(&["agent"]).with_tool(output_schema, ui);
    let taken = agent(true, false).with_schema(r#"{"required":["c"]}"#);
    tells_weather(&told, &taken, &[SHORT], SHORT);
    let refused = agent(true, false).with_schema(r#"{"required":["log"]}"#);
    for client in [refused, agent(true, false), agent(false, true)] {
        tells_weather(&told, &client, &[SHORT], SERVED);
    }
}

/// The result whose content is these blocks, as JSON.
fn content(blocks: &str) -> String {
    format!(r#"{{"content":[{blocks}]}}"#)
}

/// CN-10: prose is replaced by words and followed by hints.
#[test]
fn prose_is_told_in_other_prose() {
    let prose = r#"{"type":"text","text":"It is 8 °C."},{"type":"image"}"#;
    let jacket = r#"{"type":"text","text":"take a jacket"}"#;
    let markdown = r#"{"type":"text","text":"**8 °C**"},{"type":"image"}"#.to_owned();
    let text = format!(r#"{{"type":"text","text":"8 °C"}},{jacket},{{"type":"image"}}"#);
    let hinted = format!("{prose},{jacket}");
    let cases: [(&str, &[&str], String); 4] = [
        (prose, &["human"], markdown.clone()),
        (prose, &["format=text", "sampling"], text),
        (prose, &["agent", "format=json", "sampling"], hinted),
        (r#"{"type":"image"}"#, &["human"], markdown),
    ];
    for (before, tags, after) in cases {
        tells(
            &weather(),
            &content(before),
            &client(tags),
            &content(&after),
        );
    }
    let json = client(&["agent", "format=json"]);
    tells(&weather(), &content(prose), &json, "");
}

/// CN-10: a value in prose is lifted, and then told in other words.
#[test]
fn a_value_in_prose_is_told_where_it_is_lifted() {
    let told = weather();
    let document =
        r#"{"content":[{"type":"text","text":"{\"c\":8,\"log\":[]}"}],"structuredContent":null}"#;
    let lifted = r#"{"content":[],"structuredContent":{"c":8}}"#;
    let json = || client(&["agent", "format=json"]);
    tells(&told, document, &json(), lifted);
    let short = r#"{"type":"text","text":"{\"c\":8}"}"#;
    let both = format!(r#"{{"content":[{short}],"structuredContent":{{"c":8}}}}"#);
    tells(&told, document, &client(&["agent"]), &both);
    // Structure that the server did not give is for those who ask for it.
    let value = Alternative::default().with_value(SHORT);
    tells(&value, document, &client(&[]), &content(short));
    // Not in the one field, so in the other.
    let refusing = json().with_schema(r#"{"required":["log"]}"#);
    tells(&told, document, &refusing, &content(short));
    let policy = default_with::<Policy<'_>>(|it| it.lift = false);
    tells(&told, document, &Client { policy, ..json() }, "");
}

/// CN-19: a report says so once, and what was told otherwise is not told again.
#[test]
fn what_was_told_otherwise_says_so() {
    let reporting = Client {
        policy: Policy {
            report: true,
            variant: Some("v"),
            ..Policy::default()
        },
        ..client(&["human"])
    };
    tells(
        &weather(),
        r#"{"content":[],"structuredContent":{"c":8}}"#,
        &reporting,
        r#"{"content":[{"type":"text","text":"**8 °C**"}],"_meta":{"vary/applied":{"format":"markdown","variant":"v"}}}"#,
    );
    let shaped = r#"{"content":[],"structuredContent":{"c":8},"_meta":{"vary/applied":{}}}"#;
    tells(&weather(), shaped, &reporting, "");
    assert_eq!(ToolOutput::read(shaped, true), None);
    let said = ToolOutput::read(WEATHER, false).unwrap();
    assert_eq!(said.value.as_deref(), Some(r#"{"c":8,"log":[]}"#));
    assert_eq!(said.text, "It is 8 °C.\n\n{\"c\":8,\"log\":[]}");
    let found = ToolOutput::read(r#"{"content":[],"isError":true}"#, true);
    assert_eq!(found, None);
}

/// CN-7, CN-14: what has nothing for a client leaves it what it gets without.
#[test]
fn hints_alone_are_nothing_to_who_does_not_sample() {
    let hints = Alternative::default().with_hint("take a jacket");
    for tags in [
        &[][..],
        &["x-a=1"],
        &["mcp-capable", "format!=json"],
        &["verbosity=standard"],
    ] {
        tells(&hints, WEATHER, &client(tags), "");
    }
    for tags in [&["agent", "format=json"][..], &["human"], &["format=text"]] {
        let (features, _) = Features::from_tags(tags.iter().copied());
        let (tool, policy) = Default::default();
        let told = hints.apply(WEATHER, &features, tool, None, &policy);
        let without = mcp_vary::shape::tool_result(WEATHER, &features, tool, &policy);
        assert_eq!(told, without, "{tags:?}");
        assert_ne!(told, Shaped::Unchanged, "{tags:?}");
    }
    tells(
        &hints,
        r#"{"content":[{"type":"text","text":"all is well"}]}"#,
        &client(&["x-a=1", "sampling"]),
        r#"{"content":[{"type":"text","text":"all is well"},{"type":"text","text":"take a jacket"}]}"#,
    );
}
