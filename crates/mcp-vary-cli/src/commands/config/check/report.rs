//! The result of `vary config check` as JSON.

use mcp_vary::variant::VariantId;
use mcp_vary_config::{Diagnostic, Diagnostics, File};
use mcp_vary_gateway::{Collision, ServerReport};
use serde_json::{Value, json};

use crate::serving::server_summary;
use crate::tokens;

/// A part of a variant or of `access` that matches nothing, at its place in the file.
pub(super) type Unmatched = (Option<VariantId>, Diagnostic);

/// A file that cannot be used.
pub(super) fn invalid_file(mistakes: &Diagnostics) -> String {
    let all = mistakes.all.iter().map(diagnostic_json);
    to_text(&json!({"file": mistakes.file, "errors": all.collect::<Value>()}))
}

/// A file, without connecting to its servers.
pub(super) fn offline(name: &str, file: &File, refused: &[String]) -> String {
    let servers = file
        .servers
        .iter()
        .map(|server| json!({"name": server.name}));
    let mut all = report(name, file, &servers.collect());
    all["problems"] = json!(refused);
    to_text(&all)
}

/// The findings after connecting to the servers.
#[derive(Debug)]
pub(super) struct CheckResult<'a> {
    pub(super) servers: &'a [ServerReport],
    /// Guards and names of `access` that match nothing now.
    pub(super) notes: &'a [Unmatched],
    pub(super) unmatched: &'a [Unmatched],
    pub(super) collisions: &'a [Collision],
    /// The definitions of the tools of each variant.
    pub(super) variants: &'a [(VariantId, Vec<String>)],
    /// What `serve` would leave out, ignore or refuse.
    pub(super) problems: &'a [String],
}

/// A file and what its servers offer.
pub(super) fn connected(name: &str, file: &File, found: &CheckResult<'_>) -> String {
    let servers = found.servers.iter().map(server_summary::server_json);
    let mut all = report(name, file, &servers.collect());
    let of_variant = |(variant, diagnostic): &Unmatched| {
        let mut all = diagnostic_json(diagnostic);
        if let Some(variant) = variant {
            all["variant"] = json!(variant);
        }
        all
    };
    let notes = file.notes.iter().map(diagnostic_json);
    all["notes"] = notes.chain(found.notes.iter().map(of_variant)).collect();
    all["unmatched"] = found.unmatched.iter().map(of_variant).collect();
    all["collisions"] = found
        .collisions
        .iter()
        .map(server_summary::collision_json)
        .collect();
    let listed = found.variants.iter();
    let variants = listed.map(|(id, tools)| {
        json!({"id": id, "tools": tools.len(), "tokens": tokens::count_tools(tools), "wholeTokens": tokens::count_whole(tools)})
    });
    all["variants"] = variants.collect();
    all["problems"] = json!(found.problems);
    to_text(&all)
}

fn report(name: &str, file: &File, servers: &Value) -> Value {
    let notes = file.notes.iter().map(diagnostic_json);
    json!({
        "file": name,
        "servers": servers,
        "disabled": file.disabled,
        "errors": [],
        "notes": notes.collect::<Value>(),
    })
}

fn diagnostic_json(mistake: &Diagnostic) -> Value {
    json!({
        "line": mistake.at.line,
        "column": mistake.at.column,
        "key": mistake.key,
        "message": mistake.what,
        "fix": mistake.fix,
    })
}

fn to_text(all: &Value) -> String {
    format!("{all:#}\n")
}
