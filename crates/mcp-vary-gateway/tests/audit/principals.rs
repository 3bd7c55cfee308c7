//! Who: credentials, principals, and the access rules that decided.

use mcp_vary_access::{AccessPolicy, AccessRule, Claims, ItemPattern, Presence, Principal, When};
use mcp_vary_audit::IdentityDetail;
use mcp_vary_gateway::PersonUse;
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
async fn status_of(
    recorded: &Recorded,
    authorization: Option<&str>,
    method: &str,
    params: Value,
) -> u16 {
    let post = HttpRequest::modern_request(method, params);
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
        let found = status_of(&recorded, Some(&bearer), "tools/list", json!({})).await;
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
    let scheme = "auth: only the authorization scheme Bearer is supported";
    for (authorization, status, rule) in [
        (None, 401, "auth: this server needs a bearer token"),
        (
            Some("Bearer eve-has-no-key"),
            401,
            "auth: no key and no issuer knows it",
        ),
        (Some("Basic YTpi"), 400, scheme),
    ] {
        let recorded = Recorded::with(settings(), with_keys).await;
        let answered = status_of(&recorded, authorization, "tools/list", json!({})).await;
        assert_eq!(answered, status);
        let refused = recorded.sink.wait_for("auth.refused", 1).await;
        refused[0].has("/status", status);
        refused[0].has("/rule", rule);
        refused[0].has("/outcome", "denied");
        refused[0].has("/client", json!({"address": "127.0.0.1"}));
        let found = recorded.sink.of("request").len();
        assert_eq!(found, 0, "nothing reached the pipeline");
    }
}

#[tokio::test]
async fn who_is_refused_again_and_again_fills_no_disk() {
    let recorded = Recorded::with(settings(), with_keys).await;
    for _ in 0..130 {
        assert_eq!(
            status_of(&recorded, None, "tools/list", json!({})).await,
            401
        );
    }
    let refused = recorded.sink.wait_for("auth.refused", 62).await;
    assert_eq!(refused.len(), 62);
    assert_eq!(refused[59]["count"], json!(null));
    refused[60].has("/count", 64);
    refused[61].has("/count", 128);
    // Others are recorded as ever.
    let scheme = Some("Basic YTpi");
    assert_eq!(
        status_of(&recorded, scheme, "tools/list", json!({})).await,
        400
    );
    let refused = recorded.sink.wait_for("auth.refused", 63).await;
    assert_eq!(refused[62]["count"], json!(null));
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
    })
    .await;
    let bearer = format!("Bearer {}", key("ann"));
    status_of(&recorded, Some(&bearer), "tools/list", json!({})).await;
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
    // `nix` is not hidden: nobody has it.
    for [method, params, outcome, rule] in rows(
        r#"
        tools/call     | {"name": "odd"}       | allowed | "access[0]"
        resources/read | {"uri": "place:bern"} | allowed | "access[1]"
        tools/call     | {"name": "say"}       | denied  | "access[1]"
        tools/call     | {"name": "fail"}      | denied  | "access: default"
        prompts/get    | {"name": "greet"}     | denied  | "access: default"
        tools/call     | {"name": "pretty"}    | denied  | "access[2]"
        tools/call     | {"name": "nix"}       | error   | null
    "#,
    ) {
        let (params, rule) = (cell(params), cell(rule));
        for is_modern in [false, true] {
            let recorded = Recorded::with(settings(), with_rules).await;
            let bearer = format!("Bearer {}", key("ann"));
            let mut http = RawHttp::connect(recorded.harness.address()).await;
            let post = if is_modern {
                HttpRequest::modern_request(method, params.clone())
            } else {
                let open = HttpRequest::initialize(&json!({}));
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

/// The names and counts of the people in the status.
fn people(recorded: &Recorded) -> Value {
    let mut people = recorded.harness.gateway.status().people;
    people.sort_by(|one, other| one.person.cmp(&other.person));
    let counts = |used: &PersonUse| json!([used.person, used.requests, used.calls, used.refused]);
    people.iter().map(counts).collect()
}

#[tokio::test]
async fn people_are_recorded_and_counted_by_the_names_that_the_operator_gave() {
    let mut log = settings();
    log.identity = IdentityDetail::Name;
    let recorded = Recorded::with(log, with_rules).await;
    for (who, tool) in [("ann", "odd"), ("ann", "say"), ("bob", "odd")] {
        let bearer = format!("Bearer {}", key(who));
        let params = json!({"name": tool, "arguments": {}});
        status_of(&recorded, Some(&bearer), "tools/call", params).await;
    }
    let bearer = format!("Bearer {}", key("ann"));
    status_of(&recorded, Some(&bearer), "tools/list", json!({})).await;
    let requests = recorded.sink.wait_for("request", 4).await;
    let of_request = |line: &Value| json!([line["principal"]["name"], line["outcome"]]);
    assert_eq!(
        requests.iter().map(of_request).collect::<Value>(),
        json!([
            ["ann", "allowed"],
            ["ann", "denied"],
            ["bob", "denied"],
            ["ann", "allowed"]
        ])
    );
    assert_eq!(
        people(&recorded),
        json!([["ann", 3, 2, 1], ["bob", 1, 1, 1]])
    );
    let all = recorded.harness.gateway.status().people;
    let of = |who: &str| all.iter().find(|it| it.person == who).unwrap().tokens;
    assert!(of("ann") > 0 && of("bob") == 0, "{all:?}");
}

#[tokio::test]
async fn the_person_of_a_token_is_named_by_the_claim_that_the_operator_chose() {
    let server = AuthorizationServer::start().await;
    let authentication = super::operations::tokens(&server);
    let mut log = settings();
    log.identity = IdentityDetail::Name;
    let adapt = edited(|config| config.authentication = Some(authentication));
    let recorded = Recorded::with(log, adapt).await;
    for (sub, mail) in [("7", json!("ann@acme.example")), ("8", json!(["a", "b"]))] {
        let claims = json!({"sub": sub, "mail": mail, "aud": "here", "exp": 1_000_600});
        let bearer = format!("Bearer {}", server.sign(claims));
        let status = status_of(&recorded, Some(&bearer), "tools/list", json!({})).await;
        assert_eq!(status, 200);
    }
    let requests = recorded.sink.wait_for("request", 2).await;
    requests[0].has("/principal/name", "ann@acme.example");
    assert_eq!(requests[1]["principal"].get("name"), None);
    let shown = people(&recorded).to_string();
    for person in [&json!("ann@acme.example"), &requests[1]["principal"]["id"]] {
        assert!(shown.contains(&format!("[{person},1,0,0]")), "{shown}");
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
