//! Answers that are written once and shaped for each client.

use mcp_vary::error::Era;
use mcp_vary::json::{JsonError, Members, to_value};
use mcp_vary::predicate::Predicate;
use mcp_vary::render::Contract;
use mcp_vary::shape::{
    Answer, Compaction, META_APPLIED, Policy, PromptAlternative, Report, Representations, Shaped,
    Whole, compact_tool_result, prompt_result, resource_result,
};
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, CallToolResult, GetPromptResult, ReadResourceResult, ResourceContents, ResultType,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::features::Features;

/// Starts the answer of a tool from `value`; add markdown, hints and alternatives to it.
///
/// # Errors
///
/// When `value` cannot be written as JSON. That is a fault of the server: the client gets a general
/// message, and the log has the reason.
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::server::answer;
/// use serde_json::json;
///
/// let terse = answer(&json!({"c": 8}))?;
/// let weather = answer(&json!({"celsius": 8, "sky": "cloudy"}))?
///     .with_markdown("**8 °C**, cloudy")
///     .with_hint("8 °C suggests a jacket")
///     .with_alternative("agent & verbosity=compact".parse()?, terse);
/// # let _ = weather;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn answer(value: &(impl Serialize + ?Sized)) -> Result<Answer, ErrorData> {
    Answer::new(value).map_err(|error| {
        tracing::error!(%error, "answer not serialized");
        ErrorData::internal_error("the answer cannot be written as JSON", None)
    })
}

impl Features {
    /// Shapes `answer` for this client.
    ///
    /// Behind [`VaryServer`](super::VaryServer), the structured value stays in the result if the
    /// tool lists an `outputSchema` or a user interface. This needs a handler that implements
    /// `get_tool`, as `#[tool_handler]` does.
    #[must_use]
    pub fn answer(&self, answer: &Answer) -> CallToolResult {
        let schema = self.schema();
        let result = answer.to_result(self, self.tool(), schema.as_ref(), &self.policy());
        match read_tool_result(&result) {
            Ok(mut result) => {
                result.result_type = Some(ResultType::COMPLETE);
                result.is_error = Some(false);
                self.log_negotiation(result.meta.as_ref().and_then(|meta| meta.get(META_APPLIED)));
                result
            }
            Err(error) => {
                tracing::error!(%error, "answer not readable as a tool result");
                CallToolResult::error(Vec::new())
            }
        }
    }

    /// Shapes a result that is already complete for this client: see [`compact_tool_result`].
    ///
    /// Under `verbosity=compact` the result counts what was left out. To tell the client where it
    /// can read the rest, use [`shape_with_resource`](Self::shape_with_resource).
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_rmcp::server::Features;
    /// use rmcp::model::CallToolResult;
    /// use serde_json::json;
    ///
    /// fn rows(features: &Features) -> CallToolResult {
    ///     features.shape(CallToolResult::structured(json!({"rows": [1, 2]})))
    /// }
    /// ```
    #[must_use]
    pub fn shape(&self, result: CallToolResult) -> CallToolResult {
        self.shape_with_uri(result, None)
    }

    /// Like [`shape`](Self::shape), for a result whose whole value can be read as the resource
    /// `uri`. With the query of a [`Part`](mcp_vary::render::Part) the client reads it in parts;
    /// the handler serves these with [`read`](mcp_vary::render::read).
    #[must_use]
    pub fn shape_with_resource(&self, result: CallToolResult, uri: &str) -> CallToolResult {
        self.shape_with_uri(result, Some(uri))
    }

    fn shape_with_uri(&self, result: CallToolResult, uri: Option<&str>) -> CallToolResult {
        let schema = self.schema();
        let policy = self.policy();
        let compaction = Compaction {
            contract: schema.as_ref().map_or(Contract::default(), Contract::of),
            whole: uri.map(|uri| Whole {
                uri,
                is_linked: policy.non_object_structured,
            }),
            ..Compaction::default()
        };
        reshape(result, read_tool_result, |text| {
            compact_tool_result(text, self, self.tool(), &policy, &compaction).shaped
        })
    }

    /// The tool's output schema, if it is needed. Copying it costs time, and only sampling hints
    /// and compact answers are checked against it.
    fn schema(&self) -> Option<Value> {
        let is_held = self.sampling() || self.shortens();
        let schema = is_held.then(|| self.output_schema()).flatten();
        schema.map(|schema| Value::Object((**schema).clone()))
    }

    /// Replaces each content of a `resources/read` result by the representation that this client
    /// asked for: see [`resource_result`].
    ///
    /// If any of its URIs has representations, a modern client must not cache the result (`ttlMs:
    /// 0`, `private`).
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::shape::{Rendering, Representation, Representations};
    /// use mcp_vary_rmcp::server::Features;
    /// use rmcp::model::{ReadResourceResult, ResourceContents};
    ///
    /// fn valley(features: &Features) -> ReadResourceResult {
    ///     let point = r#"{"type": "Point", "coordinates": [7.65, 45.97]}"#;
    ///     let served = ResourceContents::text(point, "map://valley").with_mime_type("application/json");
    ///     let readable = Representations::default()
    ///         .with(Representation::Rendered(Rendering::GeoMarkdown))
    ///         .unwrap_or_default();
    ///     features.resource(ReadResourceResult::new(vec![served]), |_uri| Some(&readable))
    /// }
    /// ```
    #[must_use]
    pub fn resource<'r>(
        &self,
        result: ReadResourceResult,
        representations: impl Fn(&str) -> Option<&'r Representations>,
    ) -> ReadResourceResult {
        let is_told = |content: &ResourceContents| {
            content_uri(content).is_none_or(|uri| representations(uri).is_some())
        };
        let depends = result.contents.iter().any(is_told);
        let mut result = reshape(result, read, |text| {
            resource_result(text, self, &representations, self.report())
        });
        if depends && self.era() == Era::Modern {
            // Caches do not know features. This also applies to clients that declare none.
            (result.ttl_ms, result.cache_scope) = (Some(0), Some(CacheScope::Private));
        }
        result
    }

    /// Returns `result`, or the alternative whose condition this client meets: see
    /// [`prompt_result`].
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::predicate::PredicateError;
    /// use mcp_vary::shape::{PromptAlternative, Role};
    /// use mcp_vary_rmcp::server::Features;
    /// use rmcp::model::GetPromptResult;
    ///
    /// fn plan(features: &Features, usual: GetPromptResult) -> Result<GetPromptResult, PredicateError> {
    ///     let steps = PromptAlternative::new(Role::User, "1. Parse\n2. Plan\n3. Call the tool");
    ///     Ok(features.prompt(usual, &[("agent & sampling".parse()?, steps)]))
    /// }
    /// ```
    #[must_use]
    pub fn prompt(
        &self,
        result: GetPromptResult,
        alternatives: &[(Predicate, PromptAlternative)],
    ) -> GetPromptResult {
        reshape(result, read, |text| {
            prompt_result(text, self, alternatives, self.report())
        })
    }

    /// "Negotiation is logged": the declared tags and what was applied.
    fn log_negotiation(&self, applied: Option<&Value>) {
        if self.is_negotiated() && tracing::enabled!(tracing::Level::DEBUG) {
            let tags: Vec<_> = self.tags().map(|tag| tag.as_str()).collect();
            let report = applied.unwrap_or(&Value::Null);
            tracing::debug!(tags = tags.join(","), applied = %report, "content negotiated");
        }
    }

    fn policy(&self) -> Policy<'_> {
        Policy {
            non_object_structured: self.era() == Era::Modern,
            text_only: self.is_text_only(),
            report: self.is_negotiated(),
            variant: self.variant(),
            ..Policy::default()
        }
    }

    fn report(&self) -> Option<Report<'_>> {
        let variant = self.variant();
        self.is_negotiated().then_some(Report {
            variant,
            whole: None,
        })
    }
}

/// The URI of a content; `None` for unknown kinds.
fn content_uri(content: &ResourceContents) -> Option<&str> {
    match content {
        ResourceContents::TextResourceContents { uri, .. }
        | ResourceContents::BlobResourceContents { uri, .. } => Some(uri),
        _ => None,
    }
}

/// Applies `shape` to `result`. Returns it unchanged if it cannot be written, or `read`.
fn reshape<T: Serialize>(
    result: T,
    read: impl FnOnce(&str) -> Result<T, JsonError>,
    shape: impl FnOnce(&str) -> Shaped,
) -> T {
    let Ok(written) = serde_json::to_string(&result) else {
        return result;
    };
    match shape(&written) {
        Shaped::Unchanged => result,
        Shaped::Changed { result: new, .. } => read(&new).unwrap_or(result),
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    Ok(serde_json::from_str(text)?)
}

/// Reads a result with the structured value as it is written. A type that has it as a [`Value`] gives some of its keys a
/// meaning of their own: see [`to_value`].
fn read_tool_result(text: &str) -> Result<CallToolResult, JsonError> {
    let mut members = Members::parse(text)?;
    let structured = members.get(STRUCTURED_CONTENT);
    let Some(structured) = structured.filter(|value| *value != "null") else {
        return read(text);
    };
    let structured = to_value(structured)?;
    members.set(STRUCTURED_CONTENT, "{}");
    let mut result: CallToolResult = read(&members.to_json())?;
    result.structured_content = Some(structured);
    Ok(result)
}

const STRUCTURED_CONTENT: &str = "structuredContent";

#[cfg(test)]
mod tests {
    use super::*;

    /// An object stays an object, whatever keys it has.
    #[test]
    fn a_structured_value_stays_as_it_is_written() {
        let object = r#"{"$serde_json::private::RawValue":"7"}"#;
        for structured in [object.to_owned(), format!(r#"{{"a":[{object}]}}"#)] {
            let text = format!(r#"{{"content":[],"structuredContent":{structured}}}"#);
            let result = read_tool_result(&text).unwrap();
            assert_eq!(result.structured_content.unwrap().to_string(), structured);
        }
        let text = r#"{"content":[{"type":"text","text":"a"}],"isError":true}"#;
        let result = read_tool_result(text).unwrap();
        let found = (result.structured_content, result.is_error);
        assert_eq!(found, (None, Some(true)));
        assert!(read_tool_result("{").is_err());
    }
}
