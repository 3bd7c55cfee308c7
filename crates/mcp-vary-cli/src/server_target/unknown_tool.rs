//! What to write instead of a tool that does not exist.

use mcp_vary::json::Members;

use crate::client::{Client, ClientIdentity};
use crate::failure::Failure;
use crate::similar::nearest;

use super::session::{Needed, TargetSession};

/// What to write instead of a tool that `client`, which connected as `identity`, needs: if its variant does not list it, and
/// something is known that was meant.
///
/// # Errors
///
/// When the server does not list its tools.
pub(crate) async fn suggestion(
    session: &TargetSession,
    client: &Client,
    identity: &ClientIdentity,
    Needed {
        tool: name,
        variant,
    }: Needed<'_>,
) -> Result<Option<String>, Failure> {
    let listed = names(&client.tools(variant).await?);
    if listed.iter().any(|known| known == name) {
        return Ok(None);
    }
    let mut served = session.summary.served.iter();
    let renamed = served.find(|item| {
        let is_here = listed.contains(&item.id);
        item.list == "tools/list" && item.upstream_name == name && is_here
    });
    if let Some(item) = renamed {
        return Ok(Some(format!("`{name}` is called `{}` here", item.id)));
    }
    // Under the name of Vary, so that the status has no variants that the client did not use.
    let nobody = ClientIdentity {
        name: None,
        ..identity.clone()
    };
    let nobody = session.client(&nobody).await?;
    for (other, tools) in session.tools_by_variant(&nobody).await? {
        if names(&tools).iter().any(|known| known == name) {
            return Ok(Some(format!(
                "`{name}` exists in variant `{other}`; add --variant {other}"
            )));
        }
    }
    let similar = nearest(name, listed.iter().map(String::as_str));
    // A name without the prefix of its server.
    let ending = || {
        let mut ends = listed.iter().filter(|known| {
            let start = known.strip_suffix(name);
            start.is_some_and(|start| start.ends_with(['_', '-', '.', '/']))
        });
        ends.next().map(String::as_str)
    };
    let meant = similar.or_else(ending);
    Ok(match (meant, !client.starting_servers().is_empty()) {
        // The answer names the servers that are starting or down, and it may be one of theirs.
        (None, _) if client.missing_servers().is_some() => None,
        (Some(meant), true) => Some(format!("if you meant `{meant}`, that is listed already")),
        (Some(meant), false) => Some(format!("`{name}` is not listed; did you mean `{meant}`?")),
        (None, _) => Some(format!(
            "`{name}` is not listed; `vary tools TARGET` shows what is"
        )),
    })
}

/// The names of tools, given as JSON texts.
fn names(tools: &[String]) -> Vec<String> {
    let name = |tool: &String| Members::parse(tool).ok()?.get_str("name");
    tools.iter().filter_map(name).collect()
}
