//! Answers of a process that cannot be read, or that are not quite as they should be.

use std::time::Duration;

use mcp_vary_testkit::wait::soon;
use mcp_vary_upstream::{UpstreamConnection, UpstreamError};
use serde_json::{Value, json};

use crate::stdio::{call, peer, result};
use crate::{all, parse};

/// An answer over several lines.
const SPREAD: &str =
    "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": ID,\n  \"result\": {\n    \"a\": 1\n  }\n}";

/// The outcome of a call whose server writes `line` as its answer: bytes as characters of Latin-1, and `ID` for the id.
async fn outcome_of(upstream: &UpstreamConnection, line: &str) -> Result<Value, String> {
    let exchange = upstream
        .request(call("raw", &json!({"raw": line})))
        .await
        .unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(2), exchange.answer()).await;
    let answer = answer.unwrap_or_else(|_| panic!("no outcome: {line}"));
    let answer = answer.map_err(|error| error.to_string())?;
    let text = answer.outcome().unwrap_or_else(|error| error);
    Ok(parse(text.as_bytes()))
}

/// Why answers to the call `ID` cannot be read, and those.
const UNREADABLE: [(&str, &[&str]); 4] = [
    (
        "it is not JSON: ",
        &[
            r#"{"jsonrpc":"2.0","id":ID,"result":{"x":NaN}}"#,
            r#"{"jsonrpc":"2.0","id":ID,"result":{"x":1,}}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"x\":\"a\tb\"}}",
            "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"x\":\"a\0b\"}}",
            r#"{"result":{"x":[NaN]},"jsonrpc":"2.0","id":"ID"}"#,
            r#"{"jsonrpc":"2.0","id":ID,"result":{"x":"#,
            r#"{"jsonrpc":"2.0","id":ID,"result":{}}{"jsonrpc":"2.0","method":"a"}"#,
            r#"{"jsonrpc":"2.0","method":"a"}{"jsonrpc":"2.0","id":ID,"result":{}}"#,
        ],
    ),
    (
        "it is not UTF-8",
        &[
            "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"x\":\"caf\u{e9}\"}}",
            "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"x\":\"\u{b2}\u{e2}\u{ca}\"}}",
            "{\"result\":{\"x\":\"caf\u{c3}\"},\"id\":ID}",
        ],
    ),
    (
        "it has no `method`, `result` or `error`",
        &[r#"{"jsonrpc":"2.0","id":ID}"#],
    ),
    (
        "its line is not JSON",
        &[r#"Loading... {"jsonrpc":"2.0","id":ID,"result":{}}"#],
    ),
];

#[tokio::test]
async fn an_answer_that_cannot_be_read_fails_its_call_at_once() {
    let upstream = peer("legacy").await;
    let other = call("hold", &json!({"n": 1, "until": 2}));
    let other = upstream.request(other).await.unwrap();
    for (why, lines) in UNREADABLE {
        for line in lines {
            let error = outcome_of(&upstream, line).await.unwrap_err();
            let expected = format!("server `peer` sent an answer that cannot be read: {why}");
            assert!(error.starts_with(&expected), "{line}: {error}");
        }
    }
    result(&upstream, "hold", json!({"n": 2, "until": 2})).await;
    assert_eq!(all(other).await.1, Ok(json!({"n": 1})));
}

#[tokio::test]
async fn an_answer_whose_envelope_cannot_be_read_fails_the_call_in_flight() {
    let upstream = peer("legacy").await;
    let units = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"\",\"result\":{}}".encode_utf16();
    // As characters of Latin-1.
    let wide: String = units.flat_map(u16::to_le_bytes).map(char::from).collect();
    for (line, why) in [
        (
            r#"{"jsonrpc":"2.0","id":"","result":{}}"#,
            r#"its `id` is not one of ours; the line begins `{"jsonrpc":"2.0","id":"","result":{}}`"#,
        ),
        (
            &*wide,
            r#"it is UTF-16, not UTF-8; the line begins `{"jsonrpc":"2.0","id":"","result":{}}`"#,
        ),
        (
            SPREAD,
            r#"it goes over several lines, and a message is one line; the line begins `"result": {`"#,
        ),
    ] {
        let error = outcome_of(&upstream, line).await.unwrap_err();
        let expected = format!("server `peer` sent an answer that cannot be read: {why}");
        assert_eq!(error, expected, "{line}");
    }
    let found = result(&upstream, "echo", json!({})).await;
    assert_eq!(found["echo"], json!({}));
}

#[tokio::test]
async fn the_log_of_an_answer_is_not_the_answer() {
    let upstream = peer("legacy").await;
    let found = result(&upstream, "logged", json!({})).await;
    assert_eq!(found, json!({"content": []}));
    let written = r#"{"level":30,"id":ID,"result":"sent"}"#;
    let both = format!("{written}\n{}", r#"{"id":ID,"result":8}"#);
    assert_eq!(outcome_of(&upstream, &both).await, Ok(json!(8)));
    let spread = format!("{SPREAD}\n{}", r#"{"id":ID,"result":8}"#);
    assert_eq!(outcome_of(&upstream, &spread).await, Ok(json!(8)));
}

#[tokio::test]
async fn a_process_that_ends_while_an_answer_is_in_doubt_fails_its_call() {
    let upstream = peer("legacy").await;
    let doubtful = call("raw", &json!({"raw": SPREAD}));
    let doubtful = upstream.request(doubtful).await.unwrap();
    let dying = upstream.request(call("die", &json!({}))).await.unwrap();
    let error = soon(doubtful.answer()).await.unwrap_err();
    // Half a second of doubt may pass first.
    let is_expected = matches!(
        error,
        UpstreamError::Closed { .. } | UpstreamError::Unreadable { .. }
    );
    assert!(is_expected, "{error}");
    let error = soon(dying.answer()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "server `peer` ended (signal: 9 (SIGKILL))"
    );
}

#[tokio::test]
async fn the_answers_in_one_line_are_not_shown_to_each_other() {
    let upstream = peer("legacy").await;
    let line = r#"{"jsonrpc":"2.0","id":0,"result":{}}{"jsonrpc":"2.0","id":ID,"result":{}}"#;
    let error = outcome_of(&upstream, line).await.unwrap_err();
    assert!(!error.contains("line begins"), "{error}");
}

#[tokio::test]
async fn an_answer_counts_however_its_id_is_written() {
    let upstream = peer("legacy").await;
    for line in [
        r#"{"jsonrpc":"2.0","id":"ID","result":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","id":" ID","result":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","id":ID.0,"result":{"a":1}}"#,
        "\u{ef}\u{bb}\u{bf}{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"a\":1}}",
        r#"{"jsonrpc":"2.0","id":ID,"method":null,"error":null,"result":{"a":1}}"#,
    ] {
        let found = outcome_of(&upstream, line).await;
        assert_eq!(found, Ok(json!({"a": 1})), "{line}");
    }
}

#[tokio::test]
async fn an_error_without_an_id_answers_the_only_call() {
    let upstream = peer("legacy").await;
    let error = json!({"code": -32602, "message": "bad arguments"});
    for id in ["\"id\":null,", ""] {
        let line = format!(r#"{{"jsonrpc":"2.0",{id}"error":{error}}}"#);
        assert_eq!(outcome_of(&upstream, &line).await, Ok(error.clone()));
    }
    let hanging = upstream.request(call("hang", &json!({}))).await.unwrap();
    let line = format!(r#"{{"jsonrpc":"2.0","id":null,"error":{error}}}"#);
    let both = format!("{line}\n{}", r#"{"id":ID,"result":7}"#);
    assert_eq!(outcome_of(&upstream, &both).await, Ok(json!(7)));
    drop(hanging);
    // The error of a notification is not that of a call.
    let refused = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found: notifications/cancelled"}}"#;
    let both = format!("{refused}\n{}", r#"{"id":ID,"result":7}"#);
    assert_eq!(outcome_of(&upstream, &both).await, Ok(json!(7)));
    // A line of a JSON logger is no answer.
    let logged = format!(
        "{}\n{}",
        r#"{"level":50,"error":{"code":1}}"#, r#"{"id":ID,"result":8}"#
    );
    assert_eq!(outcome_of(&upstream, &logged).await, Ok(json!(8)));
}

#[tokio::test]
async fn progress_is_found_by_a_token_that_comes_back_as_a_text() {
    let upstream = peer("legacy").await;
    for written in [
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"7","progress":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7.0,"progress":1}}"#,
        r#"{"id":null,"method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#,
    ] {
        let line = format!("{written}\n{}", r#"{"id":ID,"result":{}}"#);
        let mut request = call("raw", &json!({"raw": line}));
        request.progress_token = Some("7".to_owned());
        let (messages, _) = all(upstream.request(request).await.unwrap()).await;
        let [message] = &messages[..] else {
            panic!("{written}: {messages:?}");
        };
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        assert_eq!(message.get("id"), None, "{message}");
        assert_eq!(message["params"]["progress"], 1);
    }
}
