//! Declaring a server: its capabilities, its revisions, and the errors of the builder.

use std::borrow::Cow;

use crate::prelude::*;
use crate::shop::Shop;
use crate::support::NEGOTIATION;
use crate::variants::variant;
use mcp_vary::variant::{DeprecationInfo, Status};
use mcp_vary_rmcp::server::ResourceView;
use rmcp::model::ProtocolVersion;

#[derive(Clone)]
pub(crate) struct Empty;

impl ServerHandler for Empty {}

/// SV-11: the capabilities are the union, the same for all; lists of a kind that a variant lacks
/// are empty.
#[tokio::test]
async fn a_variant_that_lacks_a_kind_lists_none_of_it() {
    let server = VaryServer::builder()
        .with_variant(variant("empty"), Empty)
        .with_variant(variant("full"), Shop::new("full"))
        .build()
        .unwrap();
    for way in each(WAYS) {
        let client = connect(&server, way).await;
        let capabilities = client.capabilities();
        assert_eq!(capabilities["tools"], json!({"listChanged": true}));
        assert_eq!(capabilities["resources"], json!({"subscribe": true}));
        for kind in ["tools", "prompts", "resources"] {
            assert_eq!(client.names("empty", kind).await, [""; 0]);
        }
        let error = client
            .error("empty", "tools/call", json!({"name": "get_who"}))
            .await;
        let expected = json!({"activeVariant": "empty"});
        assert_eq!(data_of(error, -32602, "Unknown tool: get_who"), expected);
    }
}

/// Has prompts after the flag is set.
#[derive(Clone, Default)]
struct Growing(Arc<AtomicBool>);

impl ServerHandler for Growing {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools();
        ServerConfig::new(if self.0.load(Ordering::Relaxed) {
            tools.enable_prompts().build()
        } else {
            tools.build()
        })
    }
}

/// SV-11: the handlers' capabilities are read again for each client.
#[tokio::test]
async fn the_capabilities_are_those_of_now() {
    let growing = Growing::default();
    let server = VaryServer::builder()
        .with_negotiation()
        .with_variant(variant("still"), Empty)
        .with_variant(variant("growing"), growing.clone())
        .build()
        .unwrap();
    for has_prompts in [false, true, true, false] {
        growing.0.store(has_prompts, Ordering::Relaxed);
        for way in each(WAYS) {
            let capabilities = connect(&server, way).await.capabilities();
            assert_eq!(capabilities.get("prompts").is_some(), has_prompts);
            assert_eq!(capabilities["tools"], json!({}));
            assert!(capabilities["extensions"].get(NEGOTIATION).is_some());
        }
    }
}

struct Old;

impl ServerHandler for Old {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&[ProtocolVersion::V_2025_06_18])
    }
}

/// SV-11: a server supports the revisions that all its handlers support.
#[tokio::test]
async fn the_revision_is_one_of_every_handlers() {
    let server = VaryServer::builder()
        .with_variant(variant("new"), Empty)
        .with_variant(variant("old"), Old)
        .build()
        .unwrap();
    let answers = lines(server.clone(), &[initialize(json!({}))]).await;
    let expected = r#""protocolVersion":"2025-06-18""#;
    assert!(answers[0].contains(expected), "{answers:?}");
    let answers = lines(server, &[modern(1, "tools/list", json!({}), json!({}))]).await;
    assert!(answers[0].contains("-32022"), "{answers:?}");
}

#[track_caller]
fn is_refused(builder: Builder, expected: &str) {
    assert_eq!(builder.build().unwrap_err().to_string(), expected);
}

/// SV-1, SV-3: `build` reports all problems of a declaration.
#[test]
fn a_wrong_declaration_is_refused_with_all_mistakes() {
    let expected = "nothing to serve; add a variant or a handler";
    is_refused(VaryServer::builder(), expected);
    is_refused(
        VaryServer::builder()
            .with_handler(Empty)
            .with_advertised_only()
            .with_extension("com.example/x".parse().unwrap(), 1),
        "there are settings for variants, but no variant; add one; \
         the settings of the extension `com.example/x` are not a JSON object",
    );
    let experimental = variant("a").with_status(Status::Experimental);
    is_refused(
        VaryServer::builder()
            .with_variant(experimental.clone(), Empty)
            .with_variant(experimental, Empty)
            .with_max_advertised(1),
        "the number of advertised variants must be 2 to 5; \
         variant `a` is declared twice; rename one; \
         no variant is stable; the default must be: mark one as stable",
    );
    let renamed = |name: &str| ToolView::new().with_name(name);
    let view = View::new()
        .with_tool("x", renamed("z"))
        .with_tool("y", renamed("z"))
        .with_tool("y", renamed("z"))
        .with_resource("a:b", ResourceView::new())
        .with_resource("a:b", ResourceView::new())
        .with_prompt("p", PromptView::new().with_name(""));
    is_refused(
        VaryServer::builder()
            .with_variant(variant("a"), VariantHandler::new(Empty).with_view(view)),
        "the view of variant `a`: `y` is described twice; keep one description; \
         the view of variant `a`: `a:b` is described twice; keep one description; \
         the view of variant `a`: two tools are named `z`; rename one; \
         the view of variant `a`: a prompt has an empty name; give it another",
    );
}

/// SV-1: a past removal date gives a warning, and the variant is served.
#[test]
fn a_past_removal_date_warns() {
    let mut info = DeprecationInfo::new("old");
    info.removal_date = Some("2026-01-01".to_owned());
    let declared = |today: &str| {
        let server = VaryServer::builder()
            .with_variant(variant("new"), Empty)
            .with_variant(variant("old").deprecated(info.clone()), Empty)
            .with_today(today.parse().unwrap());
        server.build().unwrap().warnings().len()
    };
    assert_eq!((declared("2026-11-20"), declared("2025-11-20")), (1, 0));
}
