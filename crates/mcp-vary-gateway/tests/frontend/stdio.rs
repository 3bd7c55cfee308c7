//! One client on pipes: a message on each line. A bad line does not affect the next one.

use crate::support::*;

async fn goes_on(pipe: &mut StdioPipe, after: &str) {
    let ping = pipe.ask(&request(json!("after"), "ping", json!({}))).await;
    let expected = json!({"jsonrpc": "2.0", "id": "after", "result": {}});
    assert_eq!(ping, expected, "after {after}");
}

/// Messages that are refused, the codes, and the ids of the answers.
const REFUSED: &str = r#"
    garbage                                                            | -32700 | null
    {"jsonrpc":"2.0","id":1,                                           | -32700 | null
    DEEP                                                               | -32700 | null
    7                                                                  | -32600 | null
    {"id":1,"method":"ping"}                                           | -32600 | 1
    {"jsonrpc":"2.0","id":1}                                           | -32600 | 1
    {"jsonrpc":"2.0","id":null,"method":"ping"}                        | -32600 | null
    {"jsonrpc":"2.0","id":1.0,"method":"ping"}                         | -32600 | null
    {"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}              | -32600 | 1
    {"jsonrpc":"2.0","id":1,"method":"ping","params":[]}               | -32602 | 1
    {"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}    | -32602 | 1
    {"jsonrpc":"2.0","id":1,"method":"no/such"}                        | -32601 | 1
    {"jsonrpc":"2.0","id":1,"method":"server/discover"}                | -32601 | 1
"#;

#[tokio::test]
async fn a_bad_line_has_an_error_and_the_next_is_fine() {
    let harness = Harness::start().await;
    let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
    let deep = format!(r#"{{"id":1,"a":{}}}"#, "[".repeat(10_000));
    for [line, code, id] in rows(REFUSED) {
        let line = if line == "DEEP" { &deep } else { line };
        pipe.send(line).await;
        let answer = pipe.receive().await;
        let found = (&answer["error"]["code"], &answer["id"]);
        assert_eq!(found, (&cell(code), &cell(id)), "{line:.80}");
        goes_on(&mut pipe, line).await;
    }
    pipe.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}")
        .await;
    pipe.receive().await.has("/error/code", -32700);
    goes_on(&mut pipe, "no UTF-8").await;
}

/// > The Server MUST NOT reply to a Notification. (JSON-RPC 2.0, section 4.1)
#[tokio::test]
async fn nothing_is_said_to_empty_lines_notifications_and_responses() {
    let harness = Harness::start().await;
    let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
    for line in [
        "",
        "  \t\r",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"no/such","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"no/such","params":{"a":1,"a":2}}"#,
        r#"{"jsonrpc":"2.0","method":"no/such","params":{"_meta":7}}"#,
        r#"{"jsonrpc":"2.0","id":3,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"no"}}"#,
    ] {
        pipe.send(line).await;
        goes_on(&mut pipe, line).await;
    }
}

#[tokio::test]
async fn a_line_over_the_limit_has_an_error_and_the_next_is_fine() {
    let harness = Harness::with(|config| config.with_limits(limits().with_body(1000))).await;
    let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
    for size in [1001, 100_000] {
        pipe.send(vec![b'x'; size]).await;
        let answer = pipe.receive().await;
        answer.has("/error/code", -32600);
        answer.has("/id", Value::Null);
        goes_on(&mut pipe, "a long line").await;
    }
}

#[tokio::test]
async fn ids_are_echoed_as_they_were_written() {
    let harness = Harness::start().await;
    let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
    for id in r#"-1 123456789012345678901234567890 "" "\u00e9🏔\/""#.split(' ') {
        pipe.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#))
            .await;
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert_eq!(pipe.line().await, expected);
    }
}

#[tokio::test]
async fn one_id_is_in_flight_once() {
    let harness = Harness::start().await;
    let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
    pipe.send(request(json!(7), "tools/call", tool("wait")).to_string())
        .await;
    soon(harness.peer.wait_for("tools/call", 1)).await;
    let again = pipe.ask(&request(json!(7), "ping", json!({}))).await;
    again.has("/id", 7);
    again.has("/error/code", -32600);
    goes_on(&mut pipe, "an id twice").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_is_free_when_its_answer_is_there() {
    let harness = Harness::start().await;
    let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
    for (method, params) in [("ping", json!({})), ("tools/call", tool("say"))] {
        for _ in 0..200 {
            let answer = pipe.ask(&request(json!(7), method, params.clone())).await;
            assert_eq!(answer["error"], Value::Null, "{method}");
        }
    }
}

#[tokio::test]
async fn a_client_says_who_it_is_before_it_asks() {
    let harness = Harness::start().await;
    let mut pipe = open_pipe(&harness.gateway);
    goes_on(&mut pipe, "nothing").await;
    for method in ["tools/list", "no/such", "logging/setLevel"] {
        let answer = pipe.ask(&request(json!(1), method, json!({}))).await;
        assert_eq!(answer["error"]["code"], -32602, "{method}");
    }
    let half = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
    let answer = pipe.ask(&request(json!(1), "tools/list", half)).await;
    answer.has("/error/code", -32602);
    let mut unknown = modern(json!(1), "tools/list", json!({}), &json!({}));
    unknown["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let answer = pipe.ask(&unknown).await;
    answer.has("/error/code", -32022);
    answer.has("/error/data/requested", "2099-01-01");
    assert!(answer["error"]["data"]["supported"][1].is_string());
}

/// One process may serve both: a session, and requests that stand for themselves.
#[tokio::test]
async fn both_eras_share_a_connection() {
    let harness = Harness::start().await;
    let mut pipe = open_pipe(&harness.gateway);
    let list = modern(json!(1), "tools/list", json!({}), &json!({}));
    assert_eq!(pipe.ask(&list).await["result"]["resultType"], "complete");
    let answer = pipe.ask(&initialize("2025-11-25", &json!({}))).await;
    answer.has("/result/protocolVersion", "2025-11-25");
    let again = pipe.ask(&initialize("2025-11-25", &json!({}))).await;
    again.has("/error/code", -32600);
    assert_eq!(pipe.ask(&list).await["result"]["ttlMs"], 0);
    let legacy = pipe.ask(&request(json!(2), "tools/list", json!({}))).await;
    assert_eq!(legacy["result"].get("ttlMs"), None);
    for method in ["initialize", "ping", "logging/setLevel"] {
        let message = modern(json!(1), method, json!({}), &json!({}));
        let answer = pipe.ask(&message).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test]
async fn what_is_in_flight_is_answered_after_the_input_ends() {
    let patient = limits().with_drain(Duration::from_secs(20));
    let harness = Harness::with(|config| config.with_limits(patient)).await;
    let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
    for id in 0..20 {
        pipe.send(request(json!(id), "tools/call", tool("odd")).to_string())
            .await;
    }
    let rest = pipe.close().await;
    assert_eq!(rest.len(), 20);
    assert!(rest.iter().all(|line| line.contains("x-unknown")));
}

#[tokio::test]
async fn what_does_not_end_is_cancelled_after_the_input_ends() {
    let harness = Harness::start().await;
    let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
    pipe.send(request(json!(1), "tools/call", tool("wait")).to_string())
        .await;
    soon(harness.peer.wait_for("tools/call", 1)).await;
    assert!(pipe.close().await.is_empty());
    soon(harness.peer.wait_for("notifications/cancelled", 1)).await;
}

/// A client that writes and never reads cannot keep the gateway from ending.
#[tokio::test]
async fn a_client_that_does_not_read_does_not_hold_up_the_end() {
    let many = limits().with_in_flight(1000);
    let harness = Harness::with(|config| config.with_limits(many)).await;
    let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
    let arguments = json!({"x": "y".repeat(4000)});
    for id in 0..400 {
        let params = json!({"name": "say", "arguments": arguments});
        pipe.send(request(json!(id), "tools/call", params).to_string())
            .await;
    }
    // The answers are far more than the pipe holds.
    soon(harness.peer.wait_for("tools/call", 400)).await;
    pipe.stop.cancel();
    let served = soon(&mut pipe.served).await.unwrap();
    assert_eq!(served.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
}

/// > Messages are delimited by newlines, and MUST NOT contain embedded newlines. (MCP, transports/stdio)
#[tokio::test]
async fn a_message_is_one_line_however_the_server_wrote_it() {
    let harness = Harness::start().await;
    let expected = json!({"content": [], "text": "a\nb"});
    for way in ClientKind::ALL {
        let answer = harness.ask(way, "tools/call", tool("pretty")).await;
        let mut result = answer["result"].as_object().unwrap().clone();
        result.remove("resultType");
        assert_eq!(Value::from(result), expected, "{way:?}");
    }
}
