//! Content negotiation: what `format` does to results, resources and prompts.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::called_tool::{has_json_text, is_structured, texts};
use crate::prelude::*;

use super::features::{call, with_features};

pub(crate) const TEXTS: &str = include_str!("formats.json");

#[rustfmt::skip]
pub(crate) const TESTS: &[(&str, Test)] = &[
    ("CN-9/agent-json-is-structured", server!(agent_json_is_structured)),
    ("CN-9/agent-json-without-text", server!(agent_json_without_text)),
    ("CN-9/bare-structure", server!(bare_structure)),
    ("CN-10/human-markdown-is-text", server!(is_text_for, json!(["human", "format=markdown"]))),
    ("CN-10/human-markdown-without-structure", server!(human_markdown_without_structure)),
    ("CN-10/no-null-structure", server!(no_null_structure)),
    ("CN-6/explicit-format-wins", server!(explicit_format_wins)),
    ("CN-4/format-json-is-structured", server!(format_json_is_structured)),
    ("CN-4/format-text-is-plain", server!(format_text_is_plain)),
    ("CN-4/compact-is-not-longer", server!(compact_is_not_longer)),
    ("CN-5/excluded-formats-leave-others", server!(excluded_formats_leave_others)),
    ("CN-15/json-resources-are-json", server!(each_resource, is_json_where_declared)),
    ("CN-15/contents-have-the-uri", server!(each_resource, has_the_uri)),
    ("CN-15/prompt-content-is-one-block", server!(prompt_content_is_one_block)),
];

/// The result with `features` of a tool whose results have data.
async fn structured(probe: &Probe<'_>, features: Value) -> Result<Value, Objection> {
    probe.survey().data_tool()?;
    with_features(probe, features).await
}

/// The result of an agent that wants JSON, from a tool that gives some clients a structure.
async fn for_agents(probe: &Probe<'_>) -> Result<Value, Objection> {
    if probe.survey().data_tool()?.lacks_structures() {
        return not_applicable("the tool has JSON as a text alone, whatever the tags");
    }
    structured(probe, json!(["agent", "format=json"])).await
}

/// The result with `features` of a tool whose results have several forms.
async fn shaped(probe: &Probe<'_>, features: Value) -> Result<Value, Objection> {
    probe.survey().shaped_tool()?;
    with_features(probe, features).await
}

/// Objects unless a result has a structure.
fn has_structure(body: &Value) -> Verdict {
    let is_structured = body.get("structuredContent").is_some_and(Value::is_object);
    let finding = "`structuredContent` is not an object:";
    requires(is_structured, finding, body)
}

async fn agent_json_is_structured(probe: &Probe<'_>) -> Verdict {
    has_structure(&for_agents(probe).await?)
}

async fn is_text_for(probe: &Probe<'_>, features: Value) -> Verdict {
    is_text(&shaped(probe, features).await?)
}

/// Objects unless `content` has a text, and none that is JSON.
fn is_text(body: &Value) -> Verdict {
    let has_text = texts(body).next().is_some();
    requires(has_text, "`content` has no text:", body)?;
    let finding = "a text of `content` is JSON:";
    requires(!has_json_text(body), finding, body)
}

async fn agent_json_without_text(probe: &Probe<'_>) -> Verdict {
    if probe.survey().data_tool()?.has_interface {
        return not_applicable("the tool has a user interface, to which its texts belong");
    }
    let body = for_agents(probe).await?;
    requires(texts(&body).next().is_none(), "`content` has text:", &body)
}

async fn format_json_is_structured(probe: &Probe<'_>) -> Verdict {
    let has_interface = probe.survey().data_tool()?.has_interface;
    let body = structured(probe, json!(["format=json"])).await?;
    has_structure(&body)?;
    let is_json = |text| serde_json::from_str::<Value>(text).is_ok();
    let finding = "`content` has prose:";
    requires(has_interface || texts(&body).all(is_json), finding, &body)
}

async fn format_text_is_plain(probe: &Probe<'_>) -> Verdict {
    let body = shaped(probe, json!(["format=text"])).await?;
    is_text(&body)?;
    let finding = "a text of `content` has markup:";
    requires(!texts(&body).any(has_markup), finding, &body)
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
        let compact = shaped(probe, json!([reader, format, "verbosity=compact"])).await?;
        let verbose = shaped(probe, json!([reader, format, "verbosity=verbose"])).await?;
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
    let finding = "with `format!=xml`, the result is";
    requires(excluding == expected, finding, &excluding)
}

async fn bare_structure(probe: &Probe<'_>) -> Verdict {
    let body = structured(probe, json!(["agent", "format=json"])).await?;
    let structure = body.get("structuredContent").and_then(Value::as_object);
    let is_wrapper = structure.is_some_and(|members| {
        members.len() == 2
            && members.get("type") == Some(&"object".into())
            && members.get("properties").is_some_and(Value::is_object)
    });
    requires(!is_wrapper, "the structure is wrapped:", &body)
}

async fn human_markdown_without_structure(probe: &Probe<'_>) -> Verdict {
    if probe.survey().shaped_tool()?.output_schema.is_some() {
        return not_applicable(
            "the tool declares an output schema, so that its results must have a structure",
        );
    }
    let body = shaped(probe, json!(["human", "format=markdown"])).await?;
    let finding = "`structuredContent` is there:";
    requires(!is_structured(&body), finding, &body)
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
    let finding = "the result has no `structuredContent`:";
    requires(is_structured(&result), finding, &result)
}

/// A client that declares nothing, an agent, and a human.
async fn readers<'a>(probe: &'a Probe<'_>) -> Result<[Client<'a>; 3], Objection> {
    let agent = json!(["agent", "mcp-capable", "sampling", "format=json"]);
    let human = json!(["human", "interactive", "format=markdown"]);
    Ok([
        probe.connect(json!({})).await?,
        probe.connect_with_features(agent).await?,
        probe.connect_with_features(human).await?,
    ])
}

/// Objects unless what each reader reads of some resources suits the URI that was asked for.
async fn each_resource(probe: &Probe<'_>, suits: fn(&Value, &str) -> Verdict) -> Verdict {
    const READ: usize = 8;
    probe.survey().item_params(&RESOURCES)?;
    for client in readers(probe).await? {
        let listed = client.list(&RESOURCES, None).await?;
        let uris = listed.iter().filter_map(|item| text_at(item, &["uri"]));
        for uri in uris.take(READ) {
            let answer = client.ask(RESOURCES.item_method, json!({ "uri": uri }));
            if let Answer::Result(result) = answer.await? {
                suits(&result, uri)?;
            }
        }
    }
    Ok(())
}

fn is_json_where_declared(result: &Value, _uri: &str) -> Verdict {
    for contents in array_at(result, &["contents"]) {
        let is_json = text_at(contents, &["mimeType"]) == Some("application/json");
        let parses = |text: &str| serde_json::from_str::<Value>(text).is_ok();
        let is_true = !is_json || text_at(contents, &["text"]).is_none_or(parses);
        requires(is_true, "`application/json` that is not JSON:", contents)?;
    }
    Ok(())
}

/// Objects unless a part has the URI that was read. Those of a folder may begin with it.
fn has_the_uri(result: &Value, uri: &str) -> Verdict {
    let parts = array_at(result, &["contents"]);
    let normal = |uri: &str| uri.trim_end_matches('/').to_ascii_lowercase();
    let mut uris = parts.iter().filter_map(|part| text_at(part, &["uri"]));
    let has_it = parts.is_empty() || uris.any(|found| normal(found).starts_with(&normal(uri)));
    ensure!(has_it, "`resources/read` of {uri:?} has {}", brief(result));
    Ok(())
}

async fn prompt_content_is_one_block(probe: &Probe<'_>) -> Verdict {
    let params = probe.survey().item_params(&PROMPTS)?;
    for client in readers(probe).await? {
        let result = client.result(PROMPTS.item_method, params.clone()).await?;
        for message in array_at(&result, &["messages"]) {
            let is_block = message.get("content").is_some_and(Value::is_object);
            requires(is_block, "the content is not one block:", message)?;
        }
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
