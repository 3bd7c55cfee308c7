//! MCP Apps (SEP-1865): reads `_meta.ui` of tools, and resolves the names of tools that user interfaces use.

use std::sync::Arc;

use mcp_vary::json;
use mcp_vary::json::edit;

use super::index::ServerIndex;
use super::shown::Tool;
use super::view::View;

/// The tool or tools that an app may mean by a name.
#[derive(Debug)]
pub enum AppToolMatch<'a> {
    /// The only tool with the name.
    Unique(&'a Arc<Tool>),
    /// Several servers have a tool with the name. These are the names in the view.
    Ambiguous(Vec<&'a Arc<str>>),
}

impl View {
    /// Resolves the server's own name of a tool, for a call from an app. The tool must be listed in the view and
    /// callable by apps. The code of a user interface contains these names, and it does not learn the names in the
    /// view.
    ///
    /// > `"app"`: Tool is callable by the app from the same server connection only
    /// > (MCP Apps, 2026-01-26, "Resource Discovery", "Visibility")
    pub fn app_tool(&self, upstream_name: &str) -> Option<AppToolMatch<'_>> {
        let meant = self.listed_tools().filter(|(_, tool, item)| {
            *tool.item_ref.upstream_name == *upstream_name && is_visible_to_apps(item)
        });
        let mut matches = meant.map(|(id, tool, _)| (id, tool));
        let first = matches.next()?;
        let others: Vec<_> = matches.map(|(id, _)| id).collect();
        if others.is_empty() {
            return Some(AppToolMatch::Unique(first.1));
        }
        let all = std::iter::once(first.0).chain(others);
        Some(AppToolMatch::Ambiguous(all.collect()))
    }

    /// The first server with a listed tool whose user interface has the server's URI `uri`, among the servers that
    /// `may` accepts.
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

/// Whether apps may call `tool`, the definition as its server lists it.
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

/// The URI of a tool's user interface, also in the older form of the metadata.
fn ui_resource_uri(tool: &str) -> Option<String> {
    let meta = edit::get(tool, "_meta")?;
    let uri = edit::get(meta, "ui").and_then(|ui| edit::get(ui, "resourceUri"));
    let found = uri.or_else(|| edit::get(meta, "ui/resourceUri"))?;
    serde_json::from_str(found).ok()
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
