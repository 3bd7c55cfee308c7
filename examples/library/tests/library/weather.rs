//! The weather server and client.

use library_examples::weather_client as client;
use library_examples::weather_negotiated as negotiated;
use serde_json::{Value, json};

use crate::support::{in_each_way, plain, result_of, tagged};

/// The result of a call for the weather in Bern by clients with `tags`.
async fn told(tags: &[&str], check: impl Fn(Value, &str)) {
    in_each_way(
        negotiated::server(),
        || tagged(tags),
        async |client, kind| {
            let bern = json!({"location": "Bern"});
            check(
                result_of(&client.default_variant(), "get_weather", bern).await,
                kind,
            );
        },
    )
    .await;
}

const PAGE: &str = "## Weather in Bern\n- **Temperature**: 8°C\n- **Humidity**: 72%\n\
    - **Precipitation**: 30% chance\n- **Wind**: 15 km/h";

/// CN-9: test case 1 of the extension.
#[tokio::test]
async fn an_agent_that_asks_for_json_gets_json_and_no_content() {
    told(&["agent", "format=json"], |result, way| {
        assert_eq!(result["content"], json!([]), "{way}");
        let weather = &result["structuredContent"];
        assert_eq!(weather["temperature_c"], 8, "{way}");
        assert_eq!(weather["source"], "WeatherAPI", "{way}");
    })
    .await;
}

/// CN-10: test case 2 of the extension.
#[tokio::test]
async fn a_person_who_asks_for_markdown_gets_a_page_and_no_structure() {
    told(&["human", "format=markdown"], |result, way| {
        assert_eq!(result["content"][0]["text"], PAGE, "{way}");
        assert_eq!(result.get("structuredContent"), None, "{way}");
    })
    .await;
}

/// CN-11: test cases 3 and 4 of the extension. Invalid tags declare nothing.
#[tokio::test]
async fn who_negotiates_nothing_that_can_be_read_gets_the_default() {
    told(&["@#$%", "format==json"], |result, way| {
        assert_eq!(result["content"][0]["text"], PAGE, "{way}");
    })
    .await;
    in_each_way(negotiated::server(), plain, async |client, way| {
        let bern = json!({"location": "Bern"});
        let result = result_of(&client.default_variant(), "get_weather", bern).await;
        assert_eq!(result["content"][0]["text"], PAGE, "{way}");
        assert_eq!(result.get("_meta"), None, "{way}");
    })
    .await;
}

/// CN-19, CN-22: verbosity selects the amount of text, and the result reports what was applied.
#[tokio::test]
async fn a_person_who_wants_more_reads_the_uv_index() {
    for (verbosity, has_more) in [("verbose", true), ("standard", false), ("compact", false)] {
        let tag = format!("verbosity={verbosity}");
        told(&["human", &tag], |result, way| {
            let page = result["content"][0]["text"].as_str().unwrap();
            let has_index = page.contains("**UV Index**: 2 (low)");
            assert_eq!(has_index, has_more, "{way} {tag}: {page}");
            let applied = &result["_meta"]["vary/applied"];
            assert_eq!(applied["verbosity"], verbosity, "{way}");
        })
        .await;
    }
}

#[tokio::test]
async fn the_client_reads_compact_json() {
    in_each_way(negotiated::server(), client::agent, async |client, way| {
        let said = client::weather(client, "Bern").await.unwrap();
        let compact = r#"{"location":"Bern","temperature_c":8,"humidity_percent":72,"precipitation_probability":0.3,"wind_speed_kmh":15,"uv_index":2}"#;
        assert_eq!(said, compact, "{way}");
    })
    .await;
}
