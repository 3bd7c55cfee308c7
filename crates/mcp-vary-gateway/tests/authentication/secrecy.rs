//! Secrets occur nowhere: in no log, status, answer or error, in no `Debug`, and in nothing that servers receive.

use std::fmt::{Debug, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use http::HeaderMap;
use mcp_vary_gateway::settings::authentication::{Authentication, KeySource};

use super::clients::{NOW, Session, bearer, claims, key, tokens_and_keys};
use crate::support::*;

/// What the gateway sends to its server, and to nobody else.
const CLIENT_SECRET: &str = "client-s3cret";

/// The key that seals what clients get.
const SEALING_KEY: [u8; 32] = *b"s3cret-sealing-key-of-32-bytes!!";

/// The subject of all tokens: personal, so that outputs show the id of the principal instead.
const SUBJECT: &str = "s3cret-subject@acme.example";

/// Everything that can be seen of a gateway.
#[derive(Default)]
struct Outputs(String);

impl Outputs {
    fn add(&mut self, value: &impl Debug) {
        writeln!(self.0, "{value:?}\n{value:#?}").unwrap();
    }

    fn add_text(&mut self, text: &str) {
        writeln!(self.0, "{text}").unwrap();
    }

    /// Fails if one of `secrets` is in the outputs.
    #[track_caller]
    fn have_none_of(&self, secrets: &[String]) {
        for secret in secrets {
            let line = self.0.lines().find(|line| line.contains(secret.as_str()));
            assert_eq!(line, None, "`{secret}` is in an output");
        }
    }
}

/// The parts of credentials that must not be seen.
struct Credentials {
    good: Vec<String>,
    bad: Vec<String>,
}

impl Credentials {
    fn of(server: &AuthorizationServer) -> Self {
        let with = |name: &str, value: Value| {
            let mut claims = claims(SUBJECT);
            claims[name] = value;
            claims
        };
        let good = server.sign(claims(SUBJECT));
        let (message, signature) = good.rsplit_once('.').unwrap();
        let bad = vec![
            server.sign(with("exp", json!(NOW - 600))),
            server.sign(with("nbf", json!(NOW + 600))),
            server.sign(with("aud", json!("https://other.example"))),
            server.sign(with("sub", json!(format!("{SUBJECT}\n")))),
            server.sign(with("scope", json!("other"))),
            server.sign_as("unknown", claims(SUBJECT)),
            format!("{message}x.{signature}"),
            format!("{message}.{}", signature.to_uppercase()),
            signature.to_owned(),
            key("eve"),
            key("old"),
            "n0t-a-token-but-s3cret".to_owned(),
        ];
        let good = vec![good, key("ann"), key("bob")];
        Self { good, bad }
    }

    /// What no output contains: the payload and the signature of tokens, the random part of keys, and so on.
    fn secrets(&self) -> Vec<String> {
        let all = self.good.iter().chain(&self.bad);
        let parts = all.flat_map(|text| match text.starts_with("vary_") {
            true => vec![text["vary_".len()..].to_owned()],
            false if text.contains('.') => text.split('.').skip(1).map(str::to_owned).collect(),
            false => vec![text.clone()],
        });
        let hex = SEALING_KEY.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        });
        let sealing = [
            String::from_utf8(SEALING_KEY.into()).unwrap(),
            URL_SAFE_NO_PAD.encode(SEALING_KEY),
            STANDARD_NO_PAD.encode(SEALING_KEY),
            format!("{SEALING_KEY:?}"),
            hex,
        ];
        let texts = [CLIENT_SECRET, SUBJECT, "s3cret"].map(str::to_owned);
        parts.chain(sealing).chain(texts).collect()
    }
}

fn adapted(config: Config, authentication: Authentication) -> Config {
    let mut config = config.with_key(SEALING_KEY);
    config.authentication = Some(authentication);
    config
}

/// The answers to what a client may send with `token`, in both eras.
async fn use_token(harness: &Harness, token: &str, outputs: &mut Outputs) {
    let list = || HttpRequest::modern_request("tools/list", json!({}));
    let line = format!("POST /mcp?access_token={token} HTTP/1.1");
    let mut posts = vec![
        bearer(HttpRequest::initialize(&json!({})), token),
        bearer(HttpRequest::new("{"), token),
        bearer(list(), token).line(&line),
        list().with("Authorization", format!("Basic {token}")),
        bearer(list(), token).with_another("Authorization", format!("Bearer {token}")),
    ];
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", tool("odd")),
        ("tools/call", tool("fail")),
        ("tools/call", tool("nix")),
        ("resources/read", json!({"uri": "nix:nix"})),
        ("nix", json!({})),
    ] {
        posts.push(bearer(HttpRequest::modern_request(method, params), token));
    }
    for post in posts {
        let answer: HttpResponse = harness.connect().await.ask(&post).await;
        outputs.add_text(&answer.text());
        outputs.add(&answer);
    }
}

/// The status that the operator reads.
async fn status(harness: &Harness) -> String {
    let ask = HttpRequest::new("").line("GET /status HTTP/1.1");
    let mut http = RawHttp::connect(harness.operators().await).await;
    let answer = http.ask(&ask).await;
    assert_eq!(answer.status, 200);
    answer.text()
}

/// AU-6. Logins, refusals, calls, a reload and a dead issuer, at the most talkative level of the log.
#[tokio::test]
async fn secrets_occur_nowhere() {
    let (log, _listening) = CapturedLog::listen("", Level::TRACE);
    let mut server = AuthorizationServer::start().await;
    let credentials = Credentials::of(&server);
    let peer = places_server::start(Era::Legacy).await;
    let mut headers = HeaderMap::new();
    headers.insert("x-api-key", CLIENT_SECRET.parse().unwrap());
    let url = peer.url.clone();
    let of_keys = |names: &[&str]| {
        let target = Target::Http {
            url: url.clone(),
            headers: headers.clone(),
        };
        adapted(config(target), tokens_and_keys(&server, names))
    };
    let (before, mut after) = (of_keys(&["ann", "bob", "old"]), of_keys(&["ann", "old"]));
    if let Some(authentication) = &mut after.authentication {
        // The keys move to a place where there are none.
        authentication.key_sources =
            vec![KeySource::Url(format!("{}/none", server.issuer())).into()];
    }
    let mut outputs = Outputs::default();
    outputs.add(&before);
    let harness = Harness::behind(peer, before).await;
    for token in credentials.good.iter().chain(&credentials.bad) {
        use_token(&harness, token, &mut outputs).await;
    }
    for token in &credentials.good {
        let mut session = Session::open(&harness, token, &json!({})).await;
        for method in ["tools/list", "nix"] {
            outputs.add(&session.ask(token, method, json!({})).await);
        }
        // Another's session is as an unknown one.
        outputs.add(&session.ask(&key("eve"), "ping", json!({})).await);
        outputs.add(&session.ask(&credentials.good[1], "ping", json!({})).await);
    }
    outputs.add_text(&status(&harness).await);
    outputs.add(&harness.gateway.reload(after).await);
    server.die().await;
    for token in credentials.good.iter().chain(&credentials.bad) {
        use_token(&harness, token, &mut outputs).await;
    }
    outputs.add_text(&status(&harness).await);
    outputs.add(&harness.gateway);
    let log = log.take();
    // What was tried is in the log, so that the operator can find the reason.
    let events = [
        "credential refused",
        "keys not fetched",
        "configuration reloaded",
    ];
    for logged in events {
        assert!(log.iter().any(|line| line.contains(logged)), "{logged}");
    }
    outputs.add_text(&log.join("\n"));
    outputs.have_none_of(&credentials.secrets());
    server_received_no_secret_of_clients(&harness, &credentials);
}

/// A server gets the secret that the configuration has for it, and nothing of its clients.
#[track_caller]
fn server_received_no_secret_of_clients(harness: &Harness, credentials: &Credentials) {
    let mut received = Outputs::default();
    for request in harness.peer.received() {
        assert_eq!(request.header("x-api-key"), Some(CLIENT_SECRET));
        received.add(&request);
    }
    let of_clients = credentials.secrets().into_iter();
    let of_clients = of_clients.filter(|secret| secret != CLIENT_SECRET && secret != "s3cret");
    received.have_none_of(&of_clients.collect::<Vec<_>>());
}

/// The search finds what it looks for.
#[test]
#[should_panic(expected = "`s3cret` is in an output")]
fn a_secret_in_an_output_is_found() {
    let mut outputs = Outputs::default();
    outputs.add(&"one\n s3cret");
    outputs.have_none_of(&["two".to_owned(), "s3cret".to_owned()]);
}
