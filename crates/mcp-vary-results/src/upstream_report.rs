//! A report of what was applied in the result of a server that got none of the client's tags: a member like any other.

use mcp_vary::json::edit;
use mcp_vary::shape::{META_APPLIED, Shaped};

/// What `shape` makes of `result`, whatever the server says in `_meta["vary/applied"]`. That stays, unless the client
/// receives a report of the gateway.
pub(crate) fn shape_beside(result: &str, shape: impl Fn(&str) -> Shaped) -> Shaped {
    let shaped = shape(result);
    if shaped != Shaped::Unchanged {
        return shaped;
    }
    let Some(meta) = edit::get(result, "_meta") else {
        return Shaped::Unchanged;
    };
    let Some(report) = edit::get(meta, META_APPLIED) else {
        return Shaped::Unchanged;
    };
    let without = edit::set(result, "_meta", &edit::remove(meta, META_APPLIED));
    let Shaped::Changed { result, applied } = shape(&without) else {
        return Shaped::Unchanged;
    };
    let meta = edit::get(&result, "_meta").unwrap_or("{}");
    let result = match edit::get(meta, META_APPLIED) {
        Some(_) => result,
        None => edit::set(&result, "_meta", &edit::set(meta, META_APPLIED, report)).into_owned(),
    };
    Shaped::Changed { result, applied }
}
