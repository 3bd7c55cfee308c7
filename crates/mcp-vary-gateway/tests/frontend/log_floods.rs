//! Peers that send without end: little of it is logged, and nothing waits for it.

use crate::support::*;

fn process() -> Config {
    config(of_script("logs.py"))
}

#[tokio::test]
async fn responses_that_nobody_asked_for_are_logged_ever_more_rarely() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({"roots": {}})).await;
    let (log, _listening) = CapturedLog::listen("mcp_vary", Level::WARN);
    for id in 0..100 {
        let stray = json!({"jsonrpc": "2.0", "id": id, "result": {}});
        let post = HttpRequest::of(&client.session, stray.to_string());
        assert_eq!(client.http.ask(&post).await.status, 400);
    }
    let said = log.take();
    assert_eq!(said.len(), 11, "{said:?}");
    assert_eq!(
        said.last().unwrap(),
        "WARN response to a request that this gateway did not send refused; id=63; count=64; "
    );
}

#[tokio::test]
async fn calls_that_fail_one_after_the_other_are_logged_ever_more_rarely() {
    let script = places_server::script(Era::Legacy);
    let script = script.reply("tools/call", |_| Reply::new(401, "text/plain", "no"));
    let harness = Harness::of_server(script).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let (log, _listening) = CapturedLog::listen("mcp_vary", Level::WARN);
    for _ in 0..100 {
        let answer = client.answer("tools/call", tool("say")).await;
        assert!(answer["error"].is_object(), "{answer}");
    }
    let said = log.take();
    let failed = said.iter().filter(|line| line.contains("call failed"));
    assert_eq!(failed.count(), 11, "{said:?}");
}

#[tokio::test]
async fn of_what_a_process_writes_to_standard_error_a_second_has_its_share() {
    let (log, _listening) = CapturedLog::listen("mcp_vary_upstream::stderr", Level::DEBUG);
    let gateway = Gateway::start(process()).await.unwrap();
    let (address, _) = serve(&gateway).await;
    let mut client = LegacyClient::at(address, "2025-11-25", &json!({})).await;
    const LINES: usize = 50_000;
    let mut noise = tool("noise");
    noise["arguments"] = json!({"lines": LINES});
    client.ask("tools/call", noise).await;
    let mut said = Vec::new();
    let mut left_out = 0;
    soon(async {
        while left_out + said.len() < LINES {
            for line in log.take() {
                match line.split_once(" lines left out") {
                    Some((count, _)) => {
                        left_out += count.replace("DEBUG ", "").parse::<usize>().unwrap()
                    }
                    None => said.push(line),
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(left_out + said.len(), LINES);
    assert!(said.len() < LINES / 10, "{} lines were logged", said.len());
    assert_eq!(said[0], "DEBUG noise 0; server=\"peer\"; ");
}

/// What it asks is refused, since the client cannot be asked that; the refusals go nowhere.
#[tokio::test]
async fn a_process_that_asks_without_reading_loses_its_connection() {
    let mut config = process();
    config.servers[0].limits.outbox = 64 << 10;
    let gateway = Gateway::start(config).await.unwrap();
    let (address, _) = serve(&gateway).await;
    let mut client = LegacyClient::at(address, "2025-11-25", &json!({"elicitation": {}})).await;
    let (log, _listening) = CapturedLog::listen("mcp_vary", Level::DEBUG);
    let mut flood = tool("flood");
    flood["arguments"] = json!({"requests": 200_000});
    let answer = soon(client.ask("tools/call", flood)).await.json();
    answer.has("/error/message", "server `peer` broke the protocol");
    let said = log.take().join("");
    assert!(said.contains("has left 64 responses unread"), "{said}");
    let tasks = gateway.status().tasks;
    assert!(tasks < 200, "{tasks} tasks");
    // Another connection is made for the next call.
    let answer = soon(client.ask("tools/call", tool("start"))).await.json();
    assert!(answer["result"].is_object(), "{answer}");
}
