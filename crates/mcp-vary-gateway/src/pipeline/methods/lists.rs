//! `tools/list` and the other lists: one page of the active variant's items.

use mcp_vary::cursor::{self, CursorBinding};
use mcp_vary::error::Error;
use mcp_vary::json::{self, edit};
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::view::View;
use mcp_vary_wire::response::{self, RpcError};

use crate::pipeline::gateway_tools::with_gateway_tools;
use crate::pipeline::request::method_not_found;
use crate::pipeline::request_context::{Dispatch, RequestContext, ViewScope};
use crate::pipeline::steps::view;

/// Answers with one page of the list.
pub(crate) async fn list(
    context: &mut RequestContext<'_>,
    kind: ListKind,
) -> Result<Dispatch, RpcError> {
    if let Err(failure) = context.require_list(kind).await {
        if !is_offered(context, kind) {
            return Err(failure);
        }
        let scope = view::enter(context).await?;
        let empty = json::object(&[(kind.items_key(), "[]")]);
        return Ok(scope.answer_uncached(&empty));
    }
    let scope = view::enter(context).await?;
    let view = scope.view;
    let position = list_position(scope, kind)?;
    context.catalog = context.class.catalog.fresh(kind).await;
    let scope = context.in_view(view);
    // The server of the list may have been replaced meanwhile.
    let known = scope.catalog.view(kind, view);
    let list = known.ok_or_else(|| method_not_found(scope.request.method))?;
    let page = list
        .page(scope.client.era(), position.as_deref())
        .map_err(|failure| failure.unwrap_or_else(|| invalid_cursor(scope)))?;
    let following = page.next().map(|next| list.cursor_at(next));
    let next = following.map(|position| seal_cursor(scope, kind, &position));
    let (start, end) = page.result(next.as_deref());
    if kind == ListKind::Tools {
        if position.is_none() {
            // What these tools would cost as the servers list them, for a client that begins to read, and what they cost.
            let lengths = list.lengths();
            let observation = &scope.client.observation;
            observation.costs(lengths.merged, lengths.shown);
        }
        let text = || format!("{}{end}", String::from_utf8_lossy(start));
        if let Some(extended) = extended_page(scope, list, next.is_none(), text) {
            return Ok(scope.respond(extended.as_bytes()));
        }
    }
    let parts = [start, end.as_bytes()];
    let reply = response::result_of_parts(scope.request.id, &parts);
    Ok(Dispatch::Done(reply))
}

/// A page of tools with what the gateway adds: the names of the servers whose tools are missing, and on the last page its
/// own tools. `None` if it adds nothing.
fn extended_page(
    scope: ViewScope<'_>,
    list: &View,
    is_last: bool,
    text: impl FnOnce() -> String,
) -> Option<String> {
    let missing = view::missing_servers(&scope);
    let has_own_tools = is_last && !list.gateway_tools.is_empty();
    if missing.is_empty() && !has_own_tools {
        return None;
    }
    let mut page = text();
    if !missing.is_empty() {
        page = with_missing(&page, &missing);
    }
    if has_own_tools {
        let extended = with_gateway_tools(list, &page);
        let added = extended.len().saturating_sub(page.len());
        scope.client.observation.costs(0, added);
        page = extended;
    }
    Some(page)
}

/// A list that lacks the tools of some servers, with their names beside what it has in `_meta`.
fn with_missing(list: &str, missing: &[(&str, String)]) -> String {
    let written = edit::get(list, "_meta").filter(|meta| meta.starts_with('{'));
    let mut meta = written.unwrap_or("{}").to_owned();
    for (key, names) in missing {
        meta = edit::set(&meta, key, names).into_owned();
    }
    edit::set(list, "_meta", &meta).into_owned()
}

/// Whether a client was offered a list that no server has: that of resources.
fn is_offered(context: &RequestContext<'_>, kind: ListKind) -> bool {
    let negotiates = context.client.features.is_some();
    kind.capability() == "resources" && context.snapshot.may_shorten(negotiates)
}

/// The position in the list where the client continues; `None` at the beginning.
fn list_position(scope: ViewScope<'_>, kind: ListKind) -> Result<Option<String>, RpcError> {
    let Some(cursor) = scope.cursor() else {
        return Ok(None);
    };
    let cursor: String = serde_json::from_str(cursor).map_err(|_| {
        scope.with_active_variant(RpcError::invalid_params("`cursor` must be a string"))
    })?;
    let binding = cursor_binding(&scope, kind);
    let position = cursor::open(&scope.snapshot.services.cursor_keys, &binding, &cursor);
    position.map(Some).map_err(|failure| {
        let error = failure.into_error(binding.variant, |_| true);
        without_variant(scope, RpcError::from(&error))
    })
}

fn seal_cursor(scope: ViewScope<'_>, kind: ListKind, position: &str) -> String {
    let binding = cursor_binding(&scope, kind);
    cursor::seal(&scope.snapshot.services.cursor_keys, &binding, position)
}

fn cursor_binding<'s>(scope: &'s ViewScope<'_>, kind: ListKind) -> CursorBinding<'s> {
    CursorBinding {
        variant: scope.snapshot.variant_id(scope.view),
        method: kind.method(),
        principal: scope.client.sealed_principal(),
    }
}

fn invalid_cursor(scope: ViewScope<'_>) -> RpcError {
    let active = scope.snapshot.variant_id(scope.view).clone();
    without_variant(scope, RpcError::from(&Error::InvalidCursor { active }))
}

/// Removes the variant from an error if variants are off (EXT-3).
fn without_variant(scope: ViewScope<'_>, failure: RpcError) -> RpcError {
    if scope.snapshot.config.variants {
        failure
    } else {
        RpcError::new(failure.code(), failure.message())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_whose_tools_are_missing_are_named_beside_what_a_list_has_in_its_meta() {
        let list =
            r#"{"tools":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}},"ttlMs":0}"#;
        let expected = r#"{"tools":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"},"vary/starting":["a"],"vary/down":["b"]},"ttlMs":0}"#;
        let missing = [("vary/starting", r#"["a"]"#), ("vary/down", r#"["b"]"#)];
        let missing = missing.map(|(key, names)| (key, names.to_owned()));
        assert_eq!(with_missing(list, &missing), expected);
        let expected = r#"{"tools":[],"_meta":{"vary/starting":["a"]}}"#;
        assert_eq!(with_missing(r#"{"tools":[]}"#, &missing[..1]), expected);
    }
}
