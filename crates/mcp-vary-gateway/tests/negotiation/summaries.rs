//! Results whose text differs from their structured content, for clients that negotiate.

use mcp_vary_config::read_results;
use mcp_vary_gateway::JsonContent;

use crate::support::*;

const BILLING: &str = include_str!("../../../../examples/configurations/servers/billing.json");

/// The 24 invoices of the example server, which its text counts and no more.
fn invoices() -> Value {
    let server: Value = serde_json::from_str(BILLING).unwrap();
    server["results"]["tools"]["list_invoices"].clone()
}

fn server() -> Script {
    Script::legacy("billing")
        .lists(json!({"tools": [
            {"name": "list_invoices", "inputSchema": {"type": "object"}},
            {"name": "typed", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}},
            {"name": "widget", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://w"}}},
        ]}))
        .on_call(|params| match params["name"].as_str() {
            Some("list_invoices") => invoices(),
            _ => json!({"content": [{"type": "text", "text": "Sunny."}], "structuredContent": {"c": 8}}),
        })
}

async fn called(harness: &Harness, kind: ClientKind, tags: &[&str], name: &str) -> Value {
    let answer = ask_as(harness, kind, &features(tags), "tools/call", tool(name)).await;
    answer["result"].clone()
}

/// CN-10: a summary is no reason to lose what it sums up.
#[tokio::test]
async fn who_asks_for_words_gets_every_row_that_a_summary_leaves_out() {
    let harness = Harness::of_server(server()).await;
    let served = invoices();
    let rows = served["structuredContent"]["invoices"].as_array().unwrap();
    for way in ClientKind::ALL {
        for tags in [&["human"][..], &["format=markdown"], &["format=text"]] {
            let result = called(&harness, way, tags, "list_invoices").await;
            let said = texts(&result);
            assert_eq!(said[0], "The 24 invoices of 2026.", "{way:?} {tags:?}");
            assert_eq!(result.get("structuredContent"), None, "{way:?} {tags:?}");
            for row in rows {
                for key in ["number", "customer", "reference"] {
                    let value = row[key].as_str().unwrap();
                    assert!(said[1].contains(value), "{way:?} {tags:?}: {value}");
                }
            }
        }
    }
}

/// CN-10, CN-13: in few words it says what is missing, and leads there.
#[tokio::test]
async fn in_few_words_the_rows_after_a_summary_lead_to_what_is_missing() {
    let harness = Harness::of_server(server()).await;
    for way in ClientKind::ALL {
        let tags = ["human", "verbosity=compact"];
        let result = called(&harness, way, &tags, "list_invoices").await;
        let said = texts(&result);
        assert_eq!(said[0], "The 24 invoices of 2026.", "{way:?}");
        for number in 1..=24 {
            let expected = format!("2026-{number:04}");
            assert!(said[1].contains(&expected), "{way:?}: {}", said[1]);
        }
        assert!(said[2].starts_with("empty: "), "{way:?}: {}", said[2]);
        let link = result["content"].as_array().unwrap().last().unwrap();
        assert_eq!(link["type"], "resource_link", "{way:?}");
    }
}

/// CN-9: JSON comes first, and what the author wrote stays after it.
#[tokio::test]
async fn json_comes_with_what_the_author_wrote() {
    let harness = Harness::of_server(server()).await;
    for way in ClientKind::ALL {
        let result = called(&harness, way, &["format=json"], "list_invoices").await;
        let said = texts(&result);
        let value: Value = serde_json::from_str(said[0]).unwrap();
        assert_eq!(value, invoices()["structuredContent"], "{way:?}");
        assert_eq!(said[1..], ["The 24 invoices of 2026."], "{way:?}");
        let strict = ["agent", "format=json"];
        let result = called(&harness, way, &strict, "list_invoices").await;
        assert_eq!(result["content"], json!([]), "{way:?}");
    }
}

/// What the content negotiation extension quotes of a server: the prose of "Motivation", the markdown of its example of
/// `tools/call`, and others that say more than the value.
const PROSE: [&str; 4] = [
    "Current temperature in Bern: 8°C. Humidity is 72%. There is a 30% chance\nof precipitation in the next 2 hours. The forecast shows gradually warming\ntrends over the coming week, with temperatures reaching 12°C by Thursday.\nUV index is 2 (low). Wind speed is 15 km/h from the northwest. This is\ntypical February weather for the region...",
    "## Current Weather in Bern\n\n**Temperature**: 8°C (feels like 5°C with wind chill)\n**Humidity**: 72% (comfortable)\n**Conditions**: Mostly cloudy, light precipitation possible (30% chance in next 2 hours)\n**Wind**: 15 km/h from NW\n**UV Index**: 2 (low)\n\n### Forecast\n\nWeather improving this week!\n- **Thursday**: 12°C, sunny and pleasant\n\nDress in layers!",
    "Do not use: sensor defect.",
    "Sunny.",
];

fn weather(text: &str) -> Value {
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    json!({
        "content": [{"type": "text", "text": text}, image],
        "structuredContent": {"location": "Bern", "temperature_c": 8, "humidity_percent": 72,
            "precipitation_probability": 0.3, "wind_speed_kmh": 15, "uv_index": 2},
    })
}

/// A server that answers with `text` beside the value of the extension's example.
async fn weather_server(text: &'static str, json_content: JsonContent) -> Harness {
    let script = server().result("tools/call", weather(text));
    Harness::edited(script.start().await, |config| {
        config.json_content = json_content
    })
    .await
}

/// CN-9, CN-13: test case 1, "structuredContent with JSON object, empty content[]", whatever the author wrote; all of it
/// can be read.
#[tokio::test]
async fn an_agent_that_asks_for_json_gets_no_text_and_reads_the_whole_elsewhere() {
    for text in PROSE {
        let harness = weather_server(text, JsonContent::Strict).await;
        for way in ClientKind::ALL {
            for tags in [
                &["agent", "format=json"][..],
                &["agent", "format=json", "verbosity=compact", "sampling"],
            ] {
                let result = called(&harness, way, tags, "list_invoices").await;
                let served = weather(text);
                assert_eq!(result["content"], json!([served["content"][1]]), "{way:?}");
                assert_eq!(result["structuredContent"], served["structuredContent"]);
                let applied = &result["_meta"]["vary/applied"];
                let whole = applied["whole"].as_str().unwrap();
                assert!(whole.starts_with("vary://result/"), "{applied}");
            }
        }
        let mut client =
            LegacyClient::open(&harness, "2025-11-25", &features(&["agent", "format=json"])).await;
        let call = client.answer("tools/call", tool("list_invoices")).await;
        let uri = &call["result"]["_meta"]["vary/applied"]["whole"];
        let read = client.answer("resources/read", json!({"uri": uri})).await;
        let whole = read["result"]["contents"][0]["text"].as_str().unwrap();
        let whole: Value = serde_json::from_str(whole).unwrap();
        assert_eq!(whole, weather(text), "{read}");
    }
}

/// CN-9: with `json-content: texts` what says more stays.
#[tokio::test]
async fn an_operator_may_keep_the_words_beside_json() {
    for text in PROSE {
        let harness = weather_server(text, JsonContent::Texts).await;
        for way in ClientKind::ALL {
            let result = called(&harness, way, &["agent", "format=json"], "list_invoices").await;
            assert_eq!(texts(&result), [text], "{way:?}");
            let applied = &result["_meta"]["vary/applied"];
            assert_eq!(applied.get("whole"), None, "{way:?}");
        }
    }
}

/// CN-9: without room for the whole, nothing is left out.
#[tokio::test]
async fn what_cannot_be_stored_stays() {
    let adapt = edited(|config| config.limits.result_store = 0);
    let harness = Harness::with_server(server(), adapt).await;
    for way in ClientKind::ALL {
        let result = called(&harness, way, &["agent", "format=json"], "typed").await;
        assert_eq!(texts(&result), ["Sunny."], "{way:?}");
    }
}

/// CN-12, CN-19: under `format=text` an author's text stays as it is, and the report says no more than was done.
#[tokio::test]
async fn markup_of_an_author_is_not_called_plain_text() {
    for text in PROSE {
        let harness = weather_server(text, JsonContent::Strict).await;
        for way in ClientKind::ALL {
            let result = called(&harness, way, &["format=text"], "list_invoices").await;
            let said = texts(&result);
            assert_eq!(said[0], text, "{way:?}");
            let is_rendered = said.len() > 1;
            let applied = &result["_meta"]["vary/applied"];
            let format = is_rendered.then_some(&json!("text")).cloned();
            assert_eq!(applied.get("format").cloned(), format, "{way:?}: {said:?}");
        }
    }
}

/// TR-5: "`content` is the model-oriented representation", also where an interface is filled with the rest.
#[tokio::test]
async fn an_agent_that_asks_for_json_keeps_the_words_of_a_tool_with_an_interface() {
    let harness = Harness::of_server(server()).await;
    for way in ClientKind::ALL {
        let result = called(&harness, way, &["agent", "format=json"], "widget").await;
        assert_eq!(texts(&result), ["Sunny."], "{way:?}");
        assert_eq!(result["structuredContent"], json!({"c": 8}), "{way:?}");
    }
}

/// CN-14: hints that a schema has no place for stand in a text, where an agent asked for JSON alone, too.
#[tokio::test]
async fn hints_are_not_lost_to_who_asks_for_json_alone() {
    let harness = Harness::edited(server().start().await, |config| {
        config.results = read_results("- {hints: [take a jacket]}").unwrap()
    })
    .await;
    for way in ClientKind::ALL {
        let tags = ["agent", "sampling", "format=json"];
        let result = called(&harness, way, &tags, "typed").await;
        assert_eq!(texts(&result), ["- take a jacket"], "{way:?}");
        assert_eq!(result["structuredContent"], json!({"c": 8}), "{way:?}");
        // A rule that has hints alone takes no row away.
        let result = called(&harness, way, &["human", "sampling"], "list_invoices").await;
        let said = texts(&result).join("\n");
        assert!(said.starts_with("The 24 invoices of 2026."), "{way:?}");
        assert!(said.contains("take a jacket"), "{way:?}");
        assert!(said.contains("2026-0024"), "{way:?}");
    }
}

/// CN-9, CN-10: revisions without `structuredContent` read text alone, so that nothing leaves it.
#[tokio::test]
async fn who_cannot_read_a_structure_gets_all_of_it_as_text() {
    let harness = Harness::of_server(server()).await;
    for (revision, has_structure) in [
        ("2024-11-05", false),
        ("2025-03-26", false),
        ("2025-06-18", true),
        ("2025-11-25", true),
    ] {
        let strict = features(&["agent", "format=json"]);
        let mut client = LegacyClient::open(&harness, revision, &strict).await;
        let answer = client.answer("tools/call", tool("list_invoices")).await;
        let said = texts(&answer["result"]);
        if has_structure {
            assert!(said.is_empty(), "{revision}: {said:?}")
        } else {
            assert!(
                said[0].starts_with(r#"{"year":2026,"#),
                "{revision}: {said:?}"
            )
        }
        let mut person = LegacyClient::open(&harness, revision, &features(&["human"])).await;
        let answer = person.answer("tools/call", tool("typed")).await;
        let said = texts(&answer["result"]);
        let expected: &[&str] = if has_structure {
            &["Sunny."]
        } else {
            &["Sunny.", "- **c**: 8"]
        };
        assert_eq!(said, expected, "{revision}");
    }
}
