//! What `vary config check` found, as JSON.

use mcp_vary::variant::VariantId;
use mcp_vary_gateway::config::{File, Mistake, Mistakes};
use mcp_vary_gateway::{Collision, ServerReport};
use serde_json::{Value, json};

use crate::behind;

/// A file that cannot be used.
pub(super) fn refused(mistakes: &Mistakes) -> String {
    let all = mistakes.all.iter().map(place);
    text(&json!({"file": mistakes.file, "mistakes": all.collect::<Value>()}))
}

/// A file whose servers were left alone.
pub(super) fn read(name: &str, file: &File) -> String {
    let servers = file
        .servers
        .iter()
        .map(|server| json!({"name": server.name}));
    text(&whole(name, file, &servers.collect()))
}

/// A file and what its servers offer.
pub(super) fn connected(
    name: &str,
    file: &File,
    servers: &[ServerReport],
    slips: &[(VariantId, Mistake)],
    collisions: &[Collision],
) -> String {
    let servers = servers.iter().map(behind::server);
    let mut all = whole(name, file, &servers.collect());
    let slips = slips.iter().map(|(variant, slip)| {
        let mut told = place(slip);
        told["variant"] = json!(variant);
        told
    });
    all["slips"] = slips.collect();
    all["collisions"] = collisions.iter().map(behind::collision).collect();
    text(&all)
}

fn whole(name: &str, file: &File, servers: &Value) -> Value {
    let notes = file.notes.iter().map(place);
    json!({
        "file": name,
        "servers": servers,
        "disabled": file.disabled,
        "mistakes": [],
        "notes": notes.collect::<Value>(),
    })
}

fn place(mistake: &Mistake) -> Value {
    json!({
        "line": mistake.at.line,
        "column": mistake.at.column,
        "key": mistake.key,
        "message": mistake.what,
        "fix": mistake.fix,
    })
}

fn text(all: &Value) -> String {
    format!("{all:#}\n")
}
