//! MCP Apps (SEP-1865): what servers say in `_meta.ui` of a tool, and which tools their user interfaces mean.

use std::sync::Arc;

use mcp_vary::json;
use mcp_vary::json::edit;

use super::index::ServerIndex;
use super::shown::Tool;
use super::view::View;

/// What an app means by a name.
#[derive(Debug)]
pub enum AppToolMatch<'a> {
    /// The one tool that the name can mean.
    Unique(&'a Arc<Tool>),
    /// What the view calls each of those that it may mean, of several servers.
    Ambiguous(Vec<&'a Arc<str>>),
}

impl View {
    /// The tool that an app calls by its server's own name: one that the view lists under another, and that apps may
    /// call. A user interface has such names in its code, and nobody tells it others.
    ///
    /// > `"app"`: Tool is callable by the app from the same server connection only
    /// > (MCP Apps, 2026-01-26, "Resource Discovery", "Visibility")
    pub fn app_tool(&self, own: &str) -> Option<AppToolMatch<'_>> {
        let tools = self.listed_tools();
        let meant = tools.filter(|(_, tool, item)| {
            *tool.item_ref.upstream_name == *own && is_visible_to_apps(item)
        });
        let mut meant = meant.map(|(id, tool, _)| (id, tool));
        let first = meant.next()?;
        let others: Vec<_> = meant.map(|(id, _)| id).collect();
        if others.is_empty() {
            return Some(AppToolMatch::Unique(first.1));
        }
        let all = std::iter::once(first.0).chain(others);
        Some(AppToolMatch::Ambiguous(all.collect()))
    }

    /// The first server of which a listed tool has the user interface that it calls `uri`, and which `may` have it.
    ///
    /// > Since UI resources are primarily discovered through tool metadata, Servers MAY omit UI-only resources from
    /// > `resources/list` (MCP Apps, 2026-01-26, "Resource Discovery")
    pub fn ui_resource_server(
        &self,
        uri: &str,
        may: impl Fn(ServerIndex) -> bool,
    ) -> Option<ServerIndex> {
        let tools = self.listed_tools().filter(|(_, tool, _)| tool.facts.ui);
        let mut of_it = tools.filter(|(_, _, item)| ui_resource_uri(item).as_deref() == Some(uri));
        let server = of_it.find(|(_, tool, _)| may(tool.item_ref.server));
        server.map(|(_, tool, _)| tool.item_ref.server)
    }
}

/// Whether apps may call a tool, as its server lists it.
///
/// > `visibility` defaults to `["model", "app"]` if omitted (MCP Apps, 2026-01-26, "Visibility")
fn is_visible_to_apps(tool: &str) -> bool {
    let visibility = edit::get(tool, "_meta")
        .and_then(|meta| edit::get(meta, "ui"))
        .and_then(|ui| edit::get(ui, "visibility"));
    let Some(visibility) = visibility else {
        return true;
    };
    let visible = json::elements(visibility).unwrap_or_default();
    visible.contains(&r#""app""#)
}

/// The URI of a tool's user interface, be it said as it was said first.
fn ui_resource_uri(tool: &str) -> Option<String> {
    let meta = edit::get(tool, "_meta")?;
    let uri = edit::get(meta, "ui").and_then(|ui| edit::get(ui, "resourceUri"));
    let uri = uri.or_else(|| edit::get(meta, "ui/resourceUri"))?;
    serde_json::from_str(uri).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(tool: &str, for_apps: bool, uri: Option<&str>) {
        assert_eq!(is_visible_to_apps(tool), for_apps, "{tool}");
        assert_eq!(ui_resource_uri(tool).as_deref(), uri, "{tool}");
    }

    #[test]
    fn what_servers_say_of_interfaces_is_read() {
        reads("{}", true, None);
        reads(
            r#"{"_meta":{"ui":{"resourceUri":"ui://a","visibility":["model"]}}}"#,
            false,
            Some("ui://a"),
        );
        reads(r#"{"_meta":{"ui":{"visibility":["app"]}}}"#, true, None);
        reads(
            r#"{"_meta":{"ui":{"visibility":"app"},"ui/resourceUri":"ui://b"}}"#,
            false,
            Some("ui://b"),
        );
        reads(r#"{"_meta":7}"#, true, None);
    }
}
