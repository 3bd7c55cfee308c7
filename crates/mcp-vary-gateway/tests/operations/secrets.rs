//! Secrets in a server's configuration reach the server, and neither logs nor clients.

use http::HeaderMap;

use crate::support::*;

const SECRETS: [&str; 5] = [
    "TOPSECRETTOKEN",
    "URLUSERSECRET3",
    "dXNlcjpVUkxVU0VSU0VDUkVUMw==",
    "QUERYSECRET5",
    "HEADERSECRET7",
];

/// Repeats what it was sent, as debugging servers do.
fn echo(seen: &ReceivedRequest, status: u16) -> Reply {
    let headers: Vec<_> = seen
        .headers
        .values()
        .map(|value| value.to_str().unwrap())
        .collect();
    let body = json!({"echo": headers, "url": "/mcp?key=QUERYSECRET5", "user": "URLUSERSECRET3"});
    Reply::json(status, &body)
}

/// The server at a URL with a user and a query; with a token in a header, or with the user as that.
fn target(peer: &ScriptedServer, token: Option<&str>) -> Target {
    let authority = peer.url.authority().unwrap();
    let url = format!("http://user:URLUSERSECRET3@{authority}/mcp?key=QUERYSECRET5");
    let mut headers = HeaderMap::new();
    headers.insert("x-key", "HEADERSECRET7".parse().unwrap());
    if let Some(token) = token {
        headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    let url = url.parse().unwrap();
    Target::Http { url, headers }
}

#[track_caller]
fn holds_no_secret(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[tokio::test]
async fn no_secret_of_a_server_is_logged_or_told_to_a_client() {
    for (token, authorization) in [
        (Some("TOPSECRETTOKEN"), "Bearer TOPSECRETTOKEN"),
        (None, "Basic dXNlcjpVUkxVU0VSU0VDUkVUMw=="),
    ] {
        for status in [200, 400, 401, 403, 500] {
            let (log, _listening) = CapturedLog::listen("", Level::TRACE);
            let script = places_server::script(Era::Legacy);
            let script = script.reply("tools/call", move |seen| echo(seen, status));
            let peer = script.start().await;
            let config = config(target(&peer, token));
            let harness = Harness::behind(peer, config).await;
            for way in ClientKind::ALL {
                let params = tool("say");
                let answer = way.text(&harness, &json!({}), "tools/call", params).await;
                assert!(answer.contains("\"error\""), "{status} {way:?}: {answer}");
                holds_no_secret(&answer);
            }
            let call = &harness.peer.of("tools/call")[0];
            assert_eq!(call.header("authorization"), Some(authorization));
            let said = log.take();
            assert!(said.iter().any(|line| line.contains("***")), "{said:?}");
            let lines = said
                .iter()
                .filter(|line| line.contains(" request finished;"));
            assert_eq!(lines.count(), ClientKind::ALL.len(), "{said:?}");
            said.iter().for_each(|line| holds_no_secret(line));
        }
    }
}

#[tokio::test]
async fn nor_is_one_told_when_the_server_cannot_be_connected_to() {
    for status in [200, 401, 404, 500] {
        let (log, _listening) = CapturedLog::listen("", Level::TRACE);
        let peer = ScriptedServer::start(move |seen| Some(echo(seen, status))).await;
        let error = Gateway::start(config(target(&peer, Some("TOPSECRETTOKEN")))).await;
        holds_no_secret(&error.unwrap_err().to_string());
        log.take().iter().for_each(|line| holds_no_secret(line));
    }
}
