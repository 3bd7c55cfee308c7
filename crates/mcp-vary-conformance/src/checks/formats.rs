//! Content negotiation: what `format` does to results, resources and prompts.

use serde_json::{Value, json};

use crate::check::{BOTH, Check, Level, Objection, Scope, Test, Verdict, not_applicable, require};
use crate::client::{Client, NEGOTIATION};
use crate::json::{array_at, brief, text_at};
use crate::probe::Probe;
use crate::source;

use super::features::{call, with_features};

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "CN-9/agent-json-is-structured",
        level: Level::Should,
        source: source::TESTING,
        sentence: "Client features: [\"agent\", \"format=json\"] … Expected: structuredContent with JSON object, empty content[]",
        does: "Calls a tool that has a structure with these tags: `structuredContent` is an object.",
        scope: Scope::Negotiation,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(agent_json_is_structured(probe))),
    },
    Check {
        id: "CN-9/agent-json-without-text",
        level: Level::Should,
        source: source::TESTING,
        sentence: "Client features: [\"agent\", \"format=json\"] … Expected: structuredContent with JSON object, empty content[]",
        does: "Calls a tool that has a structure with these tags: `content` has no text.",
        scope: Scope::Negotiation,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(agent_json_without_text(probe))),
    },
    Check {
        id: "CN-9/bare-structure",
        level: Level::Decision,
        source: source::DECISION,
        sentence: "The structure is the bare value, not wrapped as `{\"type\": \"object\", \"properties\": …}` as in the examples.",
        does: "Calls a tool with `agent` and `format=json`: `structuredContent` is not that wrapper.",
        scope: Scope::Negotiation,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(bare_structure(probe))),
    },
    Check {
        id: "CN-10/human-markdown-is-text",
        level: Level::Should,
        source: source::TESTING,
        sentence: "Client features: [\"human\", \"format=markdown\"] … Expected: content[] with markdown text, structuredContent empty",
        does: "Calls a tool that has a structure with these tags: `content` has a text.",
        scope: Scope::Negotiation,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(human_markdown_is_text(probe))),
    },
    Check {
        id: "CN-10/human-markdown-without-structure",
        level: Level::Should,
        source: source::TESTING,
        sentence: "Client features: [\"human\", \"format=markdown\"] … Expected: content[] with markdown text, structuredContent empty",
        does: "Calls a tool that has a structure and no output schema with these tags: `structuredContent` is absent or null.",
        scope: Scope::Negotiation,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(human_markdown_without_structure(probe))),
    },
    Check {
        id: "CN-10/no-null-structure",
        level: Level::Decision,
        source: source::DECISION,
        sentence: "`structuredContent` is left out where there is none; the core schema does not know `null` there.",
        does: "Calls a tool as an agent and as a human: `structuredContent` is never null.",
        scope: Scope::Negotiation,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(no_null_structure(probe))),
    },
    Check {
        id: "CN-6/explicit-format-wins",
        level: Level::Should,
        source: source::BEHAVIOR,
        sentence: "When a client declares both `format=json` and uses the `sampling` capability, servers SHOULD prioritize the explicit format request over capability-inferred format.",
        does: "Calls a tool that has a structure with `format=json`, `sampling` and the capability: `structuredContent` is there.",
        scope: Scope::Negotiation,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(explicit_format_wins(probe))),
    },
    Check {
        id: "CN-15/json-resources-are-json",
        level: Level::Decision,
        source: source::DECISION,
        sentence: "The `mimeType` of a resource is true of its text, whichever format it has.",
        does: "Reads a resource as an agent that wants JSON: text of type `application/json` is JSON.",
        scope: Scope::Negotiation,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(json_resources_are_json(probe))),
    },
    Check {
        id: "CN-15/prompt-content-is-one-block",
        level: Level::Decision,
        source: source::DECISION,
        sentence: "The content of a prompt message is one block, as in the core schema, not an array as in the examples.",
        does: "Gets a prompt as an agent: the content of each message is an object.",
        scope: Scope::Negotiation,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(prompt_content_is_one_block(probe))),
    },
];

/// The result with `features` of a tool that has a structure by itself.
async fn structured(probe: &Probe<'_>, features: Value) -> Result<Value, Objection> {
    probe.survey().structured_tool()?;
    with_features(probe, features).await
}

fn has_text(body: &Value) -> bool {
    let mut blocks = array_at(body, &["content"]).iter();
    blocks.any(|block| text_at(block, &["type"]) == Some("text"))
}

async fn agent_json_is_structured(probe: &Probe<'_>) -> Verdict {
    let body = structured(probe, json!(["agent", "format=json"])).await?;
    let is_structured = body.get("structuredContent").is_some_and(Value::is_object);
    require(is_structured, || {
        format!("`structuredContent` is not an object: {}", brief(&body))
    })
}

async fn agent_json_without_text(probe: &Probe<'_>) -> Verdict {
    let body = structured(probe, json!(["agent", "format=json"])).await?;
    require(!has_text(&body), || {
        format!("`content` has text: {}", brief(&body))
    })
}

async fn bare_structure(probe: &Probe<'_>) -> Verdict {
    let body = structured(probe, json!(["agent", "format=json"])).await?;
    let structure = body.get("structuredContent").and_then(Value::as_object);
    let is_wrapper = structure.is_some_and(|members| {
        members.len() == 2
            && members.get("type") == Some(&"object".into())
            && members.get("properties").is_some_and(Value::is_object)
    });
    require(!is_wrapper, || {
        format!("the structure is wrapped: {}", brief(&body))
    })
}

async fn human_markdown_is_text(probe: &Probe<'_>) -> Verdict {
    let body = structured(probe, json!(["human", "format=markdown"])).await?;
    require(has_text(&body), || {
        format!("`content` has no text: {}", brief(&body))
    })
}

async fn human_markdown_without_structure(probe: &Probe<'_>) -> Verdict {
    if probe.survey().structured_tool()?.output_schema.is_some() {
        return not_applicable(
            "the tool declares an output schema, so that its results must have a structure",
        );
    }
    let body = structured(probe, json!(["human", "format=markdown"])).await?;
    let has_structure = body
        .get("structuredContent")
        .is_some_and(|value| !value.is_null());
    require(!has_structure, || {
        format!("`structuredContent` is there: {}", brief(&body))
    })
}

async fn no_null_structure(probe: &Probe<'_>) -> Verdict {
    for features in [
        json!(["agent", "format=json"]),
        json!(["human", "format=markdown"]),
    ] {
        let client = probe.connect_with_features(features.clone()).await?;
        let result = call(&client, probe).await?;
        require(
            result.get("structuredContent") != Some(&Value::Null),
            || format!("with {features}, `structuredContent` is null"),
        )?;
    }
    Ok(())
}

async fn explicit_format_wins(probe: &Probe<'_>) -> Verdict {
    probe.survey().structured_tool()?;
    let settings = json!({"version": "1.0", "features": ["human", "sampling", "format=json"]});
    let capabilities = json!({"sampling": {}, "extensions": {NEGOTIATION: settings}});
    let client = Client::connect(probe, capabilities).await?;
    let result = call(&client, probe).await?;
    let has_structure = result
        .get("structuredContent")
        .is_some_and(|value| !value.is_null());
    require(has_structure, || {
        format!("there is no structure: {}", brief(&result))
    })
}

async fn json_resources_are_json(probe: &Probe<'_>) -> Verdict {
    let uri = probe.survey().resource()?;
    let client = probe
        .connect_with_features(json!(["agent", "format=json"]))
        .await?;
    let result = client
        .result("resources/read", json!({ "uri": uri }))
        .await?;
    for contents in array_at(&result, &["contents"]) {
        let is_json = text_at(contents, &["mimeType"]) == Some("application/json");
        let text = text_at(contents, &["text"]).filter(|_| is_json);
        let is_true = text.is_none_or(|text| serde_json::from_str::<Value>(text).is_ok());
        require(is_true, || {
            format!("`application/json` that is not JSON: {}", brief(contents))
        })?;
    }
    Ok(())
}

async fn prompt_content_is_one_block(probe: &Probe<'_>) -> Verdict {
    let name = probe.survey().prompt()?;
    let client = probe
        .connect_with_features(json!(["agent", "mcp-capable", "sampling"]))
        .await?;
    let result = client
        .result("prompts/get", json!({ "name": name }))
        .await?;
    for message in array_at(&result, &["messages"]) {
        let is_block = message.get("content").is_some_and(Value::is_object);
        require(is_block, || {
            format!("the content is not one block: {}", brief(message))
        })?;
    }
    Ok(())
}
