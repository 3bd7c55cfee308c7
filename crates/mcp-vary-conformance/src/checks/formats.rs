//! Content negotiation: what `format` does to results, resources and prompts.

use serde_json::{Value, json};

use crate::called_tool::{has_json_text, is_structured, texts};
use crate::check::{Check, Level, Test};
use crate::client::Client;
use crate::era::BOTH;
use crate::extension::NEGOTIATION;
use crate::json::{array_at, brief, text_at};
use crate::list_kind::{PROMPTS, RESOURCES};
use crate::objection::{Objection, Verdict, ensure, not_applicable};
use crate::probe::Probe;
use crate::scope::Scope;
use crate::source;

use super::features::{call, with_features};

#[rustfmt::skip]
pub(crate) const CHECKS: &[Check] = &[
    Check { id: "CN-9/agent-json-is-structured", level: Level::Must, source: source::TAGS_AND_TESTING,
        sentence: "Include this tag → MUST honor the associated behavior … Client features: [\"agent\", \"format=json\"] … Expected: structuredContent with JSON object, empty content[]",
        does: "Calls a tool that has a structure with these tags: `structuredContent` is an object.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(agent_json_is_structured(probe))) },
    Check { id: "CN-9/agent-json-without-text", level: Level::Must, source: source::TAGS_AND_TESTING,
        sentence: "Include this tag → MUST honor the associated behavior … Client features: [\"agent\", \"format=json\"] … Expected: structuredContent with JSON object, empty content[]",
        does: "Calls a tool that has a structure with these tags: `content` has no text. A tool with a user interface is not checked: its texts belong to it.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(agent_json_without_text(probe))) },
    Check { id: "CN-9/bare-structure", level: Level::Decision, source: source::DECISION,
        sentence: "The structure is the bare value, not wrapped as `{\"type\": \"object\", \"properties\": …}` as in the examples.",
        does: "Calls a tool with `agent` and `format=json`: `structuredContent` is not that wrapper.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(bare_structure(probe))) },
    Check { id: "CN-10/human-markdown-is-text", level: Level::Must, source: source::TAGS_AND_TESTING,
        sentence: "Include this tag → MUST honor the associated behavior … Client features: [\"human\", \"format=markdown\"] … Expected: content[] with markdown text, structuredContent empty",
        does: "Calls a tool that has a structure with these tags: `content` has a text, and none that is JSON.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(is_text_for(probe, json!(["human", "format=markdown"])))) },
    Check { id: "CN-10/human-markdown-without-structure", level: Level::Must, source: source::TAGS_AND_TESTING,
        sentence: "Include this tag → MUST honor the associated behavior … Client features: [\"human\", \"format=markdown\"] … Expected: content[] with markdown text, structuredContent empty",
        does: "Calls a tool that has a structure and no output schema with these tags: `structuredContent` is absent or null.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(human_markdown_without_structure(probe))) },
    Check { id: "CN-10/no-null-structure", level: Level::Decision, source: source::DECISION,
        sentence: "`structuredContent` is left out where there is none; the core schema does not know `null` there.",
        does: "Calls a tool as an agent and as a human: `structuredContent` is never null.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(no_null_structure(probe))) },
    Check { id: "CN-6/explicit-format-wins", level: Level::Should, source: source::BEHAVIOR,
        sentence: "When a client declares both `format=json` and uses the `sampling` capability, servers SHOULD prioritize the explicit format request over capability-inferred format.",
        does: "Calls a tool that has a structure with `format=json`, `sampling` and the capability: `structuredContent` is there.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(explicit_format_wins(probe))) },
    Check { id: "CN-4/format-json-is-structured", level: Level::Must, source: source::TAGS,
        sentence: "Include this tag → MUST honor the associated behavior … `format=json` … Use `structuredContent` in tool responses … Use structuredContent, not prose content",
        does: "Calls a tool that has a structure with `format=json` alone: `structuredContent` is an object, and each text of `content` is JSON. Texts of a tool with a user interface are not looked at.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(format_json_is_structured(probe))) },
    Check { id: "CN-4/format-text-is-plain", level: Level::Must, source: source::TAGS,
        sentence: "Include this tag → MUST honor the associated behavior … `format=text` … Simple prose, no markup",
        does: "Calls a tool that has a structure with `format=text`: `content` has a text, and none that is JSON or has headings, bold words or links of markdown.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(format_text_is_plain(probe))) },
    Check { id: "CN-4/compact-is-not-longer", level: Level::Must, source: source::TAGS,
        sentence: "Include this tag → MUST honor the associated behavior … `verbosity=compact` … Minimize explanatory text; omit examples",
        does: "Calls a tool that has a structure with `verbosity=compact` and with `verbosity=verbose`, as a human who wants markdown and as an agent that wants JSON: the compact result is not longer.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(compact_is_not_longer(probe))) },
    Check { id: "CN-5/excluded-formats-leave-others", level: Level::Should, source: source::TAGS,
        sentence: "If tag is present and does NOT equal value, apply behavior",
        does: "Calls a tool that has a structure with `agent` and `format=json`, alone and with `format!=xml`: the results are the same.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(excluded_formats_leave_others(probe))) },
    Check { id: "CN-15/json-resources-are-json", level: Level::Decision, source: source::DECISION,
        sentence: "The `mimeType` of a resource is true of its text, whichever format it has.",
        does: "Reads a resource as an agent that wants JSON: text of type `application/json` is JSON.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(json_resources_are_json(probe))) },
    Check { id: "CN-15/prompt-content-is-one-block", level: Level::Decision, source: source::DECISION,
        sentence: "The content of a prompt message is one block, as in the core schema, not an array as in the examples.",
        does: "Gets a prompt as an agent: the content of each message is an object.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(prompt_content_is_one_block(probe))) },
];

/// The result with `features` of a tool whose results have data.
async fn structured(probe: &Probe<'_>, features: Value) -> Result<Value, Objection> {
    probe.survey().data_tool()?;
    with_features(probe, features).await
}

/// The result with `features`, which has a structure.
async fn is_structured_for(probe: &Probe<'_>, features: Value) -> Result<Value, Objection> {
    let body = structured(probe, features).await?;
    let is_structured = body.get("structuredContent").is_some_and(Value::is_object);
    ensure!(
        is_structured,
        "`structuredContent` is not an object: {}",
        brief(&body)
    );
    Ok(body)
}

async fn agent_json_is_structured(probe: &Probe<'_>) -> Verdict {
    let features = json!(["agent", "format=json"]);
    is_structured_for(probe, features).await.map(|_| ())
}

async fn is_text_for(probe: &Probe<'_>, features: Value) -> Verdict {
    let body = structured(probe, features).await?;
    is_text(&body)
}

/// Objects unless `content` has a text, and none that is JSON.
fn is_text(body: &Value) -> Verdict {
    let has_text = texts(body).next().is_some();
    ensure!(has_text, "`content` has no text: {}", brief(body));
    let has_json = has_json_text(body);
    ensure!(!has_json, "a text of `content` is JSON: {}", brief(body));
    Ok(())
}

async fn agent_json_without_text(probe: &Probe<'_>) -> Verdict {
    if probe.survey().data_tool()?.has_interface {
        return not_applicable("the tool has a user interface, to which its texts belong");
    }
    let body = structured(probe, json!(["agent", "format=json"])).await?;
    ensure!(
        texts(&body).next().is_none(),
        "`content` has text: {}",
        brief(&body)
    );
    Ok(())
}

async fn format_json_is_structured(probe: &Probe<'_>) -> Verdict {
    let has_interface = probe.survey().data_tool()?.has_interface;
    let body = is_structured_for(probe, json!(["format=json"])).await?;
    let is_json = |text| serde_json::from_str::<Value>(text).is_ok();
    ensure!(
        has_interface || texts(&body).all(is_json),
        "`content` has prose: {}",
        brief(&body)
    );
    Ok(())
}

async fn format_text_is_plain(probe: &Probe<'_>) -> Verdict {
    let body = structured(probe, json!(["format=text"])).await?;
    is_text(&body)?;
    ensure!(
        !texts(&body).any(has_markup),
        "a text of `content` has markup: {}",
        brief(&body)
    );
    Ok(())
}

/// Whether `text` has a heading, a bold word or a link of markdown.
fn has_markup(text: &str) -> bool {
    let is_heading = |line: &str| {
        let level = line.len() - line.trim_start_matches('#').len();
        (1..=6).contains(&level) && line[level..].starts_with(' ')
    };
    let is_bold = |line: &str| line.matches("**").count() >= 2;
    text.lines()
        .any(|line| is_heading(line) || is_bold(line) || line.contains("]("))
}

async fn compact_is_not_longer(probe: &Probe<'_>) -> Verdict {
    for (reader, format) in [("human", "format=markdown"), ("agent", "format=json")] {
        let compact = structured(probe, json!([reader, format, "verbosity=compact"])).await?;
        let verbose = structured(probe, json!([reader, format, "verbosity=verbose"])).await?;
        let [found, most] = [&compact, &verbose].map(|body| body.to_string().len());
        ensure!(
            found <= most,
            "the compact result for `{reader}` has {found} bytes, the verbose one {most}"
        );
    }
    Ok(())
}

async fn excluded_formats_leave_others(probe: &Probe<'_>) -> Verdict {
    let expected = structured(probe, json!(["agent", "format=json"])).await?;
    let excluding = structured(probe, json!(["agent", "format=json", "format!=xml"])).await?;
    ensure!(
        excluding == expected,
        "with `format!=xml`, the result is {}",
        brief(&excluding)
    );
    Ok(())
}

async fn bare_structure(probe: &Probe<'_>) -> Verdict {
    let body = structured(probe, json!(["agent", "format=json"])).await?;
    let structure = body.get("structuredContent").and_then(Value::as_object);
    let is_wrapper = structure.is_some_and(|members| {
        members.len() == 2
            && members.get("type") == Some(&"object".into())
            && members.get("properties").is_some_and(Value::is_object)
    });
    ensure!(!is_wrapper, "the structure is wrapped: {}", brief(&body));
    Ok(())
}

async fn human_markdown_without_structure(probe: &Probe<'_>) -> Verdict {
    if probe.survey().data_tool()?.output_schema.is_some() {
        return not_applicable(
            "the tool declares an output schema, so that its results must have a structure",
        );
    }
    let body = structured(probe, json!(["human", "format=markdown"])).await?;
    ensure!(
        !is_structured(&body),
        "`structuredContent` is there: {}",
        brief(&body)
    );
    Ok(())
}

async fn no_null_structure(probe: &Probe<'_>) -> Verdict {
    for features in [
        json!(["agent", "format=json"]),
        json!(["human", "format=markdown"]),
    ] {
        let client = probe.connect_with_features(features.clone()).await?;
        let result = call(&client, probe).await?;
        ensure!(
            result.get("structuredContent") != Some(&Value::Null),
            "with {features}, `structuredContent` is null"
        );
    }
    Ok(())
}

async fn explicit_format_wins(probe: &Probe<'_>) -> Verdict {
    probe.survey().data_tool()?;
    let settings = json!({"version": "1.0", "features": ["human", "sampling", "format=json"]});
    let mut capabilities = probe.survey().declaring(&json!({ NEGOTIATION: settings }));
    capabilities["sampling"] = json!({});
    let client = Client::connect(&probe.connections, capabilities).await?;
    let result = call(&client, probe).await?;
    ensure!(
        is_structured(&result),
        "the result has no `structuredContent`: {}",
        brief(&result)
    );
    Ok(())
}

async fn json_resources_are_json(probe: &Probe<'_>) -> Verdict {
    let params = probe.survey().item_params(&RESOURCES)?;
    let features = json!(["agent", "format=json"]);
    let client = probe.connect_with_features(features).await?;
    let result = client.result(RESOURCES.item_method, params).await?;
    for contents in array_at(&result, &["contents"]) {
        let is_json = text_at(contents, &["mimeType"]) == Some("application/json");
        let text = text_at(contents, &["text"]).filter(|_| is_json);
        let is_true = text.is_none_or(|text| serde_json::from_str::<Value>(text).is_ok());
        ensure!(
            is_true,
            "`application/json` that is not JSON: {}",
            brief(contents)
        );
    }
    Ok(())
}

async fn prompt_content_is_one_block(probe: &Probe<'_>) -> Verdict {
    let params = probe.survey().item_params(&PROMPTS)?;
    let features = json!(["agent", "mcp-capable", "sampling"]);
    let client = probe.connect_with_features(features).await?;
    let result = client.result(PROMPTS.item_method, params).await?;
    for message in array_at(&result, &["messages"]) {
        let is_block = message.get("content").is_some_and(Value::is_object);
        ensure!(is_block, "the content is not one block: {}", brief(message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_headings_bold_words_and_links() {
        for marked in ["# A", "a\n### B", "a **b** c", "[a](b)"] {
            assert!(has_markup(marked), "{marked}");
        }
        for plain in ["#1 of 3", "a ** b", "- a: 1", "[a] (b)", "####### a", ""] {
            assert!(!has_markup(plain), "{plain}");
        }
    }
}
