//! The operator's rules for resources and prompts.

use mcp_vary_config::{read_prompts, read_resources};

use crate::support::*;

/// A server with a map, a status and a prompt.
fn server() -> Script {
    let point = r#"{"type": "Point", "coordinates": [7.6586, 45.9763]}"#;
    Script::legacy("trips")
        .lists(json!({"resources": [
            {"uri": "map://valley", "name": "valley"}, {"uri": "status://all", "name": "status"},
        ]}))
        .on("resources/read", move |params| {
            match params["uri"].as_str() {
                Some("map://valley") => json!({"contents": [
                    {"uri": "map://valley", "mimeType": "application/geo+json", "text": point},
                    {"uri": "map://valley/picture", "mimeType": "image/png", "blob": "AA=="},
                ]}),
                uri => json!({"contents": [
                    {"uri": uri, "mimeType": "application/json", "text": "{\"services\":[1,2]}"},
                ]}),
            }
        })
        .lists(json!({"prompts": [{"name": "plan"}, {"name": "other"}]}))
        .results(
            json!({"prompts/get": {"description": "Plans.", "messages": [
                {"role": "user", "content": {"type": "text", "text": "Plan it."}},
                {"role": "user", "content": {"type": "image", "data": "", "mimeType": "image/png"}},
            ]}}),
        )
}

const RESOURCES: &str = r#"
- {uris: ["map://*"], as: geo-markdown}
- {uris: ["map://*"], when: agent & mcp-capable, as: served}
- {uris: ["status://*"], template: "All {{ value.services | length }} of {{ uri }} run.", type: text/plain}
- {uris: ["status://*"], template: "{{ value.nothing.at.all }}", type: text/markdown}
"#;

const PROMPTS: &str = r#"
- prompts: [plan]
  when: agent & sampling
  text: "{{ text }} Of {{ arguments.goal }}: parse, list, call, compare."
- prompts: [plan]
  when: human & interactive
  text: Let us plan together.
  role: assistant
  description: Plans with you.
"#;

async fn harness() -> Harness {
    Harness::edited(server().start().await, |config| {
        config.resource_results = read_resources(RESOURCES).unwrap();
        config.prompt_results = read_prompts(PROMPTS).unwrap();
    })
    .await
}

/// CN-15: a resource in another format, its media type true, its blobs untouched.
#[tokio::test]
async fn a_resource_is_told_in_the_format_that_is_asked_for() {
    let harness = harness().await;
    let map = || json!({"uri": "map://valley"});
    for way in ClientKind::ALL {
        let read = harness
            .result_of(way, &["human", "format=markdown"], "resources/read", map())
            .await;
        let contents = &read["contents"];
        assert_eq!(contents[0]["mimeType"], "text/markdown", "{way:?}");
        contents[0].has("/text", "- **coordinates**: 45.9763°N, 7.6586°E");
        contents[1].has("/blob", "AA==");
        assert_eq!(read["_meta"]["vary/applied"]["format"], "markdown");
    }
    let way = ClientKind::HttpModern;
    // No rule is about text.
    let text = harness
        .result_of(way, &["format=text"], "resources/read", map())
        .await;
    text.has("/contents/0/mimeType", "text/plain");
    let tags = &["agent", "mcp-capable", "format=markdown"];
    let served = harness.result_of(way, tags, "resources/read", map()).await;
    served.has("/contents/0/mimeType", "application/geo+json");
    let nothing = harness.ask(way, "resources/read", map()).await;
    assert_eq!(nothing["result"]["contents"], served["contents"], "CN-7");
}

/// CN-15: in the operator's words; a template that fails leaves what the server said, and is counted.
#[tokio::test]
async fn a_resource_is_told_in_the_operators_words() {
    let harness = harness().await;
    let way = ClientKind::HttpModern;
    let status = || json!({"uri": "status://all"});
    let text = harness
        .result_of(way, &["format=text"], "resources/read", status())
        .await;
    text.has("/contents/0/text", "All 2 of status://all run.");
    text.has("/contents/0/mimeType", "text/plain");
    let failed = harness
        .result_of(way, &["format=markdown"], "resources/read", status())
        .await;
    failed.has("/contents/0/mimeType", "application/json");
    // Each of the two reads renders every template of the resource, since the client's format is chosen afterwards.
    assert_eq!(harness.gateway.failed_results(), 2);
}

const JSON_TEXT: &str = r#"{"id": 12345678901234567890, "open": true, "note": null, "tags": ["a|b", ""], "rate": 1.50}"#;

/// A server with JSON under several media types, and a resource that is not JSON.
fn json_server() -> Script {
    Script::legacy("trips")
        .lists(json!({"resources": [
            {"uri": "data:all", "name": "a"}, {"uri": "data:vendor", "name": "b"},
            {"uri": "data:broken", "name": "c"}, {"uri": "data:plain", "name": "d"},
        ]}))
        .on("resources/read", |params| {
            let uri = params["uri"].as_str().unwrap();
            let (media_type, text) = match uri {
                "data:vendor" => ("application/vnd.acme+json; charset=utf-8", JSON_TEXT),
                "data:broken" => ("application/json", "{not json"),
                "data:plain" => ("text/plain", JSON_TEXT),
                _ => ("application/json", JSON_TEXT),
            };
            json!({"contents": [{"uri": uri, "mimeType": media_type, "text": text, "x": 1}]})
        })
}

/// CN-15: without rules, JSON is rendered for people; whoever asks for JSON or declares nothing gets the server's bytes,
/// and what is not JSON stays.
#[tokio::test]
async fn json_is_rendered_for_people_without_a_rule() {
    let harness = Harness::of_server(json_server()).await;
    let read = async |way, tags: &[&str], uri: &str| {
        let read = harness
            .result_of(way, tags, "resources/read", json!({"uri": uri}))
            .await;
        read["contents"][0].clone()
    };
    for way in ClientKind::ALL {
        let markdown: [&[&str]; 3] = [
            &["human"],
            &["format=markdown"],
            &["human", "format=markdown"],
        ];
        for tags in markdown {
            for uri in ["data:all", "data:vendor"] {
                let content = read(way, tags, uri).await;
                assert_eq!(content["mimeType"], "text/markdown", "{way:?} {tags:?}");
                assert_eq!((&content["uri"], &content["x"]), (&json!(uri), &json!(1)));
                content.has("/text", "- **id**: 12345678901234567890\n- **open**: true\n- **note**: null\n- **tags**: a|b, \"\"\n- **rate**: 1.50");
            }
        }
        let content = read(way, &["format=text"], "data:all").await;
        content.has("/mimeType", "text/plain");
        let json: [&[&str]; 3] = [
            &["agent"],
            &["human", "format=json"],
            &["verbosity=verbose"],
        ];
        for tags in json {
            let content = read(way, tags, "data:all").await;
            assert_eq!(content["text"], JSON_TEXT, "{tags:?}");
        }
        for uri in ["data:broken", "data:plain"] {
            let content = read(way, &["human"], uri).await;
            assert_ne!(content["mimeType"], "text/markdown", "{uri}");
        }
    }
    let all = json!({"uri": "data:all"});
    let nothing = harness.ask_modern("resources/read", all).await;
    let text = &nothing["result"]["contents"][0]["text"];
    assert_eq!(text, JSON_TEXT, "CN-7");
}

/// CN-15: a rule for a resource is the only one about it, so that `served` leaves JSON as it is.
#[tokio::test]
async fn a_rule_leaves_json_as_served() {
    let harness = Harness::edited(server().start().await, |config| {
        let rules = "- {uris: [\"status://*\"], when: \"*\", as: served}";
        config.resource_results = read_resources(rules).unwrap();
    })
    .await;
    let way = ClientKind::HttpModern;
    let status = json!({"uri": "status://all"});
    let read = harness
        .result_of(way, &["human"], "resources/read", status)
        .await;
    read.has("/contents/0/mimeType", "application/json");
}

/// CN-15: a prompt in other words for an agent that samples and for a person who is there.
#[tokio::test]
async fn a_prompt_is_told_in_other_words_for_other_clients() {
    let harness = harness().await;
    let plan = || json!({"name": "plan", "arguments": {"goal": "Bern"}});
    for way in ClientKind::ALL {
        let agent = harness
            .result_of(way, &["agent", "sampling"], "prompts/get", plan())
            .await;
        let words = "Plan it. Of Bern: parse, list, call, compare.";
        assert_eq!(agent["messages"][0]["content"]["text"], words, "{way:?}");
        let found = &agent["messages"][1]["content"]["type"];
        assert_eq!(*found, "image", "what is not text stays");
        agent.has("/description", "Plans.");
    }
    let way = ClientKind::HttpModern;
    let tags = &["human", "interactive"];
    let person = harness.result_of(way, tags, "prompts/get", plan()).await;
    person.has("/messages/0/role", "assistant");
    person.has("/description", "Plans with you.");
    for (tags, name) in [(&["human"][..], "plan"), (&["agent", "sampling"], "other")] {
        let params = json!({"name": name, "arguments": {"goal": "Bern"}});
        let own = harness.result_of(way, tags, "prompts/get", params).await;
        let found = &own["messages"][0]["content"]["text"];
        assert_eq!(*found, "Plan it.", "{tags:?} {name}");
    }
}
