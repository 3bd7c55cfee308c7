//! `vary access explain`: what a client sees, and which rule decided.

use std::time::{SystemTime, UNIX_EPOCH};

use mcp_vary_testkit::authorization_server::AuthorizationServer;
use serde_json::{Value, json};

use crate::program::{Run, VARY, file, run, sky};
use crate::text::{assert_contains, assert_ends, assert_lacks, assert_starts};

/// A configuration with the weather server and rules for a team.
fn team(name: &str) -> String {
    let text = sky(&format!("auth:
  keys:
    - {{name: ci, sha256: {digest}, claims: {{groups: [dev], scope: 'sky:forecast'}}}}
access:
  - {{name: developers, when: {{groups: dev}}, allow: [get_weather], variants: [standard, compact], variant: compact}}
  - {{when: {{groups: dev}}, allow: [{{tools: \"*forecast\"}}], scopes: [sky:forecast]}}
  - {{name: guests, when: {{groups: guest, email: \"*@acme.example\"}}, allow: [\"*\"], if: args.location == \"Bern\"}}
  - {{name: suspended, when: {{groups: suspended}}, deny: [\"*\"]}}
  - {{name: machines, when: {{client: \"CN=ci-*\"}}, variant: compact, pin: on}}
  - {{when: {{groups: audit}}, variant: read-only, pin: on}}
", digest = "0".repeat(64)));
    file(name, &text)
}

/// What is shown of a client.
#[track_caller]
fn explains(name: &str, args: &[&str]) -> String {
    let config = team(name);
    run(&[&["access", "explain"], args, &[&config]].concat()).data(0)
}

#[test]
fn each_item_has_the_rule_that_decided() {
    insta::assert_snapshot!(explains("access-dev.yaml", &["--as", r#"{"groups": ["dev"]}"#]), @r"
    sees 2 of 2 tools, 0 of 1 prompts, 0 of 1 resources

    rules that apply  when
    developers        groups: dev
    access[1]         groups: dev
    claims that rules use: email (absent), groups (present)

    variant    offered  by
    standard   yes      developers
    compact    default  developers
    directory  no
    read-only  no

    tools         server  access                 decided by
    get_weather   sky     allowed                developers (allow get_weather)
    get_forecast  sky     visible, lacks scopes  access[1] (allow tools *forecast, scopes sky:forecast)

    prompts        server  access  decided by
    weather_check  sky     hidden  no rule allows it

    resources                       server  access  decided by
    map://features/alpine-valley-1  sky     hidden  no rule allows it
    ");
}

#[test]
fn what_nobody_allows_is_hidden() {
    insta::assert_snapshot!(explains("access-none.yaml", &["--as", "{}"]), @r"
    sees 0 of 2 tools, 0 of 1 prompts, 0 of 1 resources

    no rule applies
    claims that rules use: email (absent), groups (absent)

    variant    offered  by
    standard   yes      no rule names variants
    compact    yes      no rule names variants
    directory  yes      no rule names variants
    read-only  yes      no rule names variants

    tools         server  access  decided by
    get_weather   sky     hidden  no rule allows it
    get_forecast  sky     hidden  no rule allows it

    prompts        server  access  decided by
    weather_check  sky     hidden  no rule allows it

    resources                       server  access  decided by
    map://features/alpine-valley-1  sky     hidden  no rule allows it
    ");
}

#[test]
fn a_key_of_the_file_has_its_claims_and_scopes() {
    let shown = explains("access-key.yaml", &["--key", "ci"]);
    assert_contains(&shown, &["allowed, has the scopes"]);
    run(&[
        "access",
        "explain",
        "--key",
        "cd",
        &team("access-no-key.yaml"),
    ])
    .refuses(&["--key: `auth.keys` of the configuration has no key `cd`"]);
}

#[test]
fn a_rule_that_denies_wins_and_expressions_are_left_to_the_call() {
    let guest = r#"{"groups": "guest", "email": "x@acme.example"}"#;
    let shown = explains("access-guest.yaml", &["--as", guest]);
    assert_contains(&shown, &["visible, depends on the call"]);
    let suspended = r#"{"groups": ["dev", "suspended"]}"#;
    let shown = explains("access-suspended.yaml", &["--as", suspended]);
    assert_starts(&shown, "sees 0 of 2 tools");
    assert_contains(&shown, &["suspended (deny *)"]);
}

/// SV-9, SV-20
#[test]
fn pins_are_shown_and_so_is_their_conflict() {
    let shown = explains("access-pin.yaml", &["--client", "CN=ci-7"]);
    assert_contains(&shown, &["compact    pinned   machines"]);
    let both = ["--client", "CN=ci-7", "--as", r#"{"groups": "audit"}"#];
    let shown = explains("access-conflict.yaml", &both);
    assert_contains(&shown, &["rules pin different variants"]);
    let shown = explains("access-conflict.yaml", &[&both[..], &["--json"]].concat());
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["pinsConflict"], true);
}

#[test]
fn json_has_the_whole_explanation() {
    let claims = file("access-claims.json", r#"{"groups": "dev"}"#);
    let shown = explains("access-json.yaml", &["--json", "--as", &claims]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        shown["rules"],
        json!([
            {"rule": "developers", "when": "groups: dev"},
            {"rule": "access[1]", "when": "groups: dev"},
        ])
    );
    assert_eq!(
        shown["claims"],
        json!([{"name": "email", "present": false}, {"name": "groups", "present": true}])
    );
    assert_eq!(
        shown["variants"][1],
        json!({"id": "compact", "offered": true, "default": true, "pinned": false, "rules": ["developers"]})
    );
    assert_eq!(shown["variants"][2]["offered"], false);
    assert_eq!(shown["pinsConflict"], false);
    assert_eq!(
        shown["items"][1],
        json!({
            "kind": "tool",
            "name": "get_forecast",
            "server": "sky",
            "visible": true,
            "decision": "needsScopes",
            "hasScopes": false,
            "reasons": [{
                "rule": "access[1]",
                "effect": "allow",
                "pattern": "tools *forecast",
                "scopes": ["sky:forecast"],
                "if": null,
            }],
        })
    );
    assert_eq!(shown["items"].as_array().unwrap().len(), 4);
    assert_eq!(
        shown["servers"],
        json!([{"name": "sky", "state": "up", "error": null}])
    );
}

/// No error repeats a claim.
#[test]
fn claims_that_cannot_be_read_are_refused_without_their_values() {
    let config = team("access-claims.yaml");
    let too_large = format!("{{\"a\": \"{}\"}}", "s3cret".repeat(11_000));
    let large = file("access-large.json", &too_large);
    for (claims, why) in [
        (
            "s3cret",
            "--as: it is not a JSON object, and cannot be read as a file: ",
        ),
        (
            r#"{"groups": "s3cret""#,
            "--as: the claims are not a JSON object",
        ),
        (
            r#"{"groups": "s3cret\u0007"}"#,
            "--as: the claim `groups` contains a control character",
        ),
        (&large, "--as: the claims have more than 65536 bytes"),
    ] {
        let refused = run(&["access", "explain", "--as", claims, &config]);
        refused.refuses(&[why]);
        assert_lacks(&refused.stderr, &["s3cret"]);
    }
}

#[test]
fn a_client_and_rules_are_needed() {
    let plain = file("access-plain.yaml", "servers: {a: {command: x}}\n");
    run(&["access", "explain", "--as", "{}", &plain])
        .refuses(&["access-plain.yaml has no `access`, so every client may use everything"]);
    run(&["access", "explain", &plain])
        .refuses(&["--as <CLAIMS>|--key <NAME>|--token <FILE>|--client <SUBJECT>"]);
}

#[test]
fn a_server_that_is_down_makes_the_explanation_incomplete() {
    let text = format!(
        "servers: {{sky: {{command: {VARY:?}, args: [weather]}}, gone: {{command: /no/such/program}}}}\n\
         stdio-principal: {{name: a}}\naccess: [{{when: {{anyone: on}}, allow: [\"*\"]}}]\n"
    );
    let config = file("access-down.yaml", &text);
    let shown = run(&["access", "explain", "--as", "{}", &config]).data(1);
    assert_starts(&shown, "sees 2 of 2 tools");
    assert_contains(&shown, &["\nincomplete: "]);
}

/// What a run says that found something wrong.
#[track_caller]
fn refusal(run: Run) -> String {
    let run = run.exited(1);
    assert_eq!(run.stdout, "", "{}", run.stderr);
    run.stderr
}

/// The servers of this configuration are never started where a token is refused.
fn with_issuer(name: &str, issuer: &str, more: &str) -> String {
    let text = sky(&format!(
        "public-url: https://mcp.example
auth: {{issuers: [{{issuer: {issuer:?}, claims: {{groups: groups}}{more}}}]}}
access: [{{name: developers, when: {{groups: dev}}, allow: [get_weather]}}]
"
    ));
    file(name, &text)
}

/// The claims of a token for `audience` that expires in so many `seconds`.
#[expect(
    clippy::disallowed_methods,
    reason = "the command under test reads the clock"
)]
fn claims(audience: &str, seconds: i64) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = now.as_secs().cast_signed();
    json!({"sub": "ann", "aud": audience, "exp": now + seconds, "iat": now, "groups": ["dev"]})
}

/// Tries a token of `server`, with `more` about the issuer in the configuration.
async fn tried(server: &AuthorizationServer, name: &str, token: String, more: &str) -> Run {
    let token = file(&format!("{name}.txt"), &format!("{token}\n"));
    let config = with_issuer(&format!("{name}.yaml"), &server.issuer(), more);
    let args = ["access", "explain", "--token", &token, &config].map(str::to_owned);
    let run = tokio::task::spawn_blocking(move || run(&args.each_ref().map(String::as_str)));
    run.await.unwrap()
}

#[tokio::test]
async fn a_token_is_tried_and_what_it_lacks_is_said() {
    let server = AuthorizationServer::start().await;
    let good = server.sign(claims("https://mcp.example/mcp", 600));
    let accepted = tried(&server, "token-good", good.clone(), "").await;
    let line = format!("the token is accepted: `ann` of {}, for ", server.issuer());
    assert_contains(&accepted.stderr, &[&line]);
    assert_eq!(accepted.code, Some(0));
    assert_starts(&accepted.stdout, "sees 1 of 2 tools");

    let other = server.sign(claims("api://vary", 600));
    let refused = tried(&server, "token-audience", other, ", audiences: [mcp]").await;
    let text = refusal(refused);
    assert_eq!(
        text,
        "error: the token is refused: its audience is another resource
  its `aud`: api://vary
  accepted: https://mcp.example/mcp, mcp
let the provider write the first of these into `aud`, or add the token's to `audiences` of the issuer if the provider gives it to no other service\n"
    );
    let refused = tried(&server, "token-scope", good.clone(), ", scopes: [mcp]").await;
    let text = refusal(refused);
    assert_eq!(
        text,
        "error: the token is refused: it needs the scopes `mcp`, and has none\n"
    );
    assert_lacks(&text, &[&good]);

    let elsewhere = AuthorizationServer::start().await;
    let foreign = elsewhere.sign(claims("https://mcp.example/mcp", 600));
    let refused = tried(&server, "token-issuer", foreign, "").await;
    let lines = format!(
        "  its `iss`: {}\n  `issuer` in the configuration: {}\nif that is your provider, write its `iss` into `issuer` exactly as it \
         is; if not, get a token of your provider\n",
        elsewhere.issuer(),
        server.issuer()
    );
    let text = refusal(refused);
    assert_ends(&text, &lines);
}

#[tokio::test]
async fn a_token_that_is_old_or_cannot_be_verified_is_said_to_be() {
    let server = AuthorizationServer::start().await;
    let mut old = claims("https://mcp.example/mcp", 0);
    old["exp"] = json!(1_700_000_000);
    let foreign = old.clone();
    let old = server.sign(old);
    let expired = "it has expired: its `exp` is 2023-11-14 22:13:20Z, ";
    // Not the unit: it is `h` but in the hour in which whole days have passed.
    let get = " ago by this machine's clock; get another token\n";
    let dead = ", jwks: 'http://127.0.0.1:1/keys'";
    // Even where nothing else was checked.
    for (name, more) in [("token-old", ", scopes: [mcp]"), ("token-old-keys", dead)] {
        let text = refusal(tried(&server, name, old.clone(), more).await);
        let start = format!("error: the token is refused: {expired}");
        assert_starts(&text, &start);
        assert_ends(&text, get);
    }
    let elsewhere = AuthorizationServer::start().await;
    let text = refusal(tried(&server, "token-old-foreign", elsewhere.sign(foreign), "").await);
    let both = format!(
        "error: the token is refused: its issuer is not trusted\n  its `iss`: {}\n  `issuer` in the configuration: {}\n",
        elsewhere.issuer(),
        server.issuer()
    );
    assert_starts(&text, &both);
    assert_contains(
        &text,
        &[&format!("get a token of your provider\nand {expired}")],
    );

    let mut endless = claims("https://mcp.example/mcp", 600);
    endless.as_object_mut().unwrap().remove("exp");
    let text = refusal(tried(&server, "token-endless", server.sign(endless), "").await);
    let expected = "its claim `exp` is missing or malformed; let the provider give the token a lifetime: the end in seconds since 1970, as a number\n";
    assert_ends(&text, expected);

    let good = server.sign(claims("https://mcp.example/mcp", 600));
    let text = refusal(tried(&server, "token-keys", good, dead).await);
    let reason = format!(
        "error: the token cannot be checked: keys of {} not fetched: http://127.0.0.1:1/keys: connection refused\nsee that this machine can reach that address",
        server.issuer()
    );
    assert_starts(&text, &reason);
}

#[tokio::test]
async fn what_is_no_file_with_a_token_alone_is_said_to_be() {
    let server = AuthorizationServer::start().await;
    let empty = tried(&server, "token-empty", String::new(), "").await;
    empty.refuses(&["--token: ", "token-empty.txt is empty"]);
    let several = tried(&server, "token-several", "one two".to_owned(), "").await;
    several.refuses(&["has more than a token; write the token alone into it"]);
    let config = with_issuer("token-itself.yaml", &server.issuer(), "");
    let token = server.sign(claims("https://mcp.example/mcp", 600));
    let args = ["access", "explain", "--token", &token, &config].map(str::to_owned);
    let itself = tokio::task::spawn_blocking(move || run(&args.each_ref().map(String::as_str)));
    let itself = itself.await.unwrap();
    itself.refuses(&["--token takes the name of a file, and this is a token"]);
    assert_lacks(&itself.stderr, &[&token]);
    let config = with_issuer("token-opaque-itself.yaml", &server.issuer(), "");
    let args = ["access", "explain", "--token", "gho_opaque", &config].map(str::to_owned);
    let opaque_itself =
        tokio::task::spawn_blocking(move || run(&args.each_ref().map(String::as_str)));
    let opaque_itself = opaque_itself.await.unwrap();
    opaque_itself.refuses(&["--token takes the name of a file with the token"]);
    assert_lacks(&opaque_itself.stderr, &["gho_"]);
    let opaque = tried(
        &server,
        "token-opaque",
        "v2.local.abc".replace('.', "-"),
        "",
    )
    .await;
    let text = refusal(opaque);
    let advice = "it is not a signed JWT of three parts: it was cut short, or the provider issues other tokens";
    assert_contains(&text, &[advice]);
}

#[tokio::test]
async fn a_token_that_was_changed_is_refused_with_what_is_wrong() {
    let server = AuthorizationServer::start().await;
    let good = server.sign(claims("https://mcp.example/mcp", 600));
    let parts: Vec<&str> = good.split('.').collect();
    let none = format!("eyJhbGciOiJub25lIn0.{}.", parts[1]);
    let changed = "its signature does not verify: the token was cut short or changed, or a key of another provider signed it";
    for (name, token, expected) in [
        ("token-cut", good[..good.len() - 8].to_owned(), changed),
        (
            "token-cut-more",
            good[..good.len() - parts[2].len() - 9].to_owned(),
            "it is not a signed JWT of three parts: it was cut short",
        ),
        (
            "token-none",
            none,
            "its `alg` is `none`, which the issuer's key does not allow",
        ),
    ] {
        let text = refusal(tried(&server, name, token.clone(), "").await);
        let start = format!("error: the token is refused: {expected}");
        assert_starts(&text, &start);
        assert_lacks(&text, &[&token]);
    }
    let quoted = tried(&server, "token-quoted", format!("{good:?}"), "").await;
    quoted.refuses(&[
        "token-quoted.txt is in quotes, and a client would send them; write it without quotes",
    ]);
    assert!(!quoted.stderr.contains(parts[1]), "{}", quoted.stderr);
}
