//! The variant that the operator selected of a server that offers some itself.

use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::json::{Members, string};
use mcp_vary::variant::VariantId;
use mcp_vary_wire::handshake::Handshake;

use crate::connect_error::ConnectError;
use crate::message::Request;

/// Checks that the server offers `variant`.
///
/// # Errors
///
/// When it offers no variants, or others: clients must not see more of the server than the operator selected.
pub(crate) fn check(
    server: &str,
    variant: &VariantId,
    handshake: &Handshake,
) -> Result<(), ConnectError> {
    let offered = handshake.offered_variants();
    // A server that has more variants than it advertises decides on each request.
    let is_offered = offered.contains(variant) || handshake.has_more_variants();
    if !offered.is_empty() && is_offered {
        return Ok(());
    }
    let fix = match offered.as_slice() {
        [] => "it offers no variants; leave `variant` out of its entry".to_owned(),
        all => {
            let ids: Vec<_> = all.iter().map(|id| format!("`{id}`")).collect();
            format!(
                "it offers {}; change `variant` in its entry",
                ids.join(", ")
            )
        }
    };
    Err(ConnectError::UnknownVariant {
        server: server.into(),
        variant: variant.clone(),
        fix,
    })
}

/// Adds the selector of `variant` to the `_meta` of a request; other members stay as they are.
pub(crate) fn select(variant: &VariantId, request: &mut Request) {
    let written = request.params.as_deref().unwrap_or("{}");
    // What is not an object is not changed: the server refuses it.
    let Ok(mut params) = Members::parse(written) else {
        return;
    };
    let mut meta = Members::parse(params.get("_meta").unwrap_or("{}")).unwrap_or_default();
    meta.set(SERVER_VARIANT_META, string(variant.as_str()));
    params.set("_meta", meta.to_json());
    request.params = Some(params.to_json());
}

#[cfg(test)]
mod tests {
    use mcp_vary_wire::revision::Revision;

    use super::*;

    #[track_caller]
    fn becomes(params: Option<&str>, expected: &str) {
        let mut request = Request::new("tools/call", params.map(str::to_owned));
        select(&"human".parse().unwrap(), &mut request);
        assert_eq!(request.params.as_deref(), Some(expected));
    }

    /// EXT-9: the selector is added, and the rest of the request keeps its bytes.
    #[test]
    fn the_selector_is_added_and_nothing_else_changes() {
        let selector = r#""io.modelcontextprotocol/server-variant":"human""#;
        becomes(None, &format!(r#"{{"_meta":{{{selector}}}}}"#));
        becomes(
            Some(r#"{"name":"a","arguments":{"n": 1.0},"_meta":{"progressToken":7}}"#),
            &format!(
                r#"{{"name":"a","arguments":{{"n": 1.0}},"_meta":{{"progressToken":7,{selector}}}}}"#
            ),
        );
    }

    #[track_caller]
    fn refuses(extensions: &str, expected: Option<&str>) {
        let handshake = Handshake {
            revision: Revision::LATEST_MODERN,
            result: "{}".to_owned(),
            server_info: None,
            capabilities: format!(r#"{{"extensions":{extensions}}}"#),
            instructions: None,
            refused_initialize: false,
            has_cut_variants: false,
        };
        let checked = check("crm", &"human".parse().unwrap(), &handshake);
        let refused = checked.err().map(|error| error.to_string());
        assert_eq!(refused.as_deref(), expected, "{extensions}");
    }

    /// EXT-9: a server without the variant is not used, and the error has those that exist.
    #[test]
    fn a_variant_that_the_server_does_not_offer_is_refused() {
        let key = "io.modelcontextprotocol/server-variants";
        let offering =
            |ids: &str, more: &str| format!(r#"{{"{key}":{{"availableVariants":[{ids}]{more}}}}}"#);
        refuses(&offering(r#"{"id":"agent"},{"id":"human"}"#, ""), None);
        let agent = r#"{"id":"agent"}"#;
        refuses(&offering(agent, r#","moreVariantsAvailable":true"#), None);
        refuses(
            &offering(agent, ""),
            Some(
                "server `crm` has no variant `human`: it offers `agent`; change `variant` in its entry",
            ),
        );
        refuses(
            "{}",
            Some(
                "server `crm` has no variant `human`: it offers no variants; leave `variant` out of its entry",
            ),
        );
    }
}
