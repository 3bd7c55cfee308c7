//! One platform, in three sets of tools.

use library_examples::toolsets as example;
use mcp_vary_rmcp::client::Error;
use rmcp::ErrorData;
use rmcp::service::ServiceError;
use serde_json::json;

use crate::support::{call, hinting, in_each_way, offered, plain, tools, view};

/// SV-11: a variant can change the tool set.
#[tokio::test]
async fn each_variant_shows_its_own_tools() {
    let server = example::server().unwrap();
    in_each_way(server, plain, async |client, way| {
        for (variant, expected) in [
            (
                "code-review",
                ["add_review_comment", "get_diff", "merge_pull_request"].as_slice(),
            ),
            (
                "project-management",
                &["assign_issue", "create_issue", "list_issues"],
            ),
            (
                "security-readonly",
                &["list_security_advisories", "list_security_alerts"],
            ),
        ] {
            let shown = tools(&view(client, variant)).await;
            assert_eq!(shown, expected, "{variant}, {way}");
        }
    })
    .await;
}

/// SV-12: identifiers resolve in the active variant, which the error names.
#[tokio::test]
async fn what_a_set_does_not_show_cannot_be_called_in_it() {
    let server = example::server().unwrap();
    in_each_way(server, plain, async |client, way| {
        let security = view(client, "security-readonly");
        let refused = security.call_tool(call("dismiss_security_alert", json!({})));
        let error = not_found(refused.await.unwrap_err());
        let data = error.data.unwrap();
        assert_eq!(data["activeVariant"], "security-readonly", "{way}");
    })
    .await;
}

#[track_caller]
fn not_found(error: Error) -> ErrorData {
    match error {
        Error::Service(ServiceError::McpError(error)) => error,
        other => panic!("no answer of the server: {other}"),
    }
}

/// SV-5: a hint of the author's decides if it has a weight.
#[tokio::test]
async fn the_domain_chooses_the_toolset() {
    let server = example::server().unwrap();
    let declare = || hinting(&[("domain", "security")]);
    in_each_way(server, declare, async |client, way| {
        let expected = ["security-readonly", "code-review", "project-management"];
        assert_eq!(offered(client), expected, "{way}");
    })
    .await;
}

/// Without a matching hint, the order of declaration is used.
#[tokio::test]
async fn the_offers_are_in_the_declared_order() {
    let server = example::server().unwrap();
    let declare = || hinting(&[("contextSize", "compact")]);
    in_each_way(server, declare, async |client, way| {
        let expected = ["code-review", "project-management", "security-readonly"];
        assert_eq!(offered(client), expected, "{way}");
    })
    .await;
}
