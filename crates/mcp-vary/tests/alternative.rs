//! Results that an operator has told otherwise, client by client.

#![expect(
    clippy::unwrap_used,
    reason = "a case that cannot be read fails its test"
)]

use mcp_vary::feature::Features;
use mcp_vary::shape::{Alternative, Policy, Shaped, ToolFacts, ToolOutput};
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

/// Asserts how `result` is told; `expected` is empty where it stays.
#[track_caller]
fn tells(told: &Alternative, result: &str, client: &Client<'_>, expected: &str) {
    let (features, _) = Features::from_tags(client.tags.iter().copied());
    let check = client
        .schema
        .map(|schema| OutputCheck::new(schema).unwrap());
    let schema = check.as_ref().map(|check| check as _);
    let shaped = told.apply(result, &features, client.tool, schema, &client.policy);
    let is = match &shaped {
        Shaped::Changed { result, .. } => result.as_str(),
        _ => "",
    };
    assert_eq!(is, expected);
}

/// CN-9, CN-10, CN-12, CN-14: each client gets the alternative in its form; what is no text stays.
#[test]
fn an_alternative_is_told_in_the_form_of_the_client() {
    let told = weather();
    tells(
        &told,
        WEATHER,
        &client(&["agent", "format=json"]),
        r#"{"content":[{"type":"image"},{"type":"audio"}],"structuredContent":{"c":8},"x":1}"#,
    );
    tells(
        &told,
        WEATHER,
        &client(&["agent"]),
        r#"{"content":[{"type":"image"},{"type":"text","text":"{\"c\":8}"},{"type":"audio"}],"structuredContent":{"c":8},"x":1}"#,
    );
    tells(
        &told,
        WEATHER,
        &client(&["agent", "sampling"]),
        r#"{"content":[{"type":"image"},{"type":"text","text":"{\"c\":8,\"reasoning\":[\"take a jacket\"]}"},{"type":"audio"}],"structuredContent":{"c":8,"reasoning":["take a jacket"]},"x":1}"#,
    );
    tells(
        &told,
        WEATHER,
        &client(&["human", "sampling"]),
        r#"{"content":[{"type":"image"},{"type":"text","text":"**8 °C**"},{"type":"text","text":"- take a jacket"},{"type":"audio"}],"x":1}"#,
    );
    tells(
        &told,
        WEATHER,
        &client(&["format=text"]),
        r#"{"content":[{"type":"image"},{"type":"text","text":"8 °C"},{"type":"audio"}],"x":1}"#,
    );
    tells(
        &told,
        WEATHER,
        &client(&[]),
        r#"{"content":[{"type":"image"},{"type":"text","text":"**8 °C**"},{"type":"audio"}],"structuredContent":{"c":8},"x":1}"#,
    );
}

/// TR-4: what was promised stays where what the operator makes of it is no object, which older clients cannot have.
#[test]
fn a_promised_value_stays_beside_one_that_is_no_object() {
    let told = Alternative::default().with_value("[8]");
    let mut client = client(&["format=json"]);
    client.tool.output_schema = true;
    client.schema = Some(r#"{"type":"object","required":["c"]}"#);
    let promised = r#"{"content":[{"type":"image"},{"type":"text","text":"[8]"},{"type":"audio"}],"structuredContent":{"c":8,"log":[]},"x":1}"#;
    tells(&told, WEATHER, &client, promised);
    client.schema = None;
    client.tool.output_schema = false;
    client.tool.ui = true;
    tells(&told, WEATHER, &client, promised);
    client.tool.ui = false;
    let alone =
        r#"{"content":[{"type":"image"},{"type":"text","text":"[8]"},{"type":"audio"}],"x":1}"#;
    tells(&told, WEATHER, &client, alone);
}

/// CN-10: without words of the operator the author's own stay, but not the value in other words.
#[test]
fn an_author_keeps_the_word_where_the_operator_has_none() {
    let told = Alternative::default().with_value(r#"{"c":8}"#);
    tells(
        &told,
        WEATHER,
        &client(&["human"]),
        r#"{"content":[{"type":"image"},{"type":"text","text":"It is 8 °C."},{"type":"audio"}],"x":1}"#,
    );
    tells(
        &told,
        WEATHER,
        &client(&["format=text"]),
        r#"{"content":[{"type":"image"},{"type":"text","text":"It is 8 °C."},{"type":"audio"}],"x":1}"#,
    );
    let bare = r#"{"content":[{"type":"text","text":"{\"c\":8,\"log\":[]}"}],"structuredContent":{"c":8,"log":[]}}"#;
    tells(
        &told,
        bare,
        &client(&["human"]),
        r#"{"content":[{"type":"text","text":"- **c**: 8"}]}"#,
    );
}

/// TR-4, TR-5: a value that a schema or a user interface does not take is told in `content` alone.
#[test]
fn what_the_schema_does_not_take_stays_out_of_the_structure() {
    let told = Alternative::default().with_value(r#"{"c":8}"#);
    let schema = |schema| Client {
        schema: Some(schema),
        tool: ToolFacts {
            output_schema: true,
            ui: false,
        },
        ..client(&["agent"])
    };
    tells(
        &told,
        WEATHER,
        &schema(r#"{"required":["c"]}"#),
        r#"{"content":[{"type":"image"},{"type":"text","text":"{\"c\":8}"},{"type":"audio"}],"structuredContent":{"c":8},"x":1}"#,
    );
    tells(
        &told,
        WEATHER,
        &schema(r#"{"required":["log"]}"#),
        r#"{"content":[{"type":"image"},{"type":"text","text":"{\"c\":8}"},{"type":"audio"}],"structuredContent":{"c":8,"log":[]},"x":1}"#,
    );
    let unknown = Client {
        tool: ToolFacts {
            output_schema: true,
            ui: false,
        },
        ..client(&["agent"])
    };
    tells(
        &told,
        WEATHER,
        &unknown,
        r#"{"content":[{"type":"image"},{"type":"text","text":"{\"c\":8}"},{"type":"audio"}],"structuredContent":{"c":8,"log":[]},"x":1}"#,
    );
    let ui = Client {
        tool: ToolFacts {
            output_schema: false,
            ui: true,
        },
        ..client(&["agent"])
    };
    tells(
        &told,
        WEATHER,
        &ui,
        r#"{"content":[{"type":"image"},{"type":"text","text":"{\"c\":8}"},{"type":"audio"}],"structuredContent":{"c":8,"log":[]},"x":1}"#,
    );
}

/// CN-10: prose is replaced by words and followed by hints.
#[test]
fn prose_is_told_in_other_prose() {
    let prose = r#"{"content":[{"type":"text","text":"It is 8 °C."},{"type":"image"}]}"#;
    let told = weather();
    tells(
        &told,
        prose,
        &client(&["human"]),
        r#"{"content":[{"type":"text","text":"**8 °C**"},{"type":"image"}]}"#,
    );
    tells(
        &told,
        prose,
        &client(&["format=text", "sampling"]),
        r#"{"content":[{"type":"text","text":"8 °C"},{"type":"text","text":"take a jacket"},{"type":"image"}]}"#,
    );
    tells(&told, prose, &client(&["agent", "format=json"]), "");
    tells(
        &told,
        prose,
        &client(&["agent", "format=json", "sampling"]),
        r#"{"content":[{"type":"text","text":"It is 8 °C."},{"type":"image"},{"type":"text","text":"take a jacket"}]}"#,
    );
    tells(
        &told,
        r#"{"content":[{"type":"image"}]}"#,
        &client(&["human"]),
        r#"{"content":[{"type":"text","text":"**8 °C**"},{"type":"image"}]}"#,
    );
}

/// CN-10: a value in prose is lifted, and then told in other words.
#[test]
fn a_value_in_prose_is_told_where_it_is_lifted() {
    let told = weather();
    let document =
        r#"{"content":[{"type":"text","text":"{\"c\":8,\"log\":[]}"}],"structuredContent":null}"#;
    tells(
        &told,
        document,
        &client(&["agent", "format=json"]),
        r#"{"content":[],"structuredContent":{"c":8}}"#,
    );
    tells(
        &told,
        document,
        &client(&["agent"]),
        r#"{"content":[{"type":"text","text":"{\"c\":8}"}],"structuredContent":{"c":8}}"#,
    );
    // Structure that the server did not give is for those who ask for it.
    tells(
        &Alternative::default().with_value(r#"{"c":8}"#),
        document,
        &client(&[]),
        r#"{"content":[{"type":"text","text":"{\"c\":8}"}]}"#,
    );
    // Not in the one field, so in the other.
    let refusing = Client {
        schema: Some(r#"{"required":["log"]}"#),
        ..client(&["agent", "format=json"])
    };
    tells(
        &told,
        document,
        &refusing,
        r#"{"content":[{"type":"text","text":"{\"c\":8}"}]}"#,
    );
    let not_lifting = Client {
        policy: Policy {
            lift: false,
            ..Policy::default()
        },
        ..client(&["agent", "format=json"])
    };
    tells(&told, document, &not_lifting, "");
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
    assert_eq!(
        ToolOutput::read(r#"{"content":[],"isError":true}"#, true),
        None
    );
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
