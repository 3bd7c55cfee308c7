//! The tool that reads the omitted parts of results, for models that cannot read resources.

use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary::json::to_map;
use mcp_vary::render::Part;
use mcp_vary_catalog::index::ViewIndex;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::view::View;
use mcp_vary_results::result_store::{ReadError, ResultReader, ResultStore};
use mcp_vary_wire::response::RpcError;

use crate::pipeline::methods::Dispatch;
use crate::pipeline::methods::RequestContext;
use crate::pipeline::methods::gateway_tools::{error_result, text_result, with_name};

/// The name of the tool, unless a server has a tool of that name.
const TOOL_NAME: &str = "read_result";

/// The tool without its name.
const TOOL_DEFINITION: &str = r#"{"title":"Read the rest of a result","description":"Reads what was left out of the result of another tool. Results that were cut short say so, and name URIs like vary://result/...","inputSchema":{"type":"object","properties":{"uri":{"type":"string","description":"The URI that the result names, or the id in it"},"pointer":{"type":"string","description":"JSON pointer to the part to read, such as /rows/0; the whole without it"},"offset":{"type":"integer","minimum":0,"description":"How many elements, members or bytes to pass over"},"limit":{"type":"integer","minimum":1,"description":"How many to read at most"}},"required":["uri"],"additionalProperties":false},"annotations":{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}}"#;

impl RequestContext<'_> {
    /// The name of the tool in this variant, if the operator has enabled it. A server's tool of the same name keeps its
    /// name.
    pub(crate) fn reader_tool_name(&self, view: ViewIndex) -> Option<Arc<str>> {
        let view = self.catalog.view(ListKind::Tools, view);
        let is_on = self.snapshot.config.read_result;
        is_on.then(|| {
            view.map_or_else(
                || TOOL_NAME.into(),
                |view| view.gateway_tool_name(TOOL_NAME),
            )
        })
    }

    /// The tool as `view` lists it, if the operator has enabled it.
    pub(crate) fn reader_tool(&self, view: &View) -> Option<String> {
        let is_on = self.snapshot.config.read_result;
        is_on.then(|| with_name(&view.gateway_tool_name(TOOL_NAME), TOOL_DEFINITION))
    }

    /// The answer of the tool, if `name` calls it.
    pub(crate) async fn read_remainder(
        &self,
        view: ViewIndex,
        name: &str,
    ) -> Result<Option<Dispatch>, RpcError> {
        if self.reader_tool_name(view).as_deref() != Some(name) {
            return Ok(None);
        }
        let arguments = self.request.params.members.get("arguments").unwrap_or("{}");
        let outcome = match uri(arguments) {
            Ok(uri) => self.read_remainder_at(view, &uri).await,
            Err(why) => Err(why),
        };
        Ok(Some(match outcome {
            Ok(texts) => self.answer(&text_result(&texts)),
            Err(why) => self.answer(&error_result(&why)),
        }))
    }

    /// The part at `uri` with a note about the next one, or an error for the model.
    async fn read_remainder_at(&self, view: ViewIndex, uri: &str) -> Result<Vec<String>, String> {
        let unknown = || {
            "there is no such result, or its time is over; call the tool that made it again"
                .to_owned()
        };
        self.may_read_stored(view, uri)
            .await
            .map_err(|_| unknown())?;
        match self
            .snapshot
            .services
            .result_store
            .read(uri, self.result_reader())
        {
            Ok(rest) => {
                let next = rest.next_page.map(|(_, text)| text);
                Ok(std::iter::once(rest.text).chain(next).collect())
            }
            Err(ReadError::NotFound) => Err(unknown()),
            Err(ReadError::Part(error)) => Err(error.to_string()),
        }
    }

    pub(super) fn result_reader(&self) -> ResultReader {
        ResultReader {
            client: self.client.id,
            principal: self.client.principal_id(),
        }
    }

    /// Refuses parts of other clients, and parts of tools that the client may not call in this variant.
    pub(crate) async fn may_read_stored(&self, view: ViewIndex, uri: &str) -> Result<(), RpcError> {
        let not_found = || self.not_found(view, Identifier::Resource(uri.to_owned()));
        let tool = self
            .snapshot
            .services
            .result_store
            .tool(uri, self.result_reader());
        let tool = tool.ok_or_else(not_found)?;
        let shows = |catalog: &mcp_vary_catalog::catalog::Catalog| {
            let view = catalog.view(ListKind::Tools, view)?;
            let mut item_refs = view.item_refs().map(|(_, place)| place);
            let is_it = |place: &mcp_vary_catalog::item::ItemRef| {
                place.upstream_name == tool.upstream_name
                    && *self.server_name(place.server) == *tool.server
            };
            item_refs.any(is_it).then_some(())
        };
        self.find_item((ListKind::Tools, uri), shows, not_found)
            .await
    }
}

/// The URI of the part that the arguments name, or their fault.
fn uri(arguments: &str) -> Result<String, String> {
    let arguments = to_map(arguments).map_err(|error| error.to_string())?;
    for key in arguments.keys() {
        if !["uri", "pointer", "offset", "limit"].contains(&key.as_str()) {
            return Err("an argument is none of `uri`, `pointer`, `offset` and `limit`".to_owned());
        }
    }
    let uri = arguments.get("uri").and_then(serde_json::Value::as_str);
    let uri = uri.ok_or("`uri` is missing; name the URI that the result names")?;
    let uri = ResultStore::uri_of(uri);
    let (id, query) = uri.split_once('?').unwrap_or((&uri, ""));
    let mut part = Part::parse(query).map_err(|error| error.to_string())?;
    let text = arguments
        .get("pointer")
        .filter(|pointer| !pointer.is_null());
    if let Some(pointer) = text {
        let pointer = pointer.as_str().ok_or("`pointer` is not a string")?;
        // The rest of the part in the URI belongs to the URI's own pointer.
        part = Part::at(pointer);
    }
    let count = |name: &str| match arguments.get(name).filter(|count| !count.is_null()) {
        None => Ok(None),
        Some(count) => {
            let count = count.as_u64().and_then(|count| usize::try_from(count).ok());
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
            assert_eq!(
                error,
                "`uri` is missing; name the URI that the result names"
            );
        }
    }
}
