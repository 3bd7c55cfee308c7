//! Which fields of a result reach the clients of a variant.

use mcp_vary_view::ResultFields;

use crate::support::*;

/// What the server answers, by the tool.
fn said(tool: &str) -> Value {
    let value = json!({"rows": [1, 2]});
    let text = json!({"type": "text", "text": value.to_string()});
    let others = others();
    let with = |block: Value| -> Value { others.iter().cloned().chain([block]).collect() };
    match tool {
        "both" | "bound" | "ui" => json!({"content": with(text), "structuredContent": value}),
        "author" => json!({
            "content": with(json!({"type": "text", "text": "two rows"})), "structuredContent": value,
        }),
        "value" => json!({"content": others, "structuredContent": value}),
        "list" => json!({"content": with(text), "structuredContent": [1, 2]}),
        "null" => json!({"content": with(text), "structuredContent": null}),
        "prose" => json!({"content": with(json!({"type": "text", "text": "prose"}))}),
        "error" => json!({
            "content": with(json!({"type": "text", "text": "went wrong"})), "structuredContent": value, "isError": true,
        }),
        other => panic!("{other} is no tool"),
    }
}

const TOOLS: &[&str] = &[
    "both", "bound", "ui", "author", "value", "list", "null", "prose", "error",
];

/// The blocks that are no texts.
fn others() -> Vec<Value> {
    vec![
        json!({"type": "image", "data": "aGk=", "mimeType": "image/png"}),
        json!({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}),
        json!({"type": "resource", "resource": {"uri": "a://b", "text": "embedded"}}),
        json!({"type": "x-own", "text": "unknown"}),
    ]
}

fn server() -> Script {
    let listed = |name: &&str| {
        let mut tool = json!({"name": name, "inputSchema": {"type": "object"}});
        if *name == "bound" {
            tool["outputSchema"] = json!({"type": "object", "required": ["rows"]});
        }
        if *name == "ui" {
            tool["_meta"] = json!({"ui": {"resourceUri": "ui://rows"}});
        }
        tool
    };
    Script::legacy("rows")
        .lists(json!({"tools": TOOLS.iter().map(listed).collect::<Vec<_>>()}))
        .on_call(|params| said(params["name"].as_str().unwrap()))
}

fn only(fields: ResultFields) -> Vec<VariantConfig> {
    let mut only = variant("only");
    only.style.result = fields;
    vec![only]
}

fn texts(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().unwrap().iter();
    let texts = blocks.filter(|block| block["type"] == "text");
    texts.filter_map(|block| block["text"].as_str()).collect()
}

/// What holds of `sent` for a client that knows structured values or does not.
#[track_caller]
fn holds(sent: &Value, tool: &str, fields: ResultFields, knows: bool, about: &str) {
    let blocks = sent["content"].as_array().unwrap().iter();
    let retained: Vec<_> = blocks
        .filter(|block| block["type"] != "text")
        .cloned()
        .collect();
    assert_eq!(retained, others(), "{about}");
    let structured = sent
        .get("structuredContent")
        .filter(|value| !value.is_null());
    let is_said = !texts(sent).is_empty();
    assert!(
        is_said || structured.is_some() && knows,
        "it says nothing: {about}"
    );
    match tool {
        "error" => {
            assert_eq!(sent["isError"], true, "{about}");
            assert_eq!(texts(sent), ["went wrong"], "{about}");
        }
        // The data of a user interface reach it whatever its model reads.
        "ui" => assert!(structured.is_some(), "{about}"),
        "bound" => assert_eq!(
            structured.is_some(),
            fields != ResultFields::Content,
            "{about}"
        ),
        _ => {}
    }
    if fields == ResultFields::Content && tool != "ui" {
        assert_eq!(sent.get("structuredContent"), None, "{about}");
    }
    if fields == ResultFields::Structured && knows && structured.is_some() && tool != "error" {
        assert_eq!(texts(sent), [""; 0], "{about}");
    }
}

const FIELDS: [ResultFields; 3] = [
    ResultFields::Both,
    ResultFields::Content,
    ResultFields::Structured,
];

/// TR-2, TR-5, CN-8: whatever fields a variant's clients get, no image, audio, embedded resource, unknown block or
/// error is lost, something is said, and what the list promises is there.
#[tokio::test]
async fn fields_lose_nothing() {
    for fields in FIELDS {
        let harness = Harness::of_variants(server(), only(fields)).await;
        for tags in [
            &[][..],
            &["agent", "format=json"],
            &["human"],
            &["format=text"],
        ] {
            let declared = match tags {
                [] => json!({}),
                tags => features(tags),
            };
            let list = ask_modern_as(&harness, &declared, "tools/list", json!({})).await;
            let bound = &list["result"]["tools"][1];
            let is_promised = fields != ResultFields::Content;
            let found = bound.get("outputSchema").is_some();
            assert_eq!(found, is_promised, "{fields:?}");
            for tool in TOOLS {
                let about = format!("{tool} {fields:?} {tags:?}");
                let params = json!({"name": tool, "arguments": {}});
                let told = ask_modern_as(&harness, &declared, "tools/call", params).await;
                let told = &told["result"];
                holds(told, tool, fields, true, &format!("{about}: {told}"));
            }
        }
    }
}

/// A client of a revision that has no `structuredContent` gets the texts, whatever the variant's clients get.
#[tokio::test]
async fn who_knows_no_structure_gets_the_texts() {
    for fields in FIELDS {
        let harness = Harness::of_variants(server(), only(fields)).await;
        for (revision, knows) in [("2025-03-26", false), ("2025-11-25", true)] {
            let mut client = LegacyClient::open(&harness, revision, &json!({})).await;
            for tool in TOOLS {
                let params = json!({"name": tool, "arguments": {}});
                let told = client.answer("tools/call", params).await;
                let told = &told["result"];
                let about = format!("{tool} {fields:?} {revision}: {told}");
                let is_value = *tool == "value" && fields != ResultFields::Content;
                holds(told, tool, fields, knows || is_value, &about);
            }
        }
    }
}
