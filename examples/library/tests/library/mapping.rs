//! Places and a prompt, for programs and for people.

use library_examples::mapping as example;
use mcp_vary_rmcp::client::Client;
use rmcp::model::GetPromptRequestParams;
use serde_json::{Value, json};

use crate::support::{in_each_way, plain, tagged};

const VALLEY: &str = "map://features/alpine-valley-1";
const HUT: &str = "map://features/mountain-hut-1";

async fn place(client: &Client, uri: &str) -> Value {
    let read = client.default_variant().read_resource(uri).await.unwrap();
    serde_json::to_value(&read.contents[0]).unwrap()
}

/// Asserts the beginning of the prompt for a client with `tags`.
async fn prompted(tags: &[&str], beginning: &str) {
    let server = example::server().unwrap();
    in_each_way(
        server,
        || tagged(tags),
        async |client, kind| {
            let params = GetPromptRequestParams::new("check-weather");
            let prompt = client.default_variant().get_prompt(params).await.unwrap();
            let message = serde_json::to_value(&prompt.messages[0]).unwrap();
            let text = message["content"]["text"].as_str().unwrap();
            assert!(text.starts_with(beginning), "{kind}: {text}");
        },
    )
    .await;
}

/// CN-15: alternatives by format, each with its true `mimeType`.
#[tokio::test]
async fn a_person_reads_a_page_where_a_program_reads_geo_json() {
    let server = example::server().unwrap();
    let person = || tagged(&["human", "format=markdown"]);
    in_each_way(server.clone(), person, async |client, way| {
        let valley = place(client, VALLEY).await;
        assert_eq!(valley["mimeType"], "text/markdown", "{way}");
        let text = valley["text"].as_str().unwrap();
        assert!(
            text.starts_with("# Alpine Valley - Scenic"),
            "{way}: {text}"
        );
        // Without a page of the author's, the data is rendered.
        let hut = json!(
            "## Mountain Hut\n\n- **coordinates**: 45.9711°N, 7.6603°E\n- **elevation_m**: 2880"
        );
        assert_eq!(place(client, HUT).await["text"], hut, "{way}");
    })
    .await;
    let program = || tagged(&["agent", "mcp-capable"]);
    in_each_way(server, program, async |client, way| {
        let valley = place(client, VALLEY).await;
        assert_eq!(valley["mimeType"], "application/json", "{way}");
        let feature: Value = serde_json::from_str(valley["text"].as_str().unwrap()).unwrap();
        assert_eq!(feature["type"], "Feature", "{way}");
    })
    .await;
}

/// CN-7: clients that negotiate nothing read what the handler serves.
#[tokio::test]
async fn a_client_that_negotiates_nothing_reads_the_data() {
    let server = example::server().unwrap();
    in_each_way(server, plain, async |client, way| {
        let expected = "application/json";
        assert_eq!(place(client, HUT).await["mimeType"], expected, "{way}");
    })
    .await;
}

/// CN-15, CN-20: alternatives of a prompt by predicate.
#[tokio::test]
async fn the_prompt_speaks_to_who_asks() {
    prompted(
        &["agent", "mcp-capable", "sampling"],
        "For the following tool call",
    )
    .await;
    prompted(
        &["human", "interactive", "!sampling"],
        "## Check the Weather",
    )
    .await;
    // The client did not declare sampling, so it is unknown.
    prompted(&["human", "interactive"], "What is the weather like?").await;
}
