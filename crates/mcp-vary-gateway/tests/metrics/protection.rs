//! Credentials, denials, limits and deprecated variants.

use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary_access::Claims;
use mcp_vary_auth::key::KeyTable;
use mcp_vary_gateway::settings::authentication::Authentication;

use super::scraping::{get, measured, probes, promtool_finds_nothing, scrape};
use crate::support::people::{ask_modern, key, key_entry, token_config, trusted};
use crate::support::*;

const RULES: &str = r#"
variants:
  standard: {}
  old:
    description: Was for all.
    status: deprecated
    deprecation: {message: Ask for standard.}
access:
  - {name: all, when: {anyone: on}, allow: ["*"]}
  - {name: no-fail, when: {anyone: on}, deny: [fail]}
  - {name: small, when: {anyone: on}, deny: [say], if: args.text == "large"}
rates:
  - {name: few, rate: 4/day}
"#;

/// A gateway before the usual server for ann, whose variant `old` is deprecated.
async fn protected() -> Harness {
    let peer = places_server::start(Era::Legacy).await;
    let digest = key_entry("ann", Claims::default()).digest;
    let text = format!(
        "servers: {{peer: {{url: \"{}\"}}}}\nauth: {{keys: [{{name: ann, sha256: {digest}}}]}}\n{RULES}",
        peer.url
    );
    Harness::behind(peer, measured(of_file(&text))).await
}

#[tokio::test]
async fn credentials_denials_limits_and_deprecated_variants_are_counted() {
    let harness = protected().await;
    let address = probes(&harness).await;
    let ann = key("ann");
    let status = async |token: &str, method: &str, params: Value| {
        ask_modern(&harness, token, method, params).await.status
    };
    for (token, expected) in [("", 401), ("wrong", 401), (&*key("eve"), 401), (&ann, 200)] {
        assert_eq!(status(token, "tools/list", json!({})).await, expected);
    }
    // One is hidden, one refused, two are allowed.
    status(&ann, "tools/call", tool("fail")).await;
    let say = |text: &str| json!({"name": "say", "arguments": {"text": text}});
    status(&ann, "tools/call", say("large")).await;
    for _ in 0..2 {
        assert_eq!(status(&ann, "tools/call", say("small")).await, 200);
    }
    for _ in 0..3 {
        let mut params = tool("odd");
        params["_meta"][SERVER_VARIANT_META] = json!("old");
        status(&ann, "tools/call", params).await;
    }
    let lines = scrape(address).await;
    for line in [
        r#"vary_auth_total{outcome="missing",issuer=""} 1"#,
        r#"vary_auth_total{outcome="audience",issuer=""} 1"#,
        r#"vary_auth_total{outcome="invalid",issuer=""} 1"#,
        r#"vary_auth_total{outcome="ok",issuer=""} 8"#,
        r#"vary_denied_total{rule="no-fail"} 1"#,
        r#"vary_denied_total{rule="small"} 1"#,
        r#"vary_limited_total{rule="few"} 1"#,
        r#"vary_deprecated_uses_total{variant="old"} 3"#,
        r#"vary_variant_chosen_total{variant="old",why="selector"} 3"#,
    ] {
        assert!(lines.iter().any(|it| it == line), "{line}: {lines:#?}");
    }
    promtool_finds_nothing(&get(address, "/metrics", "text/plain").await.text());
}

/// A gateway that accepts the tokens of `server`.
async fn with_tokens(server: &AuthorizationServer) -> Harness {
    let tokens = Some(token_config(trusted(server, &[], &[])));
    let keys = KeyTable::new(Vec::new()).unwrap();
    let authentication = Authentication::new(keys, tokens, false).unwrap();
    Harness::with(|config| {
        let mut config = measured(config);
        config.authentication = Some(authentication);
        config
    })
    .await
}

#[tokio::test]
async fn fetches_of_keys_are_counted_by_issuer() {
    let server = AuthorizationServer::start().await;
    let harness = with_tokens(&server).await;
    let address = probes(&harness).await;
    until(async || get(address, "/readyz", "*/*").await.status == 200).await;
    let lines = scrape(address).await;
    let issuer = server.issuer();
    let fetches = |outcome: &str, count: u64| {
        let labels = format!("issuer=\"{issuer}\",outcome=\"{outcome}\"");
        format!("vary_jwks_fetches_total{{{labels}}} {count}")
    };
    for line in [fetches("ok", 1), fetches("failed", 0)] {
        assert!(lines.contains(&line), "{line}: {lines:#?}");
    }
    let age = format!("vary_jwks_age_seconds{{issuer=\"{issuer}\"}} ");
    let is_shown = lines.iter().any(|line| line.starts_with(&age));
    assert!(is_shown, "{lines:#?}");
}

/// OP-6
#[tokio::test]
async fn a_gateway_without_the_keys_of_an_issuer_is_not_ready() {
    let mut server = AuthorizationServer::start().await;
    server.die().await;
    let harness = with_tokens(&server).await;
    let address = probes(&harness).await;
    let answer = get(address, "/readyz", "*/*").await;
    let why = "keys: those of 1 of 1 issuers were never loaded\n";
    assert_eq!((answer.status, answer.text().as_str()), (503, why));
    let failed = format!("issuer=\"{}\",outcome=\"failed\"}} 1", server.issuer());
    until(async || {
        let lines = scrape(address).await;
        lines.iter().any(|line| line.ends_with(&failed))
    })
    .await;
}
