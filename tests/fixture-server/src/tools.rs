//! The catalogue of tools, and which module answers which.

use std::sync::LazyLock;

use rmcp::model::{CallToolRequestParams, CallToolResponse, JsonObject, Tool};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use crate::ask;
use crate::fixture::Fixture;
use crate::state::Shared;
use crate::tasks;

mod asking;
mod content;
mod input_required;
mod observe;
mod odd;
mod reporting;

/// One call, as the modules that answer it get it.
pub(crate) struct Call<'a> {
    pub(crate) fixture: &'a Fixture,
    pub(crate) request: CallToolRequestParams,
    pub(crate) context: RequestContext<RoleServer>,
}

/// The tools as listed: those of the catalogue, then those that clients added.
pub(crate) fn all(shared: &Shared) -> Vec<Tool> {
    let added = shared.added();
    CATALOGUE
        .iter()
        .cloned()
        .chain(added.iter().map(|name| added_tool(name)))
        .collect()
}

/// The tool of that name, if it is listed.
pub(crate) fn find(name: &str, shared: &Shared) -> Option<Tool> {
    CATALOGUE
        .iter()
        .find(|tool| tool.name == name)
        .cloned()
        .or_else(|| shared.added().get(name).map(|name| added_tool(name)))
}

/// Calls a tool: the first family that knows its name answers.
///
/// # Errors
///
/// An unknown tool is an invalid parameter; otherwise what the tool itself fails with.
pub(crate) async fn call(
    fixture: &Fixture,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if find(&request.name, &fixture.shared).is_none() {
        return Err(ErrorData::invalid_params(
            format!("unknown tool: {}", request.name),
            None,
        ));
    }
    if tasks::knows(&request.name) {
        return tasks::call(&fixture.shared, request, &context).await;
    }
    let mut call = Call {
        fixture,
        request,
        context,
    };
    let mut answer = once(&call).await?;
    for _ in 0..ask::ROUNDS {
        let CallToolResponse::InputRequired(required) = &answer else {
            break;
        };
        if !ask::has_session(&call.context) {
            break;
        }
        let responses = ask::in_session(&call.context, required).await?;
        call.request.input_responses = Some(responses);
        call.request
            .request_state
            .clone_from(&required.request_state);
        answer = once(&call).await?;
    }
    Ok(answer)
}

/// One round of a call.
async fn once(call: &Call<'_>) -> Result<CallToolResponse, ErrorData> {
    if let Some(answer) = content::call(call).or_else(|| odd::call(call)) {
        return answer;
    }
    if let Some(answer) = input_required::call(call) {
        return answer;
    }
    if let Some(answer) = reporting::call(call).await {
        return answer;
    }
    if let Some(answer) = asking::call(call).await {
        return answer;
    }
    observe::call(call).await
}

impl Call<'_> {
    pub(crate) fn name(&self) -> &str {
        &self.request.name
    }

    pub(crate) fn arguments(&self) -> JsonObject {
        self.request.arguments.clone().unwrap_or_default()
    }

    pub(crate) fn argument(&self, name: &str) -> Option<&Value> {
        self.request.arguments.as_ref()?.get(name)
    }

    /// An argument that must be a string.
    pub(crate) fn text(&self, name: &str) -> Result<&str, ErrorData> {
        self.argument(name)
            .and_then(Value::as_str)
            .ok_or_else(|| wrong(name, "a string"))
    }

    /// An argument that must be a whole number, not below 0.
    pub(crate) fn number(&self, name: &str) -> Result<u64, ErrorData> {
        self.argument(name)
            .and_then(Value::as_u64)
            .ok_or_else(|| wrong(name, "a whole number"))
    }
}

pub(crate) fn wrong(name: &str, expected: &str) -> ErrorData {
    ErrorData::invalid_params(format!("`{name}` is missing or not {expected}"), None)
}

fn added_tool(name: &str) -> Tool {
    let schema = json!({ "type": "object", "properties": {} });
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new(
        name.to_owned(),
        "Added by add_tool; says its own name.",
        schema,
    )
}

static CATALOGUE: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("tools.json")).expect("the catalogue is a list of tools")
});
