//! `auth`, `public-url` and `stdio-principal`.

use mcp_vary_access::PrincipalKind;
use mcp_vary_auth::address::EndpointPath;
use mcp_vary_auth::credential::Credential;
use mcp_vary_auth::key::ApiKey;
use mcp_vary_settings::authentication::{Authentication, KeySource};

use super::*;

/// The text of a key, and its digest.
fn key(byte: u8) -> (String, String) {
    let key = ApiKey::from_random([byte; 32]);
    (key.expose().to_owned(), key.digest().to_string())
}

#[track_caller]
fn authentication(remaining: &str) -> Authentication {
    config_of(remaining).authentication.unwrap()
}

#[test]
fn without_auth_everybody_is_served() {
    let config = config_of("public-url: https://mcp.example\n");
    assert!(config.authentication.is_none() && config.stdio_principal.is_none());
}

#[test]
fn a_key_is_known_by_its_digest_until_the_end_of_its_last_day() {
    let (text, digest) = key(7);
    let found = authentication(&format!(
        "auth: {{keys: [{{name: ci, sha256: {digest}, claims: {{groups: [build]}}, expires: 1970-01-02}}]}}"
    ));
    let at = |now| outcome(&found, &text, now);
    assert_eq!(at(2 * 24 * 60 * 60 - 1), "ci [\"build\"]");
    assert_eq!(at(2 * 24 * 60 * 60), "refused");
    assert!(found.metadata.is_none() && found.key_sources.is_empty());
}

/// Who `text` stands for at `now`, in seconds since 1970.
fn outcome(authentication: &Authentication, text: &str, now: u64) -> String {
    let mut headers = http::HeaderMap::new();
    headers.insert(
        http::header::AUTHORIZATION,
        format!("Bearer {text}").parse().unwrap(),
    );
    let credential = Credential::read(&headers, None).unwrap();
    let no_keys = |_| panic!("a key needs no key set");
    let authenticator = &authentication.authenticator;
    match authenticator.authenticate(credential, &EndpointPath::Base, now, no_keys) {
        Ok(admission) => {
            let principal = admission.principal;
            let groups: Vec<_> = principal.claims().get("groups").unwrap().texts().collect();
            format!("{} {groups:?}", principal.key_name().unwrap())
        }
        Err(_) => "refused".to_owned(),
    }
}

#[test]
fn issuers_are_read_with_their_audiences_scopes_claims_and_keys() {
    let found = authentication(
        "public-url: https://mcp.example/
auth:
  metadata-resource: base
  documentation: https://mcp.example/docs
  issuers:
    - issuer: https://idp.example/realms/a
      audiences: [https://mcp.example, api]
      scopes: [mcp:read]
      scope-claims: [permissions]
      claims: {groups: realm_access.roles}
      name-claim: profile.email
    - {issuer: https://b.example, jwks: https://keys.example/b?v=1, scopes: [mcp:read, b]}
    - {issuer: https://c.example, jwks: /etc/vary/c.json, jwks-refresh: 5m, scopes: [mcp:read]}
",
    );
    assert_eq!(
        found
            .key_sources
            .iter()
            .map(|keys| (keys.source.clone(), keys.refresh.as_secs()))
            .collect::<Vec<_>>(),
        [
            (KeySource::Discovery, 3600),
            (
                KeySource::Url("https://keys.example/b?v=1".to_owned()),
                3600
            ),
            (KeySource::File("/etc/vary/c.json".into()), 300),
        ]
    );
    let metadata = found.metadata.unwrap();
    let document = "/.well-known/oauth-protected-resource/mcp/v/compact";
    insta::assert_snapshot!(metadata.document(document).unwrap(), @r#"{"resource":"https://mcp.example/mcp","authorization_servers":["https://idp.example/realms/a","https://b.example","https://c.example"],"scopes_supported":["mcp:read"],"bearer_methods_supported":["header"],"resource_name":"Vary","resource_documentation":"https://mcp.example/docs"}"#);
}

#[test]
fn issuers_need_the_public_url() {
    refuses_lines(
        "auth:\n  issuers:\n    - issuer: https://idp.example\n",
        "4:7: `auth.issuers` need `public-url`; add `public-url: https://...` at the top of the file, as clients type it but without `/mcp`",
    );
    // A mistake in it is reported alone.
    refuses_lines(
        "public-url: https://mcp.example/mcp\nauth: {issuers: [{issuer: https://idp.example}]}\n",
        "2:13: `public-url` cannot be used: it ends with `/mcp`; write it without, since Vary adds `/mcp` and `/mcp/v/NAME`",
    );
}

#[test]
fn a_public_url_is_https_in_the_form_that_clients_send() {
    for case in [
        "http://mcp.example => \
         cannot be used: the URL does not start with `https://`; `http://` is for loopback addresses only",
        "https://MCP.example => \
         cannot be used: it has capital letters in its host or names the default port; write it as clients send it",
        "mcp.example => cannot be used: it is not an absolute URL such as `https://host.example/path`",
    ] {
        let (url, said) = case.split_once(" => ").unwrap();
        refuses_lines(
            &format!("public-url: {url}\n"),
            &format!("2:13: `public-url` {said}"),
        );
    }
}

#[test]
fn every_mistake_of_a_key_is_at_its_place() {
    let digest = key(1).1;
    let text = format!(
        "auth:
  keys:
    - {{name: a, sha256: {digest}}}
    - {{name: a, sha256: {}}}
    - {{name: b, sha256: {digest}}}
    - {{name: c}}
    - {{sha256: {}}}
    - {{name: d, sha256: abc}}
    - {{name: '', sha256: {}}}
    - {{name: e, sha256: {}, expires: 2027-02-29}}
    - {{name: f, sha256: {}, expires: 2027-02-28T00:00:00Z}}
    - {{name: g, sha256: {}, claims: [dev]}}
    - {{name: h, sha256: {}, expiry: 2027-02-28}}
    - nobody
",
        key(2).1,
        key(3).1,
        key(4).1,
        key(5).1,
        key(6).1,
        key(7).1,
        key(8).1,
    );
    refuses_lines(
        &text,
        "5:7: `auth.keys[1]` cannot be used: another key has the same name (line 4); audit and limits go by the name, so give each key its own\n\
         6:7: `auth.keys[2]` cannot be used: another key has the same digest (line 4); a key belongs to one name\n\
         7:7: `auth.keys[3]` has no `sha256`; add `sha256: ...`; `vary key new NAME` prints both\n\
         8:7: `auth.keys[4]` has no `name`; add `name: ...`, by which rules and logs call it\n\
         9:25: `auth.keys[5].sha256` cannot be used: it is not a SHA-256 digest of 64 hexadecimal digits; write what `vary key new` prints\n\
         10:14: `auth.keys[6].name` cannot be used: the name of the key is empty\n\
         11:100: `auth.keys[7].expires` is not a day of the calendar; write one like `2027-01-31`\n\
         12:100: `auth.keys[8].expires` is not a day of the calendar; write one like `2027-01-31`\n\
         13:99: `auth.keys[9].claims` is not a table of claims; write {NAME: value}, such as {groups: [build]}\n\
         14:91: `auth.keys[10].expiry` is not a known key; did you mean `expires`?\n\
         15:7: `auth.keys[11]` is not a table of keys; write {name: ..., sha256: ...}",
    );
}

#[test]
fn a_key_in_the_place_of_its_digest_is_refused_and_not_repeated() {
    let (text, _) = key(9);
    for written in [text.clone(), "${KEY}".to_owned()] {
        let file = format!("{SERVER}auth: {{keys: [{{name: a, sha256: '{written}'}}]}}\n");
        let variable = |_: &str| Some(text.clone());
        let mistakes = Source::new("vary.yaml", &file).read(&variable).unwrap_err();
        let said = format!("{mistakes} {mistakes:?}");
        assert!(
            said.contains(
                "`auth.keys[0].sha256` cannot be used: it is a key, and not the digest of one"
            ),
            "{said}"
        );
        assert!(
            !said.contains(&text) && !said.contains(&text[5..20]),
            "{said}"
        );
    }
}

#[test]
fn a_key_whose_last_day_is_past_or_near_is_a_note() {
    let (_, digest) = key(1);
    let text =
        format!("{SERVER}auth: {{keys: [{{name: a, sha256: {digest}, expires: 2026-11-21}}]}}\n");
    assert_eq!(notes_on("2026-11-06", &text), [""; 0]);
    let fix = "make another with `vary key new a`, and remove this one";
    let near = "is near: the key of `a` is refused after 2026-11-21";
    let past = "is past: the key of `a` is refused since the end of 2026-11-21";
    for (today, what) in [
        ("2026-11-07", near),
        ("2026-11-21", near),
        ("2026-11-22", past),
    ] {
        let note = format!("2:108: `auth.keys[0].expires` {what}; {fix}");
        assert_eq!(notes_on(today, &text), [note], "{today}");
    }
}

#[test]
fn every_mistake_of_an_issuer_is_at_its_place() {
    refuses_lines(
        "public-url: https://mcp.example
auth:
  issuers:
    - {issuer: https://a.example}
    - {issuer: https://a.example, audiences: [x]}
    - {issuer: http://idp.example}
    - {audiences: [x]}
    - {issuer: https://b.example, audiences: ['']}
    - {issuer: https://c.example, scopes: [a b, offline_access]}
    - {issuer: https://d.example, scope-claims: [a..b]}
    - {issuer: https://e.example, claims: {scope: scp}}
    - {issuer: https://f.example, claims: {groups: https://acme.example/groups}}
    - {issuer: https://g.example, jwks: http://keys.example/jwks}
    - {issuer: https://h.example, audience: x}
",
        "6:7: `auth.issuers[1]` has the issuer of line 5; put its audiences and scopes into one entry\n\
         7:16: `auth.issuers[2].issuer` cannot be used: the URL does not start with `https://`; `http://` is for loopback addresses only\n\
         8:7: `auth.issuers[3]` has no `issuer`; add `issuer: https://...`, exactly as its tokens have it in `iss`\n\
         9:47: `auth.issuers[4].audiences[0]` cannot be used: it is empty; write what the tokens of this issuer have in `aud`, or leave it out\n\
         10:44: `auth.issuers[5].scopes[0]` cannot be used: a scope is 1 to 256 visible ASCII characters without spaces, quotation marks and backslashes\n\
         10:49: `auth.issuers[5].scopes[1]` cannot be used: `offline_access` is not a scope of a resource; leave it out\n\
         11:50: `auth.issuers[6].scope-claims[0]` cannot be used: the place of a claim `a..b` has an empty name; write `\\.` for a dot in a name\n\
         12:51: `auth.issuers[7].claims.scope` cannot be used: `scope` cannot be mapped as a claim; name its places under `scope-claims`\n\
         13:52: `auth.issuers[8].claims.groups` cannot be used: the place of a claim `https://acme.example/groups` looks like one name with dots in it; write `https://acme\\.example/groups`\n\
         14:41: `auth.issuers[9].jwks` cannot be used: the URL does not start with `https://`; `http://` is for loopback addresses only\n\
         15:35: `auth.issuers[10].audience` is not a known key; did you mean `audiences`?",
    );
}

#[test]
fn a_list_that_is_too_long_is_refused_as_a_whole() {
    let issuers: String = (0..65)
        .map(|at| format!("{{issuer: https://i{at}.example}}, "))
        .collect();
    refuses_lines(
        &format!("public-url: https://mcp.example\nauth: {{issuers: [{issuers}]}}\n"),
        "3:17: `auth.issuers` has 65 entries; 64 is the most",
    );
    let scopes = ["s"; 65].join(", ");
    refuses_lines(
        &format!(
            "public-url: https://mcp.example\nauth: {{issuers: [{{issuer: https://a.example, scopes: [{scopes}]}}]}}\n"
        ),
        "3:54: `auth.issuers[0].scopes` has 65 entries; 64 is the most",
    );
}

#[test]
fn a_section_that_accepts_nobody_is_refused() {
    let said =
        "2:7: `auth` accepts nobody; add `keys` or `issuers`; `vary key new NAME` makes a key";
    refuses_lines("auth: {}\n", said);
    refuses_lines("auth: {keys: []}\n", said);
    authentication("auth: {anonymous: on}\n");
}

#[test]
fn the_client_on_standard_input_is_who_the_file_says() {
    let principal = config_of("stdio-principal: {name: ann, claims: {groups: [sre], level: 3}}\n")
        .stdio_principal
        .unwrap();
    assert_eq!(principal.kind(), PrincipalKind::Stdio);
    assert!(
        principal
            .claims()
            .get("groups")
            .is_some_and(|it| it.texts().eq(["sre"]))
    );
    refuses_lines(
        "stdio-principal: {claims: {a: 1}}\n",
        "2:18: `stdio-principal` has no `name`; add `name: ...`",
    );
    refuses_lines(
        "stdio-principal: {name: \"a\\nb\"}\n",
        "2:25: `stdio-principal.name` cannot be used: the name of the principal contains a control character",
    );
    refuses_lines(
        "stdio-principal: {name: a, claims: {deep: [[[[[[[[[1]]]]]]]]]}}\n",
        "2:36: `stdio-principal.claims` cannot be used: the claims nest deeper than 8 levels",
    );
}
