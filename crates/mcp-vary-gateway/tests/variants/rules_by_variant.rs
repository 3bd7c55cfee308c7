//! Rules of `results`, `resources` and `prompts` that name variants.

use crate::support::*;

/// A server with a tool that has an `outputSchema`, one that has none, a resource and a prompt.
pub(super) fn server() -> Script {
    let schema = json!({"type": "object", "required": ["stations"]});
    let stations = json!({"stations": [{"id": 1, "name": "Bern"}, {"id": 2, "name": "Thun"}]});
    let text = stations.to_string();
    Script::legacy("rail")
        .lists(json!({
            "tools": [
                {"name": "list", "inputSchema": {"type": "object"}, "outputSchema": schema},
                {"name": "plain", "inputSchema": {"type": "object"}},
            ],
            "resources": [{"uri": "map://all", "name": "all"}],
        }))
        .results(json!({"resources/read": {"contents": [
            {"uri": "map://all", "mimeType": "application/json", "text": text},
        ]}}))
        .lists(json!({"prompts": [{"name": "plan"}]}))
        .results(json!({"prompts/get": {"messages": [
            {"role": "user", "content": {"type": "text", "text": "Plan it."}},
        ]}}))
        .on_call(move |params| {
            if params["arguments"]["wrong"] == true {
                let structured = json!({"stations": [{}]});
                return json!({"content": [{"type": "text", "text": "no stations"}], "structuredContent": structured});
            }
            json!({"content": [{"type": "text", "text": text}], "structuredContent": stations})
        })
}

pub(super) const RULES: &str = r#"
variants:
  standard: {}
  names: {}
  short: {from: compact}
results:
  - tools: [list]
    variants: [names, short]
    project: "{names: (.stations | map(.name))}"
    output-schema:
      type: object
      required: [names]
      properties: {names: {type: array, items: {type: string}}}
  - {tools: ["*"], variants: [names], when: human, markdown: "{{ value.names | join(' and ') }}"}
  - {tools: [plain], variants: [short], project: ".stations | length | {count: .}", for: everyone}
resources:
  - {uris: ["map://*"], variants: [names], for: everyone, type: text/plain, template: "{{ value.stations | length }} stations"}
prompts:
  - {prompts: [plan], variants: [names], for: everyone, text: "{{ text }} Briefly."}
  - {prompts: [plan], variants: [names], when: agent, text: "1. Plan."}
"#;

/// SV-11: two variants of a tool return values of different shapes, and each lists the schema of its own.
#[tokio::test]
async fn an_output_schema_is_that_of_the_variants_value() {
    let harness = Harness::configured(server(), RULES).await;
    for way in ClientKind::ALL {
        for (variant, listed, value) in [
            (
                "standard",
                json!(["stations"]),
                json!({"stations": [{"id": 1, "name": "Bern"}, {"id": 2, "name": "Thun"}]}),
            ),
            (
                "names",
                json!(["names"]),
                json!({"names": ["Bern", "Thun"]}),
            ),
            // `compact` lists no `outputSchema`; the value is the variant's all the same.
            ("short", Value::Null, json!({"names": ["Bern", "Thun"]})),
        ] {
            let list = harness
                .result_of(way, &[], "tools/list", under(variant, json!({})))
                .await;
            let schema = &list["tools"][0]["outputSchema"];
            assert_eq!(schema["required"], listed, "{way:?} {variant}");
            assert_eq!(list["tools"][1].get("outputSchema"), None);
            if way.is_modern() {
                assert_eq!(list["ttlMs"], 0, "lists differ by variant");
            }
            let called = harness
                .result_of(way, &[], "tools/call", under(variant, tool("list")))
                .await;
            assert_eq!(called["structuredContent"], value, "{way:?} {variant}");
            let text: Value = serde_json::from_str(texts(&called)[0]).unwrap();
            assert_eq!(text, value, "{way:?} {variant}");
        }
    }
}

/// SV-11: a value that the listed schema does not accept is an error, with what the server returned.
#[tokio::test]
async fn a_value_that_breaks_the_listed_schema_is_not_sent_as_structured() {
    let harness = Harness::configured(server(), RULES).await;
    for way in ClientKind::ALL {
        let mut wrong = tool("list");
        wrong["arguments"] = json!({"wrong": true});
        let called = harness
            .result_of(way, &[], "tools/call", under("names", wrong.clone()))
            .await;
        assert_eq!(called["isError"], true, "{way:?}");
        assert_eq!(called.get("structuredContent"), None);
        assert_eq!(
            texts(&called),
            [
                "The tool was called, but its result does not have the form that `outputSchema` promises. The server's own \
                 result follows.",
                "no stations"
            ]
        );
        let served = harness
            .result_of(way, &[], "tools/call", under("standard", wrong))
            .await;
        assert_eq!(served.get("isError"), None);
    }
    assert_eq!(harness.gateway.failed_results(), 4);
}

/// SV-11, CN-20: other rules start from the variant's value, and apply in the variants that they name.
#[tokio::test]
async fn a_rule_applies_in_the_variants_that_it_names() {
    let harness = Harness::configured(server(), RULES).await;
    for way in ClientKind::ALL {
        let human = &["human", "format=markdown"][..];
        let names = harness
            .result_of(way, human, "tools/call", under("names", tool("list")))
            .await;
        assert_eq!(texts(&names), ["Bern and Thun"], "{way:?}");
        let expected = json!({"names": ["Bern", "Thun"]});
        assert_eq!(names["structuredContent"], expected, "the list promises it");
        let params = tool("list");
        let standard = harness
            .result_of(way, human, "tools/call", under("standard", params))
            .await;
        assert!(texts(&standard)[0].contains("Bern"), "{standard}");
        assert_ne!(texts(&standard), ["Bern and Thun"]);
        let count = harness
            .result_of(way, &[], "tools/call", under("short", tool("plain")))
            .await;
        assert_eq!(count["structuredContent"], json!({"count": 2}), "{way:?}");
        let whole = harness
            .result_of(way, &[], "tools/call", under("names", tool("plain")))
            .await;
        whole.has("/structuredContent/stations/1/name", "Thun");
    }
}

/// SV-11, SV-17: a resource has another form in a variant, for clients that declare nothing, too. Nobody caches it.
#[tokio::test]
async fn a_resource_has_the_form_of_its_variant() {
    let harness = Harness::configured(server(), RULES).await;
    for way in ClientKind::ALL {
        let map = || json!({"uri": "map://all"});
        for tags in [&[][..], &["agent", "format=json"]] {
            let read = harness
                .result_of(way, tags, "resources/read", under("names", map()))
                .await;
            let content = &read["contents"][0];
            assert_eq!(content["text"], "2 stations", "{way:?} {tags:?}");
            content.has("/mimeType", "text/plain");
            let served = harness
                .result_of(way, tags, "resources/read", under("standard", map()))
                .await;
            served.has("/contents/0/mimeType", "application/json");
            if way.is_modern() {
                for result in [read, served] {
                    result.has("/ttlMs", 0);
                    result.has("/cacheScope", "private");
                }
            }
        }
    }
}

/// SV-11: a prompt has other texts in a variant; the rule with the more specific condition decides.
#[tokio::test]
async fn a_prompt_has_the_texts_of_its_variant() {
    let harness = Harness::configured(server(), RULES).await;
    for way in ClientKind::ALL {
        let plan = || json!({"name": "plan"});
        for (variant, tags, expected) in [
            ("standard", &[][..], "Plan it."),
            ("standard", &["agent"], "Plan it."),
            ("names", &[], "Plan it. Briefly."),
            ("names", &["human"], "Plan it. Briefly."),
            ("names", &["agent"], "1. Plan."),
        ] {
            let prompt = harness
                .result_of(way, tags, "prompts/get", under(variant, plan()))
                .await;
            let text = &prompt["messages"][0]["content"]["text"];
            assert_eq!(*text, expected, "{way:?} {variant} {tags:?}");
        }
    }
}
