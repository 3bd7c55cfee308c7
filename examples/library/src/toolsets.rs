//! One platform for developers, split into the tools that each kind of agent needs.
//!
//! There is one handler. Each variant is a view of it: hidden tools do not exist there. A view is
//! not an access control: a server whose callers have different permissions checks them in its
//! handler, or has the gateway in front of it.
//!
//! Try it, and ask for `tools/list` with `"_meta": {"io.modelcontextprotocol/server-variant":
//! "security-readonly"}`:
//!
//! ```text
//! cargo run -p library-examples --bin toolsets -- --http 127.0.0.1:8000
//! ```

use crate::{ExampleError, serve};
use mcp_vary::rank::Weights;
use mcp_vary::variant::ServerVariant;
use mcp_vary_rmcp::server::{VariantHandler, VaryServer, View};
use rmcp::model::Tool;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};

/// Runs the program.
///
/// # Errors
///
/// When a connection fails.
#[tokio::main]
pub async fn main() -> Result<(), ExampleError> {
    serve(server()?).await
}

/// The server.
///
/// # Errors
///
/// When a variant is invalid.
pub fn server() -> Result<VaryServer, ExampleError> {
    let all = VariantHandler::new(Platform);
    let project_management = ServerVariant::new(
        "project-management".parse()?,
        "Issue and project tracking operations. Includes issues, milestones and assignments. Excludes code operations.",
    )
    .with_hint("domain", "project-management")
    .with_hint("accessLevel", "read-write");
    let code_review = ServerVariant::new(
        "code-review".parse()?,
        "Pull request and code review operations. Includes diff viewing, review comments and merge controls. Excludes issue management.",
    )
    .with_hint("domain", "code-review")
    .with_hint("accessLevel", "read-write");
    let security = ServerVariant::new(
        "security-readonly".parse()?,
        "Security scanning and vulnerability management. Read-only access to alerts and advisories. No remediation capabilities.",
    )
    .with_hint("domain", "security")
    .with_hint("accessLevel", "readonly");
    let server = VaryServer::builder()
        // A hint that the extension does not define counts only if it has a weight.
        .with_weights(Weights::default().with("domain", 60, 10))
        .with_variant(
            code_review,
            all.clone().with_view(View::new().with_tools(REVIEWING)),
        )
        .with_variant(
            project_management,
            all.clone().with_view(View::new().with_tools(MANAGING)),
        )
        .with_variant(
            security,
            all.with_view(View::new().with_tools_where(only_looks_at_security)),
        )
        .build()?;
    Ok(server)
}

/// Selected by name.
const REVIEWING: [&str; 3] = ["get_diff", "add_review_comment", "merge_pull_request"];
const MANAGING: [&str; 3] = ["list_issues", "create_issue", "assign_issue"];

/// Selected by annotations: a tool that is added later is selected automatically.
fn only_looks_at_security(tool: &Tool) -> bool {
    let annotations = tool.annotations.as_ref();
    let only_looks = annotations.and_then(|hints| hints.read_only_hint) == Some(true);
    only_looks && tool.name.contains("security")
}

struct Platform;

#[tool_router]
impl Platform {
    /// The changes of a pull request.
    #[tool(annotations(read_only_hint = true))]
    fn get_diff(&self) -> String {
        "- let x = 1;\n+ let x = 2;".to_owned()
    }

    /// Comments on a line of a pull request.
    #[tool]
    fn add_review_comment(&self) -> String {
        "commented".to_owned()
    }

    /// Merges a pull request.
    #[tool]
    fn merge_pull_request(&self) -> String {
        "merged".to_owned()
    }

    /// The open issues.
    #[tool(annotations(read_only_hint = true))]
    fn list_issues(&self) -> String {
        "#7 Rain is not wet enough".to_owned()
    }

    /// Opens an issue.
    #[tool]
    fn create_issue(&self) -> String {
        "#8".to_owned()
    }

    /// Gives an issue to somebody.
    #[tool]
    fn assign_issue(&self) -> String {
        "assigned".to_owned()
    }

    /// What code scanning found.
    #[tool(annotations(read_only_hint = true))]
    fn list_security_alerts(&self) -> String {
        "1 alert: a secret in `config.yaml`".to_owned()
    }

    /// Known weaknesses of what is used.
    #[tool(annotations(read_only_hint = true))]
    fn list_security_advisories(&self) -> String {
        "no advisories".to_owned()
    }

    /// Closes what code scanning found.
    #[tool]
    fn dismiss_security_alert(&self) -> String {
        "dismissed".to_owned()
    }
}

#[tool_handler]
impl ServerHandler for Platform {}
