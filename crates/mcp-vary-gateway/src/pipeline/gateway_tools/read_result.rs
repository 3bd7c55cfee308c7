//! The tool that reads the omitted parts of results, for models that cannot read resources.

use mcp_vary::json::{self, to_map};
use mcp_vary::render::Part;
use mcp_vary_results::result_store::{ReadError, ResultStore};

use super::tool_response::tool_response;
use crate::pipeline::request_context::{Dispatch, ViewScope};
use crate::pipeline::steps::stored_results;

/// The tool without its name.
const TOOL_DEFINITION: &str = r#"{"title":"Read the rest of a result","description":"Reads what was left out of the result of another tool. Results that were cut short say so, and name URIs like vary://result/...","inputSchema":{"type":"object","properties":{"uri":{"type":"string","description":"The URI that the result names, or the id in it"},"pointer":{"type":"string","description":"JSON pointer to the part to read, such as /rows/0; the whole without it"},"offset":{"type":"integer","minimum":0,"description":"How many elements, members or bytes to pass over"},"limit":{"type":"integer","minimum":1,"description":"How many to read at most"}},"required":["uri"],"additionalProperties":false},"annotations":{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}}"#;

/// The tool as a view lists it by this name.
pub(super) fn reader_tool(name: &str) -> String {
    let members = TOOL_DEFINITION.trim_start_matches('{');
    format!(r#"{{"name":{},{members}"#, json::string(name))
}

/// The answer of the tool.
pub(super) async fn read_result(scope: ViewScope<'_>) -> Dispatch {
    let arguments = scope.request.params.members.get("arguments");
    let outcome = match uri(arguments.unwrap_or("{}")) {
        Ok(uri) => read_part(scope, &uri).await,
        Err(why) => Err(why),
    };
    tool_response(scope, outcome)
}

/// The part at `uri` with a note about the next one, or an error for the model.
async fn read_part(scope: ViewScope<'_>, uri: &str) -> Result<Vec<String>, String> {
    let readable = stored_results::require_readable(scope, uri).await;
    readable.map_err(|_| NO_SUCH_RESULT.to_owned())?;
    let store = &scope.snapshot.services.result_store;
    match store.read(uri, stored_results::reader(&scope)) {
        Ok(page) => {
            let next = page.next_page.map(|(_, text)| text);
            Ok(std::iter::once(page.text).chain(next).collect())
        }
        Err(ReadError::NotFound) => Err(NO_SUCH_RESULT.to_owned()),
        Err(ReadError::Part(error)) => Err(error.to_string()),
    }
}

const NO_SUCH_RESULT: &str = "the result is unknown or has expired; call the tool again";

/// The URI of the part that the arguments name, or their fault.
fn uri(arguments: &str) -> Result<String, String> {
    let arguments = to_map(arguments).map_err(|error| error.to_string())?;
    for key in arguments.keys() {
        if !["uri", "pointer", "offset", "limit"].contains(&key.as_str()) {
            return Err("an argument is none of `uri`, `pointer`, `offset` and `limit`".to_owned());
        }
    }
    let written = arguments.get("uri").and_then(serde_json::Value::as_str);
    let uri = written.ok_or("`uri` is missing; name the URI that the result names")?;
    let uri = ResultStore::uri_of(uri);
    let (id, query) = uri.split_once('?').unwrap_or((&uri, ""));
    let mut part = Part::parse(query).map_err(|error| error.to_string())?;
    let text = arguments
        .get("pointer")
        .filter(|pointer| !pointer.is_null());
    if let Some(written) = text {
        let pointer = written.as_str().ok_or("`pointer` is not a string")?;
        // The rest of the part in the URI belongs to the URI's own pointer.
        part = Part::at(pointer);
    }
    let count = |name: &str| match arguments.get(name).filter(|count| !count.is_null()) {
        None => Ok(None),
        Some(number) => {
            let count = number.as_u64().and_then(|it| usize::try_from(it).ok());
            count
                .map(Some)
                .ok_or(format!("`{name}` is negative or not a whole number"))
        }
    };
    if let Some(offset) = count("offset")? {
        part = part.with_offset(offset);
    }
    if let Some(limit) = count("limit")? {
        if limit == 0 {
            return Err("`limit` is 0; ask for one at the least".to_owned());
        }
        part = part.with_limit(limit);
    }
    Ok(match part.to_query() {
        query if query.is_empty() => id.to_owned(),
        query => format!("{id}?{query}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_is_the_text_that_was_given() {
        let given = uri(r#"{"uri": "vary://result/a", "offset": 3}"#).unwrap();
        assert!(given.contains("offset=3"), "{given}");
        for object in [
            r#"{"uri": {"$serde_json::private::RawValue": "\"vary://result/a\""}}"#,
            r#"{"pointer": "/a"}"#,
        ] {
            let error = uri(object).unwrap_err();
            let expected = "`uri` is missing; name the URI that the result names";
            assert_eq!(error, expected);
        }
    }
}
