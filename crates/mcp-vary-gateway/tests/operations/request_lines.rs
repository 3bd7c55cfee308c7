//! The line in the log about each request that a server worked on, or that was refused.

use mcp_vary::text::is_invisible;

use crate::support::*;

const TARGET: &str = "mcp_vary_gateway::requests";

/// `params`, from a modern client that calls itself `name`.
fn named(name: &str, mut params: Value) -> Value {
    let info = json!({"name": name, "version": "1"});
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = info;
    params
}

/// The only line since the last call.
async fn line(log: &CapturedLog) -> String {
    let lines = until_some(async || {
        let lines = log.take();
        (!lines.is_empty()).then_some(lines)
    })
    .await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.concat()
}

#[track_caller]
fn has(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "{part} in {line}");
    }
}

/// The number in the field `name`.
#[track_caller]
fn number(line: &str, name: &str) -> f64 {
    let (_, remaining) = line.split_once(&format!(" {name}=")).unwrap();
    remaining.split_once(';').unwrap().0.parse().unwrap()
}

/// SV-22: the line has the variant of the request.
#[tokio::test]
async fn a_request_is_one_line_with_its_outcome() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::before(era, |config| config).await;
        for kind in ClientKind::ALL {
            for (name, outcome) in [
                ("odd", r#"outcome="ok"; bytes_in"#),
                ("fail", r#"outcome="isError"; bytes_in"#),
                ("refuse", r#"outcome="error"; code=-32602; bytes_in"#),
            ] {
                let (log, _listening) = CapturedLog::listen(TARGET, Level::INFO);
                let params = under("standard", named("test", tool(name)));
                let answer = kind.text(&harness, &json!({}), "tools/call", params).await;
                let line = line(&log).await;
                let tool = format!(r#"tool="{name}";"#);
                let start = r#"INFO request finished; method="tools/call"; client="test/1";"#;
                has(&line, &[start, r#"variant="standard"; server="peer";"#]);
                has(&line, &[&tool, outcome]);
                let parts = number(&line, "waited_ms") + number(&line, "upstream_ms");
                assert!((0.0..=number(&line, "ms")).contains(&parts), "{line}");
                assert!(number(&line, "bytes_in") > 50.0, "{line}");
                let out = number(&line, "bytes_out") - answer.len() as f64;
                assert!(out.abs() < 2.0, "{line}: {answer}");
            }
        }
    }
}

#[tokio::test]
async fn what_the_request_is_about_has_a_field_for_its_kind() {
    let harness = Harness::start().await;
    for [method, params, part] in rows(
        r#"
        tools/call     | {"name": "odd"}       | tool="odd";
        resources/read | {"uri": "place:spot"} | resource="place:spot";
        prompts/get    | {"name": "greet"}     | prompt="greet";
    "#,
    ) {
        let (log, _listening) = CapturedLog::listen(TARGET, Level::INFO);
        harness.ask_modern(method, cell(params)).await;
        has(&line(&log).await, &[&format!("method=\"{method}\""), part]);
    }
}

/// A cancelled request has no response, so its line has no size.
#[tokio::test]
async fn a_request_that_is_cancelled_is_a_line() {
    let harness = Harness::start().await;
    let (log, _listening) = CapturedLog::listen(TARGET, Level::INFO);
    drop(harness.unanswered(1).await);
    let disconnected = line(&log).await;

    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let call = client.post(&request(json!(1), "tools/call", tool("wait")));
    client.http.send(&call.bytes()).await;
    harness.peer.wait_for("tools/call", 2).await;
    let cancel = notification("notifications/cancelled", json!({"requestId": 1}));
    harness.connect().await.ask(&client.post(&cancel)).await;
    for line in [disconnected, line(&log).await] {
        has(&line, &[r#"tool="wait";"#]);
        has(&line, &[r#"outcome="cancelled"; bytes_in"#]);
        assert!(!line.contains("bytes_out"), "{line}");
    }
}

#[tokio::test]
async fn a_list_that_the_gateway_answers_is_no_line() {
    let harness = Harness::start().await;
    let (log, _listening) = CapturedLog::listen(TARGET, Level::INFO);
    for kind in ClientKind::ALL {
        harness.ask(kind, "tools/list", json!({})).await;
    }
    assert_eq!(log.take(), [""; 0]);
}

/// SV-22: a refused selection has a line, too. No server worked on a refused request, so its line names none.
#[tokio::test]
async fn a_request_that_is_refused_is_one_line_and_counted() {
    let harness = Harness::start().await;
    let prompt = json!({"name": "none"});
    let cases = [
        ("tools/call", tool("none"), r#"tool="none";"#),
        ("prompts/get", prompt, r#"prompt="none";"#),
        ("tools/call", under("none", tool("odd")), r#"tool="odd";"#),
    ];
    for (method, params, about) in cases {
        for kind in ClientKind::ALL {
            let (log, _listening) = CapturedLog::listen(TARGET, Level::INFO);
            harness.ask(kind, method, params.clone()).await;
            let line = line(&log).await;
            has(&line, &[about, r#"code=-32"#]);
            assert!(!line.contains("server="), "{line}");
            let is_refused =
                line.contains(r#"outcome="error""#) || line.contains(r#"outcome="denied""#);
            assert!(is_refused, "{line}");
        }
    }
    let counters = harness.gateway.status().counters;
    let kinds = ClientKind::ALL.len() as u64;
    for kind in ["tools", "prompts", "variants"] {
        let found = counters.get(&*format!("refused-unknown-{kind}"));
        assert_eq!(found, Some(&kinds), "{kind}: {counters:?}");
    }
}

#[tokio::test]
async fn a_client_cannot_fill_the_log_or_drive_the_terminal_by_the_name_of_a_tool() {
    let harness = Harness::start().await;
    let (log, _listening) = CapturedLog::listen(TARGET, Level::INFO);
    let name = format!("a\u{1b}[2J\n\u{202e}{}", "b".repeat(50_000));
    let kind = ClientKind::StdioModern;
    harness.ask(kind, "tools/call", tool(&name)).await;
    let line = line(&log).await;
    assert!(!line.chars().any(is_invisible), "{line:?}");
    assert!(line.len() < 3_000, "{}", line.len());
    has(&line, &[r#"tool="a"#, r#"outcome="error""#]);
}

#[tokio::test]
async fn nothing_is_written_at_the_level_warn() {
    let harness = Harness::start().await;
    let (log, _listening) = CapturedLog::listen("", Level::WARN);
    for kind in ClientKind::ALL {
        for name in ["odd", "fail", "refuse"] {
            harness.ask(kind, "tools/call", tool(name)).await;
        }
    }
    assert_eq!(log.take(), [""; 0]);
}

/// Arguments and results may be secret, and so may parts of a URI.
#[tokio::test]
async fn arguments_results_and_queries_of_uris_are_not_in_the_line() {
    let harness = Harness::start().await;
    let (log, _listening) = CapturedLog::listen(TARGET, Level::INFO);
    let call = json!({"name": "say", "arguments": {"token": "ARGUMENT_SECRET"}});
    let read = json!({"uri": "place://user:USER_SECRET@spot/?key=QUERY_SECRET"});
    for kind in ClientKind::ALL {
        for (method, params) in [("tools/call", &call), ("resources/read", &read)] {
            harness.ask(kind, method, params.clone()).await;
            for line in log.take() {
                assert!(!line.contains("SECRET"), "{line}");
            }
        }
    }
}

#[tokio::test]
async fn a_client_cannot_drive_the_terminal_by_its_name() {
    let harness = Harness::start().await;
    let (log, _listening) = CapturedLog::listen(TARGET, Level::INFO);
    let params = named("a\u{1b}[2J\n\u{202e}b", tool("odd"));
    harness.ask_modern("tools/call", params).await;
    let line = line(&log).await;
    assert!(!line.chars().any(is_invisible), "{line:?}");
    has(&line, &[r#"client="a"#, r#"b/1";"#]);
}
