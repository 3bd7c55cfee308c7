//! `vary call`

use serde_json::Value;

use crate::program::{Server, run, with_weather};

const BERN: &str = r#"{"location":"Bern"}"#;

/// CN-9, CN-12: the same value as JSON and as prose.
#[test]
fn several_clients_are_shown_side_by_side() {
    let args = [
        "call",
        "get_weather",
        BERN,
        "--features",
        "agent,format=json",
        "--features",
        "format=text",
    ];
    insta::assert_snapshot!(with_weather(&args).data(0), @r#"
    agent, format=json                                 format=text
    content 0 tokens                                   content 48 tokens
    structuredContent 45 tokens
    ─────────────────────────────────────────────────  ─────────────────────────────────────────────────
    content: []                                        content:
                                                       location: Bern
    structuredContent:                                 temperature_c: 8
    {                                                  humidity_percent: 72
      "location": "Bern",                              precipitation_probability: 0.3
      "temperature_c": 8,                              wind_speed_kmh: 15
      "humidity_percent": 72,                          uv_index: 2
      "precipitation_probability": 0.3,                forecast_summary: Warming trend expected Thursday
      "wind_speed_kmh": 15,
      "uv_index": 2,
      "forecast_summary": "Warming trend expected
        Thursday"
    }
    "#);
}

/// CN-7, CN-9, CN-10
#[test]
fn json_is_what_came_a_line_per_client() {
    let args = [
        "call",
        "get_weather",
        BERN,
        "--json",
        "--features",
        "agent,format=json",
        "--features",
        "human,format=markdown",
    ];
    let data = with_weather(&args).data(0);
    let [agent, person] = data.lines().collect::<Vec<_>>()[..] else {
        panic!("not two lines: {data}");
    };
    let agent: Value = serde_json::from_str(agent).unwrap();
    assert_eq!(agent["content"], serde_json::json!([]));
    assert_eq!(agent["structuredContent"]["temperature_c"], 8);
    let person: Value = serde_json::from_str(person).unwrap();
    assert!(
        person["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("**location**: Bern")
    );
    assert_eq!(person.get("structuredContent"), None);
}

#[test]
fn a_url_may_stand_where_arguments_may() {
    let server = Server::start(&[
        "serve",
        "--listen",
        "0",
        "--",
        crate::program::VARY,
        "weather",
    ]);
    let with = run(&[
        "call",
        "get_weather",
        BERN,
        "--features",
        "human",
        &server.url(),
    ])
    .data(0);
    assert!(with.contains("- **location**: Bern"), "{with}");
    let without = run(&["call", "get_weather", &server.url()]).data(1);
    assert!(without.contains("`location` is missing"), "{without}");
}

#[test]
fn a_tool_that_fails_is_shown_and_fails() {
    let shown = with_weather(&["call", "get_weather", r#"{"location":"Atlantis"}"#]).data(1);
    assert!(
        shown.contains("isError: true") && shown.contains("known cities are Bern"),
        "{shown}"
    );
}

#[test]
fn an_unknown_tool_is_shown_and_fails() {
    let shown = with_weather(&["call", "get_tides"]).data(1);
    assert!(
        shown.contains("error: ") && shown.contains("get_tides") && shown.contains("(-32602)"),
        "{shown}"
    );
    let json: Value =
        serde_json::from_str(&with_weather(&["call", "get_tides", "--json"]).data(1)).unwrap();
    assert_eq!(json["error"]["code"], -32602);
}

/// SV-9
#[test]
fn an_unknown_variant_is_shown_and_fails() {
    let shown = with_weather(&["call", "get_weather", BERN, "--variant", "tiny"]).data(1);
    assert!(shown.contains("Invalid server variant"), "{shown}");
}

/// CN-1: what has no effect is said, and the server ignores it.
#[test]
fn features_without_effect_are_said() {
    let run = with_weather(&["call", "get_weather", BERN, "--features", "format==json"]);
    assert_eq!(run.code, Some(0));
    assert!(
        run.stderr
            .contains("warning: of --features, this has no effect: `format==json`"),
        "{}",
        run.stderr
    );
    assert!(run.stdout.contains("structuredContent:"), "{}", run.stdout);
}
