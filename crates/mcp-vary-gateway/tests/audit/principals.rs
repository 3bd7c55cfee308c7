//! Who: credentials, principals, and the access rules that decided.

use mcp_vary_access::{AccessPolicy, AccessRule, Claims, ItemPattern, Presence, Principal, When};
use mcp_vary_audit::IdentityDetail;
use mcp_vary_gateway::settings::access::AccessSettings;
use mcp_vary_gateway::settings::authentication::Authentication;
use mcp_vary_view::Rule;

use super::recorded::{Recorded, settings};
pub(super) use crate::support::people::key;
use crate::support::people::keys_with_groups;
use crate::support::*;

/// `config` with keys for ann and bob, who are in groups of their names.
pub(super) fn with_keys(mut config: Config) -> Config {
    let keys = keys_with_groups(&["ann", "bob"]);
    config.authentication = Some(Authentication::new(keys, None, false).unwrap());
    config
}

/// The status of the answer to a modern request with this value of `Authorization`.
async fn ask(recorded: &Recorded, authorization: Option<&str>, method: &str, params: Value) -> u16 {
    let message = modern(json!(1), method, params, &json!({}));
    let post = HttpRequest::modern(&message);
    let post = match authorization {
        Some(value) => post.with("Authorization", value),
        None => post,
    };
    let mut http = RawHttp::connect(recorded.harness.address()).await;
    http.ask(&post).await.status
}

#[tokio::test]
async fn a_credential_is_recorded_when_it_is_accepted_for_the_first_time() {
    let recorded = Recorded::with(settings(), with_keys).await;
    for who in ["ann", "ann", "bob", "ann"] {
        let bearer = format!("Bearer {}", key(who));
        let found = ask(&recorded, Some(&bearer), "tools/list", json!({})).await;
        assert_eq!(found, 200);
    }
    let accepted = recorded.sink.wait_for("auth.accepted", 2).await;
    let ids: Vec<_> = accepted.iter().map(|it| &it["principal"]["id"]).collect();
    let requests = recorded.sink.wait_for("request", 4).await;
    let of_requests: Vec<_> = requests.iter().map(|it| &it["principal"]["id"]).collect();
    assert_eq!(of_requests, [ids[0], ids[0], ids[1], ids[0]]);
    assert!(ids[0].as_str().unwrap().len() == 22 && ids[0] != ids[1]);
    // Nobody learns a name from it.
    assert!(!recorded.sink.text().contains("ann"));
}

#[tokio::test]
async fn a_refused_credential_is_recorded_with_the_reason() {
    for (authorization, status, rule) in [
        (None, 401, "auth: this server needs a bearer token"),
        (
            Some("Bearer eve-has-no-key"),
            401,
            "auth: no key and no issuer knows it",
        ),
        (
            Some("Basic YTpi"),
            400,
            "auth: only the authorization scheme Bearer is supported",
        ),
    ] {
        let recorded = Recorded::with(settings(), with_keys).await;
        let answered = ask(&recorded, authorization, "tools/list", json!({})).await;
        assert_eq!(answered, status);
        let refused = recorded.sink.wait_for("auth.refused", 1).await;
        let found = (
            &refused[0]["status"],
            &refused[0]["rule"],
            &refused[0]["outcome"],
        );
        assert_eq!(found, (&json!(status), &json!(rule), &json!("denied")));
        refused[0].has("/client", json!({"address": "127.0.0.1"}));
        let found = recorded.sink.of("request").len();
        assert_eq!(found, 0, "nothing reached the pipeline");
    }
}

/// Only if the operator chooses so, names are written.
#[tokio::test]
async fn identities_in_full_have_names() {
    let mut log = settings();
    log.identity = IdentityDetail::Full;
    let recorded = Recorded::with(log, |config| {
        let mut config = with_keys(config);
        let principal = Principal::stdio("carol", Claims::default()).unwrap();
        config.stdio_principal = Some(principal.into());
        config
    });
    let recorded = recorded.await;
    let bearer = format!("Bearer {}", key("ann"));
    ask(&recorded, Some(&bearer), "tools/list", json!({})).await;
    let record = recorded.sink.request("tools/list").await;
    record.has("/principal/key", "ann");
    let mut pipe = recorded.harness.open_pipe();
    pipe.ask(&modern(json!(1), "prompts/list", json!({}), &json!({})))
        .await;
    let record = recorded.sink.request("prompts/list").await;
    record.has("/principal/sub", "carol");
}

fn named(pattern: &str) -> ItemPattern {
    ItemPattern::any(Rule::by_name(pattern.parse().unwrap()))
}

/// Ann may use what begins with `o`, and everybody the resources; `say` is denied to all, and calls of `pretty` need a
/// scope.
fn with_rules(config: Config) -> Config {
    let groups = Presence::of(["ann"]).unwrap();
    let of_ann = When::new().with_claim("groups", groups).unwrap();
    let rules = [
        AccessRule::new(of_ann.clone()).with_allow([named("o*"), named("say")]),
        AccessRule::new(When::anyone())
            .with_allow([named("place:*")])
            .with_deny([named("say")]),
        AccessRule::new(of_ann)
            .with_allow([named("pretty")])
            .with_scopes(["pretty:call"]),
    ];
    let mut config = with_keys(config);
    config.access = Some(AccessSettings {
        policy: AccessPolicy::new(rules).unwrap().into(),
        trusted_annotations: Default::default(),
    });
    config
}

/// The record names the rule; the answer to what is hidden is that to what does not exist.
#[tokio::test]
async fn a_rule_that_decides_is_recorded_and_not_told() {
    for (method, params, outcome, rule) in [
        ("tools/call", tool("odd"), "allowed", json!("access[0]")),
        (
            "resources/read",
            json!({"uri": "place:bern"}),
            "allowed",
            json!("access[1]"),
        ),
        ("tools/call", tool("say"), "denied", json!("access[1]")),
        (
            "tools/call",
            tool("fail"),
            "denied",
            json!("access: default"),
        ),
        (
            "prompts/get",
            json!({"name": "greet"}),
            "denied",
            json!("access: default"),
        ),
        ("tools/call", tool("pretty"), "denied", json!("access[2]")),
        // It is not hidden: nobody has it.
        ("tools/call", tool("nix"), "error", Value::Null),
    ] {
        for is_modern in [false, true] {
            let recorded = Recorded::with(settings(), with_rules).await;
            let bearer = format!("Bearer {}", key("ann"));
            let mut http = RawHttp::connect(recorded.harness.address()).await;
            let post = if is_modern {
                HttpRequest::modern(&modern(json!(1), method, params.clone(), &json!({})))
            } else {
                let open = HttpRequest::new(initialize("2025-11-25", &json!({})).to_string());
                let opened = http.ask(&open.with("Authorization", &*bearer)).await;
                let id = opened.header("mcp-session-id").unwrap().to_owned();
                let message = request(json!(1), method, params.clone());
                HttpRequest::of(&id, message.to_string())
            };
            let answer = http.ask(&post.with("Authorization", &*bearer)).await;
            let text = answer.text();
            assert!(!text.contains("access"), "{text}");
            let record = recorded.sink.request(method).await;
            let found = (&record["outcome"], &record["rule"]);
            assert_eq!(found, (&json!(outcome), &rule), "{params} {is_modern}");
            let status = (answer.status != 200).then_some(answer.status);
            assert_eq!(record["status"].as_u64(), status.map(u64::from), "{params}");
            let knows_server = rule != Value::Null;
            let server = record["target"]["server"].as_str();
            assert_eq!(server.is_some(), knows_server, "{record}");
        }
    }
}

/// Clients that present nothing are nobody in the log.
#[tokio::test]
async fn an_anonymous_client_has_no_principal() {
    let recorded = Recorded::start().await;
    let mut client = LegacyClient::open(&recorded.harness, "2025-11-25", &json!({})).await;
    client.ask("ping", json!({})).await;
    let record = recorded.sink.request("ping").await;
    assert_eq!(record.get("principal"), None);
    assert_eq!(recorded.sink.of("auth.accepted").len(), 0);
}
