//! `headers` with claims, and where a claim cannot be.

use http::{HeaderName, HeaderValue};
use mcp_vary_upstream::{ClaimProblem, UpstreamConfig};

use super::*;

const STDIO: &str = "stdio-principal: {name: ann, claims: {email: ann@example.com}}\n";

/// The server of a file with these headers and a principal on standard input.
fn server(headers: &str) -> UpstreamConfig {
    let text = format!("{STDIO}servers: {{a: {{url: 'http://x/', headers: {headers}}}}}");
    read("vary.yaml", &text).servers.remove(0)
}

/// The values of headers with claims, for a user whose every claim is `x`.
#[track_caller]
fn renders(headers: &str, expected: &[(&str, &str)]) {
    let server = server(headers);
    let rendered: Vec<(HeaderName, HeaderValue)> = server
        .claim_headers
        .iter()
        .map(|(name, template)| (name.clone(), template.render(|_| Ok("x".into())).unwrap()))
        .collect();
    let shown: Vec<_> = rendered
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    assert_eq!(shown, expected);
}

/// Checks what is wrong with headers, which begin at 2:42.
#[track_caller]
fn refuses_headers(headers: &str, expected: &str) {
    let text = format!("{STDIO}servers: {{a: {{url: 'http://x/', headers: {headers}}}}}");
    refuses("vary.yaml", &text, expected);
}

#[test]
fn headers_with_claims_are_templates_beside_fixed_ones() {
    renders(
        "{X-User: '${claims.email}', X-Key: 'k-${SECRET}', X-Both: 'a ${claims.a}-${claims.https://b.example/c}${SECRET}'}",
        &[("x-user", "x"), ("x-both", "a x-xs3cret")],
    );
    let server = server("{X-User: '${claims.email}', X-Key: 'k-${SECRET}'}");
    assert!(server.needs_claims());
    assert_eq!(server.limits.connections, 256, "one for each user");
    let Target::Http { headers, .. } = &server.target else {
        panic!("no URL");
    };
    assert_eq!(headers.len(), 1);
    assert_eq!(headers["x-key"], "k-s3cret");
    assert!(!format!("{server:?}").contains(SECRET));
    let fault = server.claim_headers[0]
        .1
        .render(|_| Err(ClaimProblem::Absent));
    assert_eq!(fault.unwrap_err().claim(), "email");
    // A number of connections that is written holds.
    let text = format!(
        "{STDIO}servers: {{a: {{url: 'http://x/', connections: 8, headers: {{X: '${{claims.a}}'}}}}}}"
    );
    assert_eq!(read("vary.yaml", &text).servers[0].limits.connections, 8);
}

#[test]
fn a_claim_that_cannot_be_a_header_is_a_mistake() {
    let fix = "choose another name, such as `X-User`";
    for name in [
        "Host",
        "content-length",
        "Mcp-Session-Id",
        "Connection",
        "MCP-Anything",
    ] {
        let said = format!(
            "2:{}: `servers.a.headers.{name}` is a header by which HTTP or MCP work, so it cannot have claims; {fix}",
            45 + name.len()
        );
        refuses_headers(&format!("{{{name}: '${{claims.a}}'}}"), &said);
    }
    refuses_headers(
        "{X: '${claims.scope}'}",
        "2:46: `servers.a.headers.X` has the claim `scope`, which is a list; a header takes one value; choose another claim",
    );
    for text in ["ä${claims.a}", " ${claims.a}", "${claims.a} "] {
        refuses_headers(
            &format!("{{X: '{text}'}}"),
            "2:46: `servers.a.headers.X` has characters that are not sent beside claims; write visible ASCII, with spaces \
               only inside, of at most 8 KiB",
        );
    }
    refuses_headers(
        "{X: '${claims.a}', x: b}",
        "2:64: `servers.a.headers.x` is given twice, and one of them has claims; keep one of them: case does not matter in \
           header names",
    );
    refuses_headers(
        "{X: '${claims.a:-b}'}",
        "2:46: `servers.a.headers.X` has a default for a claim, where none is possible; a request without the claim is \
           refused; leave the default out",
    );
}

#[test]
fn a_header_with_a_command_is_a_credential_beside_fixed_ones() {
    let server = server(
        "{Authorization: {command: [gcloud, auth, '${SECRET}'], scheme: Bearer, cache: 10m}, X: a}",
    );
    assert_eq!(server.credentials.len(), 1);
    assert_eq!(server.credentials[0].header, "authorization");
    let identity = server.credentials[0].source.identity();
    assert_eq!(
        identity,
        r#""gcloud" ["auth", "s3cret"] Some("Bearer") 600s 30s"#
    );
    assert!(!format!("{server:?}").contains(SECRET));
    assert!(!server.needs_claims());
}

#[test]
fn a_mistake_in_a_command_is_named() {
    refuses_headers(
        "{X: {command: []}, Y: {scheme: Bearer}, Z: {command: [a], scheme: 'a b', every: 5m}}",
        "2:56: `servers.a.headers.X.command` names no program; write [PROGRAM, ARGUMENT]\n\
         2:64: `servers.a.headers.Y` has no `command`; add `command: [...]`, a program and its arguments\n\
         2:108: `servers.a.headers.Z.scheme` is not an authentication scheme; write it like `Bearer`\n\
         2:115: `servers.a.headers.Z.every` is not a known key; there are `command`, `scheme`, `cache`, `timeout`",
    );
    refuses_headers(
        "{Host: {command: [a]}, X: {command: [a]}, x: b}",
        "2:49: `servers.a.headers.Host` is a header by which HTTP or MCP work, so it cannot have a command; choose \
             another name, such as `X-User`\n\
         2:87: `servers.a.headers.x` is given twice, and one of them has a command; keep one of them: case does not \
             matter in header names",
    );
}

#[test]
fn a_client_certificate_has_a_key_and_a_server_with_tls() {
    let text = "servers: {a: {url: 'https://x/', certificate: '${SECRET}.crt', key: k.pem}}";
    let server = read("vary.yaml", text).servers.remove(0);
    let files = server.client_certificate.unwrap();
    assert_eq!(files.certificate.to_str(), Some("s3cret.crt"));
    assert_eq!(files.key.to_str(), Some("k.pem"));
    for case in [
        "{url: 'https://x/', certificate: a} => \
         has `certificate` without `key`; add `key: ...`, the path of a file in PEM",
        "{url: 'https://x/', key: a} => \
         has `key` without `certificate`; add `certificate: ...`, the path of a file in PEM",
        "{url: 'http://x/', certificate: a, key: b} => \
         has a client certificate, and a `url` without TLS; write `https://`, or remove `certificate` and `key`",
        "{command: x, certificate: a, key: b} => has `certificate`, `key`, of no use beside `command`; leave it out",
    ] {
        let (server, expected) = case.split_once(" => ").unwrap();
        refuses_server(server, &format!("2:6: `servers.a` {expected}"));
    }
}

#[test]
fn claims_are_in_headers_only_and_need_users() {
    let elsewhere =
        "which only `headers` of a server can have; for the characters themselves write `$${`";
    refuses_server(
        "{command: x, args: ['${claims.email}'], env: {U: '${claims.email}'}}",
        &[
            format!("2:26: `servers.a.args[0]` has `${{claims.email}}`, {elsewhere}"),
            format!("2:55: `servers.a.env.U` has `${{claims.email}}`, {elsewhere}"),
        ]
        .join("\n"),
    );
    refuses_server(
        "{url: 'http://x/', headers: {X-User: '${claims.email}'}}",
        "2:34: `servers.a.headers` uses claims, but without authentication no client has any; add `auth`, or `stdio-principal` with \
           `claims`",
    );
    refuses_server(
        "{command: x, headers: {X-User: '${claims.email}'}}",
        "2:6: `servers.a` has `headers`, of no use beside `command`; leave it out",
    );
    let shared = format!(
        "{STDIO}servers: {{a: {{url: 'http://x/', isolation: shared, headers: {{X: '${{claims.a}}'}}}}}}"
    );
    refuses(
        "vary.yaml",
        &shared,
        "2:44: `servers.a.isolation` is `shared`, but `headers` have claims, so that each user has its own connection; \
           write `principal`, or leave it out",
    );
}

/// A claim that no rule names is read from tokens, since a header has it.
#[test]
fn claims_of_headers_are_read_from_tokens() {
    let text = "public-url: https://mcp.example\n\
        servers: {a: {url: 'http://x/', headers: {X-User: '${claims.email}', X-Org: '${claims.org}'}}}\n\
        auth: {issuers: [{issuer: 'https://idp.example', claims: {org: realm.tenant}}]}\n";
    let config = config(&read("vary.yaml", text));
    let authenticator = config.authentication.unwrap().authenticator;
    let mapping = format!("{:?}", authenticator.tokens().unwrap());
    assert!(
        mapping.contains("email") && mapping.contains("realm"),
        "{mapping}"
    );
}
