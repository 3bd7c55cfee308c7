//! What is sent with every request, redirects and cookies.

use super::*;

/// The address of a redirect, of the host of the server.
type Location = fn(&str) -> String;

const VARY: &str = concat!("vary/", env!("CARGO_PKG_VERSION"));

/// Calls once on a connection with these headers, and closes it after so many requests for its stream.
async fn call_once(
    peer: &ScriptedServer,
    configured: &[(&'static str, &'static str)],
    streams: usize,
) {
    let mut config = config(peer);
    if let Target::Http { headers, .. } = &mut config.target {
        for (name, value) in configured {
            headers.insert(*name, HeaderValue::from_static(value));
        }
    }
    let upstream = UpstreamConnection::connect(config).await.unwrap();
    result(&upstream, "x").await.unwrap();
    peer.wait_for("GET", streams).await;
    upstream.close().await;
}

#[tokio::test]
async fn every_request_names_vary_and_wants_no_compression_unless_something_else_is_configured() {
    let configured = [("user-agent", "mine/1"), ("accept-encoding", "gzip")];
    for (headers, name, encoding) in [
        (&[][..], VARY, "identity"),
        (&configured[..], "mine/1", "gzip"),
    ] {
        let peer = ScriptedServer::start(|_| None).await;
        call_once(&peer, headers, 1).await;
        let verbs: Vec<_> = peer.received().into_iter().map(|seen| seen.verb).collect();
        assert!(verbs.contains(&"DELETE".to_owned()), "{verbs:?}");
        for seen in peer.received() {
            let sent = (seen.header("user-agent"), seen.header("accept-encoding"));
            assert_eq!(sent, (Some(name), Some(encoding)), "{}", seen.method());
        }
    }
}

#[tokio::test]
async fn redirects_within_the_origin_that_keep_the_method_are_followed() {
    let locations: [Location; 5] = [
        |_| "/mcp/".to_owned(),
        |_| "api/v2?key=1".to_owned(),
        |_| "?key=1".to_owned(),
        |host| format!("http://{host}/mcp/"),
        |host| format!("//{host}/other"),
    ];
    for (status, location) in [307, 308]
        .into_iter()
        .flat_map(|it| locations.map(|to| (it, to)))
    {
        let peer = ScriptedServer::start(move |seen| {
            let location = location(seen.header("host").unwrap());
            let redirect = Reply::new(status, "text/plain", "").with_header("location", location);
            (seen.path == "/mcp").then_some(redirect)
        })
        .await;
        call_once(&peer, &[("authorization", "Bearer secret")], 2).await;
        let (first, second): (Vec<_>, Vec<_>) = peer
            .received()
            .into_iter()
            .partition(|seen| seen.path == "/mcp");
        let sent = |seen: &ReceivedRequest| (seen.verb.clone(), seen.text.clone());
        for method in [
            "initialize",
            "notifications/initialized",
            "tools/call",
            "GET",
            "DELETE",
        ] {
            let of = |all: &[ReceivedRequest]| {
                let found = all.iter().find(|seen| seen.method() == method);
                found.map(sent)
            };
            assert!(of(&first).is_some(), "{status} {method}");
            assert_eq!(of(&first), of(&second), "{status} {method}");
        }
        for seen in second {
            assert_eq!(seen.header("authorization"), Some("Bearer secret"));
        }
    }
}

#[tokio::test]
async fn no_other_redirect_is_followed_and_none_for_ever() {
    let cases: [(u16, Location); 8] = [
        (307, |_| "http://127.0.0.1:1/mcp".to_owned()),
        (308, |_| "https://example.org/mcp".to_owned()),
        (308, |host| format!("https://{host}/mcp/")),
        (307, |host| format!("http://me:secret@{host}/mcp/")),
        (301, |_| "/mcp/".to_owned()),
        (302, |_| "/mcp/".to_owned()),
        (303, |_| "/mcp/".to_owned()),
        (308, |_| "/mcp".to_owned()),
    ];
    for (status, location) in cases {
        let peer = legacy(move |seen| {
            let location = location(seen.header("host").unwrap());
            Reply::new(status, "text/plain", "").with_header("location", location)
        })
        .await;
        let error = result(&connect(&peer).await, "x").await.unwrap_err();
        says(&error, &["`remote`", &status.to_string(), "not followed"]);
        assert!(!error.contains("secret"), "{error}");
        let calls = peer.of("tools/call");
        assert!(calls.len() <= 4, "{status}: {}", calls.len());
        assert!(calls.iter().all(|seen| seen.path == "/mcp"), "{status}");
    }
}

/// Two replicas behind a balancer that sends each request without its cookie to the next one.
async fn replicas(cookie: &'static str, attributes: &'static str) -> ScriptedServer {
    let turns = AtomicUsize::new(0);
    ScriptedServer::start(move |seen| {
        let sent = seen.header("cookie").unwrap_or_default();
        let sent = sent.split("; ").find_map(|pair| pair.strip_prefix(cookie));
        let replica = sent.and_then(|value| value.strip_prefix('='));
        let replica = replica.map_or_else(
            || turns.fetch_add(1, Ordering::SeqCst).to_string(),
            str::to_owned,
        );
        let reply = match seen.method() {
            "server/discover" => seen.refuse(400, -32601, "no"),
            "initialize" => initialize(seen, &replica),
            _ if seen.header("mcp-session-id") != Some(&*replica) => {
                Reply::new(404, "text/plain", "no such session")
            }
            "GET" => Reply::new(405, "text/plain", ""),
            _ if seen.id().is_null() => Reply::new(202, "text/plain", ""),
            _ => seen.answer(&json!({})),
        };
        Some(reply.with_header("set-cookie", format!("{cookie}={replica}{attributes}")))
    })
    .await
}

#[tokio::test]
async fn the_cookie_of_a_balancer_comes_back_with_every_request_of_its_connection() {
    for (cookie, attributes) in [
        ("AWSALB", "; Expires=Sat, 05 Dec 2099 04:00:00 GMT; Path=/"),
        (
            "ARRAffinity",
            ";Path=/;HttpOnly;Secure;Domain=other.example;SameSite=None",
        ),
        ("SERVERID", "; path=/mcp"),
        ("route", "; Max-Age=172800"),
    ] {
        let peer = replicas(cookie, attributes).await;
        call_once(&peer, &[("cookie", "mine=1")], 1).await;
        assert_eq!(peer.of("initialize").len(), 1, "{cookie}");
        let received = peer.received();
        for seen in received.iter().skip(1) {
            let expected = format!("mine=1; {cookie}=0");
            assert_eq!(seen.header("cookie"), Some(&*expected), "{}", seen.method());
        }
        let other = connect(&peer).await;
        let first = &peer.of("server/discover")[1];
        assert_eq!(first.header("cookie"), None, "of another connection");
        other.close().await;
    }
}

#[tokio::test]
async fn a_cookie_that_is_deleted_or_for_another_path_does_not_come_back() {
    for set in [
        "a=1; Path=/api",
        "a=1; Path=/mc",
        "a=; Max-Age=0",
        "a=x; max-age=-1; expires=Sat, 05 Dec 2099 04:00:00 GMT",
        "a=x; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "a=x; Expires=Thu, 01-Jan-1970 00:00:10 GMT",
        "a=x; Expires=Wed, 21 Oct 2015 07:28:00 GMT",
        "=x",
        "x",
    ] {
        let peer = ScriptedServer::start(move |seen| match seen.method() {
            "server/discover" => Some(
                seen.refuse(400, -32601, "no")
                    .with_header("set-cookie", "a=0"),
            ),
            "initialize" => Some(
                initialize(seen, "s-1")
                    .with_header("date", "Sun, 29 Nov 2026 08:30:00 GMT")
                    .with_header("set-cookie", set),
            ),
            _ => None,
        })
        .await;
        call_once(&peer, &[], 1).await;
        let before = peer.of("initialize")[0].header("cookie").map(str::to_owned);
        assert_eq!(before.as_deref(), Some("a=0"), "{set}");
        let deleting = ["1970", "2015", "max-age"];
        let is_replaced = deleting.iter().any(|it| set.to_lowercase().contains(it));
        let expected = (!is_replaced).then_some("a=0");
        let call = &peer.of("tools/call")[0];
        assert_eq!(call.header("cookie"), expected, "{set}");
    }
}

#[tokio::test]
async fn cookies_are_bounded_and_shown_in_no_error() {
    let sent = AtomicUsize::new(0);
    let peer = legacy(move |seen| {
        let number = sent.fetch_add(1, Ordering::SeqCst);
        let cookie = format!("c{number}=SECRET-VALUE-{number}-{}", "x".repeat(300));
        let shown = seen.header("cookie").unwrap_or_default().to_owned();
        let excerpt: String = shown.chars().rev().take(330).collect();
        let excerpt: String = excerpt.chars().rev().collect();
        Reply::new(500, "text/plain", excerpt).with_header("set-cookie", cookie)
    })
    .await;
    let upstream = connect(&peer).await;
    for _ in 0..40 {
        let error = result(&upstream, "x").await.unwrap_err();
        assert!(!error.contains("SECRET-VALUE"), "{error}");
    }
    let last = peer.of("tools/call").pop().unwrap();
    let cookies = last.header("cookie").unwrap();
    assert!(cookies.starts_with("c0=SECRET-VALUE-0-"), "{cookies}");
    assert!((7_000..9_000).contains(&cookies.len()), "{}", cookies.len());
}

#[tokio::test]
async fn a_configured_cookie_wins_over_one_of_the_server_with_its_name() {
    let peer = ScriptedServer::start(|seen| {
        let reply = (seen.method() == "initialize").then(|| initialize(seen, "s-1"));
        reply.map(|reply| reply.with_header("set-cookie", "session=theirs"))
    })
    .await;
    call_once(&peer, &[("cookie", "session=mine")], 1).await;
    let call = &peer.of("tools/call")[0];
    assert_eq!(call.header("cookie"), Some("session=mine"));
}
