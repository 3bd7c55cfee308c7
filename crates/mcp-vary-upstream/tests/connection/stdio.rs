//! The gateway as a client of processes, against a scripted peer.

use std::sync::Arc;
use std::time::Duration;

#[cfg(target_os = "linux")]
use mcp_vary_testkit::process::{is_alive, is_gone};
use mcp_vary_testkit::wait::soon;
use mcp_vary_upstream::{
    CallerId, Event, Exchange, Limits, Message, Request, ServerRequest, Target, UpstreamConfig,
    UpstreamConnection, UpstreamError,
};
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::revision::Revision;
use serde_json::{Value, json};

use crate::{all, fails, parse, says};

fn config(temper: &str) -> UpstreamConfig {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/peer.py");
    let args = [script, temper].map(str::to_owned);
    let mut limits = Limits::default();
    if matches!(
        temper,
        "silent"
            | "late"
            | "late-forgetful"
            | "mute"
            | "garbage"
            | "slow-modern"
            | "slow-dual"
            | "slower-dual"
            | "unset"
    ) {
        // Only these do not answer it, so that a slow start of the others changes nothing.
        limits.probe = Duration::from_millis(400);
    }
    limits.message = 1 << 20;
    UpstreamConfig::new("peer", Target::command("python3", args)).with_limits(limits)
}

pub(crate) async fn peer(temper: &str) -> Arc<UpstreamConnection> {
    UpstreamConnection::connect(config(temper)).await.unwrap()
}

pub(crate) fn call(name: &str, arguments: &Value) -> Request {
    let params = json!({"name": name, "arguments": arguments});
    Request::new("tools/call", Some(params.to_string()))
}

pub(crate) async fn result(upstream: &UpstreamConnection, name: &str, arguments: Value) -> Value {
    let exchange = upstream.request(call(name, &arguments)).await.unwrap();
    let answer = exchange.answer().await.unwrap();
    parse(answer.outcome().unwrap().as_bytes())
}

async fn speaks(temper: &str, revision: Revision) {
    let upstream = peer(temper).await;
    assert_eq!(upstream.handshake().revision, revision, "{temper}");
    let found = result(&upstream, "echo", json!({"a": 1})).await;
    assert_eq!(found["echo"], json!({"a": 1}));
    upstream.close().await;
}

#[tokio::test]
async fn the_era_is_found_out_whatever_the_server_does_with_unknown_methods() {
    for temper in [
        "legacy",
        "picky",
        "silent",
        "dies",
        "unreadable",
        "anonymous",
        "marked",
    ] {
        speaks(temper, Revision::V2025_11_25).await;
    }
    for temper in ["modern", "dual", "late"] {
        speaks(temper, Revision::V2026_07_28).await;
    }
    speaks("older", Revision::V2025_03_26).await;
}

#[tokio::test]
async fn a_server_that_refuses_the_revision_it_names_is_asked_once_more() {
    for temper in ["forgetful", "late-forgetful"] {
        speaks(temper, Revision::V2026_07_28).await;
    }
    let adamant = fails(config("adamant")).await;
    says(&adamant, &["`peer`", "refused `server/discover`", "-32022"]);
}

#[tokio::test]
async fn every_legacy_revision_is_accepted() {
    for revision in Revision::ALL
        .into_iter()
        .filter(|revision| revision.era() == Era::Legacy)
    {
        let mut config = config("legacy");
        if let Target::Command { env, .. } = &mut config.target {
            env.insert("REVISION".to_owned(), revision.to_string());
        }
        let upstream = UpstreamConnection::connect(config).await.unwrap();
        assert_eq!(upstream.handshake().revision, revision);
    }
}

#[tokio::test]
async fn the_handshake_is_as_specified_and_its_answer_kept_as_written() {
    let upstream = peer("legacy").await;
    let hello = upstream.handshake();
    assert_eq!(hello.instructions.as_deref(), Some(r#""Be kind.""#));
    assert_eq!(
        hello.server_info.as_deref(),
        Some(r#"{"name": "peer", "version": "1.10"}"#)
    );
    assert!(hello.has_capability_flag("tools", "listChanged"));
    assert!(upstream.client_meta().is_empty());
    let seen = result(&upstream, "seen", json!({})).await;
    let methods: Vec<_> = seen["seen"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["method"].as_str().unwrap())
        .collect();
    let expected = [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "ping",
        "tools/call",
    ];
    assert_eq!(methods, expected);
    let initialize = &seen["seen"][1]["params"];
    assert_eq!(initialize["capabilities"], json!({}));
    assert_eq!(initialize["clientInfo"]["name"], "vary");
}

#[tokio::test]
async fn configured_capabilities_are_declared_in_both_eras() {
    let told = r#"{"extensions":{"com.example/x":{}}}"#;
    let upstream = UpstreamConnection::connect(config("legacy").with_capabilities(told))
        .await
        .unwrap();
    let seen = result(&upstream, "seen", json!({})).await;
    assert_eq!(
        seen["seen"][1]["params"]["capabilities"],
        parse(told.as_bytes())
    );
    let upstream = UpstreamConnection::connect(config("modern").with_capabilities(told))
        .await
        .unwrap();
    let meta = upstream.client_meta();
    assert!(meta.contains(&(
        "io.modelcontextprotocol/clientCapabilities",
        told.to_owned()
    )));
}

#[tokio::test]
async fn a_bad_handshake_says_which_server_what_it_said_and_what_to_do() {
    let future = fails(config("future")).await;
    says(&future, &["`peer`", "2099-01-01", "2026-07-28"]);
    let hollow = fails(config("hollow")).await;
    says(
        &hollow,
        &["`peer`", "`protocolVersion` is missing", "check that"],
    );
    let string = fails(config("string")).await;
    says(&string, &["`peer`", "not an object", r"\u001b[2Jhello"]);
    let unusable = fails(config("unusable")).await;
    says(
        &unusable,
        &["`peer` sent an answer that cannot be read: it is not JSON"],
    );
    let huge = fails(config("huge")).await;
    says(&huge, &["`peer`", "a line of more than 1 MiB"]);
}

#[tokio::test]
async fn a_handshake_without_end_has_an_end() {
    let [mut garbage, mut mute] = ["garbage", "mute"].map(config);
    garbage.limits.handshake = Duration::from_secs(5);
    mute.limits.handshake = Duration::from_secs(1);
    let (garbage, mute) = tokio::join!(fails(garbage), fails(mute));
    says(
        &garbage,
        &["`peer`", "not ready within 5s", "it wrote `what?`"],
    );
    says(
        &mute,
        &["`peer`", "not ready within 1s", "it wrote nothing"],
    );
}

#[tokio::test]
async fn a_server_that_is_not_ready_in_time_is_said_to_have_come_as_far_as_it_did() {
    let answered = "it answered `server/discover`, but not `initialize`; ";
    for (temper, parts) in [
        ("half", [answered, "it wrote nothing to standard error; "]),
        ("half-loud", [answered, "last stderr lines: opening"]),
        (
            "chatty",
            [
                "it sent messages, but answered no request; ",
                "nothing to standard error",
            ],
        ),
        (
            "loud",
            ["it sent no message; ", "last stderr lines: opening"],
        ),
    ] {
        let mut config = config(temper);
        config.limits.handshake = Duration::from_secs(5);
        let error = fails(config).await;
        says(&error, &parts);
        says(
            &error,
            &["not ready within 5s: it ", "raise its `start-timeout`"],
        );
    }
    let mut config = config("late-deaf");
    config.limits.handshake = Duration::from_secs(4);
    let answered = "it answered `server/discover` and `initialize`, but not `ping`; ";
    says(&fails(config).await, &[answered]);
}

#[tokio::test]
async fn a_server_that_leaves_only_the_first_ping_unanswered_is_connected_to_whatever_the_limit() {
    let mut config = config("deaf");
    config.limits.handshake = Duration::from_secs(4);
    let upstream = UpstreamConnection::connect(config).await.unwrap();
    let found = result(&upstream, "echo", json!({"a": 1})).await;
    assert_eq!(found["echo"], json!({"a": 1}));
}

#[tokio::test]
async fn a_command_that_cannot_start_says_which_and_why() {
    let missing = Target::command("no-such-program", []);
    let missing = fails(UpstreamConfig::new("tools", missing)).await;
    says(
        &missing,
        &["`tools`", "`no-such-program`", "not found", "`PATH`"],
    );
    let mut elsewhere = config("legacy");
    if let Target::Command { cwd, .. } = &mut elsewhere.target {
        *cwd = Some("/no/such/directory".into());
    }
    let error = fails(elsewhere).await;
    says(&error, &["`peer`", "`/no/such/directory` does not exist"]);
    let script = ["-c", "echo no luck >&2; exit 4"].map(str::to_owned);
    let dead = fails(UpstreamConfig::new("tools", Target::command("sh", script))).await;
    says(
        &dead,
        &["`tools`", "exit status: 4", "last stderr lines: no luck"],
    );
}

#[tokio::test]
async fn what_a_program_wrote_before_it_ended_is_shown_from_its_first_error() {
    let dies = async |script: &str| {
        let script = ["-c", script].map(str::to_owned);
        let error = fails(UpstreamConfig::new("tools", Target::command("sh", script))).await;
        error.to_string()
    };
    let trace = "for line in start 'Error: no module x' a b c d e; do echo $line >&2; done; exit 1";
    assert_eq!(
        dies(trace).await,
        "server `tools` ended (exit status: 1); last stderr lines: Error: no module x | ... | a | b | c | d | e"
    );
    assert_eq!(
        dies("echo hello").await,
        "server `tools` ended (exit status: 0); it wrote `hello`, which is not a message: standard output is for messages \
         only, so make the server write its logs to standard error"
    );
}

#[tokio::test]
async fn a_program_that_may_not_be_run_says_what_to_do() {
    let directory = std::env::temp_dir().join(format!("vary-no-program-{}", std::process::id()));
    let script = directory.join("server.sh");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(&script, "exit 0").unwrap();
    for (path, advice) in [
        (
            &script,
            "; it is not executable: run `chmod +x` on it, or write the program that runs it as `command`, as in \
             `command: python3` and `args: [server.py]`",
        ),
        (&directory, "; it is a directory: name the program in it"),
    ] {
        let program = path.to_str().unwrap();
        let error = fails(UpstreamConfig::new("tools", Target::command(program, []))).await;
        let expected = format!(
            "server `tools`: the program `{program}` cannot be started: permission denied{advice}"
        );
        assert_eq!(error.to_string(), expected);
    }
    let mut config = UpstreamConfig::new("tools", Target::command("sh", []));
    if let Target::Command { cwd, .. } = &mut config.target {
        *cwd = Some(script.clone());
    }
    let expected = format!("its directory `{}` is a file", script.display());
    says(&fails(config).await, &[&expected]);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn a_thousand_notifications_keep_their_order() {
    let upstream = peer("legacy").await;
    let params =
        json!({"name": "count", "arguments": {"to": 1000}, "_meta": {"progressToken": "t/1"}});
    let request = Request {
        progress_token: Some("\"t\\/1\"".to_owned()),
        ..Request::new("tools/call", Some(params.to_string()))
    };
    let (notifications, answer) = all(upstream.request(request).await.unwrap()).await;
    let progress = notifications
        .iter()
        .map(|message| message["params"]["progress"].as_u64());
    assert!(progress.eq((0..1000).map(Some)));
    assert_eq!(answer, Ok(json!({"content": []})));
}

#[tokio::test]
async fn answers_find_their_calls_in_any_order() {
    let upstream = peer("legacy").await;
    let mut calls = Vec::new();
    for n in 0..100 {
        let request = call("hold", &json!({"n": n, "until": 100}));
        calls.push((n, upstream.request(request).await.unwrap()));
    }
    for (n, exchange) in calls {
        assert_eq!(all(exchange).await.1, Ok(json!({"n": n})));
    }
}

#[tokio::test]
async fn lines_that_are_no_messages_are_skipped() {
    let upstream = peer("legacy").await;
    let found = result(&upstream, "noise", json!({})).await;
    assert_eq!(found, json!({"content": []}));
    let found = result(&upstream, "echo", json!({})).await;
    assert_eq!(found["echo"], json!({}));
}

#[tokio::test]
async fn a_line_over_the_limit_fails_the_call_it_answers_and_no_other() {
    let upstream = peer("legacy").await;
    let other = call("hold", &json!({"n": 1, "until": 2}));
    let other = upstream.request(other).await.unwrap();
    let request = call("line", &json!({"size": 3_000_000}));
    let (_, answer) = all(upstream.request(request).await.unwrap()).await;
    says(
        &answer.unwrap_err(),
        &["`peer`", "a line of more than 1 MiB"],
    );
    let large = result(&upstream, "line", json!({"size": 1_000_000})).await;
    assert_eq!(large["x"].as_str().map(str::len), Some(1_000_000));
    result(&upstream, "hold", json!({"n": 2, "until": 2})).await;
    assert_eq!(all(other).await.1, Ok(json!({"n": 1})));
}

#[tokio::test]
async fn a_line_over_the_limit_that_may_answer_any_call_fails_all() {
    let upstream = peer("legacy").await;
    let hanging = upstream.request(call("hang", &json!({}))).await.unwrap();
    let request = call("blob", &json!({"size": 3_000_000}));
    let blob = upstream.request(request).await.unwrap();
    for exchange in [hanging, blob] {
        let error = all(exchange).await.1.unwrap_err();
        says(&error, &["`peer`", "a line of more than 1 MiB"]);
    }
    result(&upstream, "echo", json!({})).await;
}

#[tokio::test]
async fn a_dead_child_fails_its_calls_at_once_and_its_last_words_are_details() {
    let upstream = peer("legacy").await;
    let mut events = upstream.events();
    let waiting = upstream.request(call("hang", &json!({}))).await.unwrap();
    let dying = upstream.request(call("die", &json!({}))).await.unwrap();
    let killed = "server `peer` ended (signal: 9 (SIGKILL))";
    for exchange in [waiting, dying] {
        let error = exchange.answer().await.unwrap_err();
        // What it wrote is for the operator alone.
        assert_eq!(error.to_string(), killed);
        let last = r"last stderr lines: out of \u{1b}[31mluck";
        says(&error.details(), &["`peer` ended", last]);
    }
    let Ok(Event::Closed { reason }) = soon(events.recv()).await else {
        panic!("not closed");
    };
    assert_eq!(reason, killed);
    let later = upstream
        .request(call("echo", &json!({})))
        .await
        .unwrap_err();
    assert!(matches!(later, UpstreamError::Closed { .. }), "{later}");
}

#[tokio::test]
async fn what_a_child_answered_before_it_ended_counts() {
    let upstream = peer("legacy").await;
    let found = result(&upstream, "exit", json!({})).await;
    assert_eq!(found, json!({"content": []}));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_stubborn_child_and_its_own_children_are_gone_after_close() {
    let mut config = config("legacy");
    config.limits.grace = Duration::from_millis(100);
    if let Target::Command { env, .. } = &mut config.target {
        env.insert("STAY".to_owned(), "1".to_owned());
    }
    let upstream = UpstreamConnection::connect(config).await.unwrap();
    let started = result(&upstream, "spawn", json!({})).await;
    assert!(is_alive(&started["pid"]) && is_alive(&started["own"]));
    upstream.close().await;
    is_gone(&started["pid"]).await;
    is_gone(&started["own"]).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_dropped_connection_leaves_no_process() {
    let upstream = peer("legacy").await;
    let started = result(&upstream, "spawn", json!({})).await;
    drop(upstream);
    is_gone(&started["pid"]).await;
    is_gone(&started["own"]).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_child_that_left_the_session_of_its_server_ends_with_it() {
    let (closed, dropped, ended) = tokio::join!(peer("legacy"), peer("legacy"), peer("legacy"));
    let mut children = Vec::new();
    for upstream in [&closed, &dropped, &ended] {
        let started = result(upstream, "spawn", json!({"leaves": true})).await;
        assert!(is_alive(&started["pid"]));
        children.push(started["pid"].clone());
    }
    closed.close().await;
    is_gone(&children[0]).await;
    assert!(
        is_alive(&children[1]) && is_alive(&children[2]),
        "those of others stay"
    );
    drop(dropped);
    is_gone(&children[1]).await;
    let call = ended.request(call("die", &json!({}))).await.unwrap();
    soon(call.answer()).await.unwrap_err();
    is_gone(&children[2]).await;
}

#[cfg(target_os = "linux")]
#[test]
fn a_runtime_that_stops_leaves_no_process() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (upstream, started) = runtime.block_on(async {
        let upstream = peer("legacy").await;
        let started = result(&upstream, "spawn", json!({})).await;
        (upstream, started)
    });
    drop(runtime);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(is_gone(&started["pid"]));
    runtime.block_on(is_gone(&started["own"]));
    drop(upstream);
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_by_its_own_id() {
    let upstream = peer("legacy").await;
    let exchange = upstream.request(call("hang", &json!({}))).await.unwrap();
    drop(exchange);
    let exchange = upstream.request(call("hang", &json!({}))).await.unwrap();
    exchange.cancel(Some("enough"));
    let seen = result(&upstream, "seen", json!({})).await;
    let seen = seen["seen"].as_array().unwrap();
    let hung: Vec<_> = seen
        .iter()
        .filter(|m| m["params"]["name"] == "hang")
        .collect();
    let cancelled: Vec<_> = seen
        .iter()
        .filter(|m| m["method"] == "notifications/cancelled")
        .map(|m| m["params"].clone())
        .collect();
    let expected = [
        json!({"requestId": hung[0]["id"]}),
        json!({"requestId": hung[1]["id"], "reason": "enough"}),
    ];
    assert_eq!(cancelled, expected);
}

#[tokio::test]
async fn an_answered_call_is_not_cancelled() {
    let upstream = peer("legacy").await;
    result(&upstream, "echo", json!({})).await;
    let seen = result(&upstream, "seen", json!({})).await;
    assert!(!seen.to_string().contains("cancelled"));
}

#[tokio::test]
async fn a_silent_call_ends_at_its_limit_and_is_cancelled() {
    let mut config = config("legacy");
    // The question that follows has no longer.
    config.limits.idle = Duration::from_secs(2);
    let upstream = UpstreamConnection::connect(config).await.unwrap();
    let exchange = upstream.request(call("hang", &json!({}))).await.unwrap();
    let error = all(exchange).await.1.unwrap_err();
    says(&error, &["`peer`", "sent nothing for 2s"]);
    let seen = result(&upstream, "seen", json!({})).await;
    assert!(seen.to_string().contains("notifications/cancelled"));
}

async fn logs(first: Option<u64>, second: Option<u64>) -> (usize, usize) {
    let upstream = peer("legacy").await;
    let mut one = call("hang", &json!({}));
    one.caller = first.map(CallerId);
    let mut other = call("log", &json!({"x": 1}));
    other.caller = second.map(CallerId);
    let one = upstream.request(one).await.unwrap();
    let other = upstream.request(other).await.unwrap();
    // Neither is answered; the process ends after the log line.
    upstream.notify("x/exit", None).await.unwrap();
    let (one, other) = tokio::join!(all(one), all(other));
    (one.0.len(), other.0.len())
}

#[tokio::test]
async fn a_log_line_reaches_the_client_it_belongs_to_or_nobody() {
    assert_eq!(logs(Some(1), Some(1)).await, (0, 1));
    assert_eq!(logs(Some(1), Some(2)).await, (0, 0));
    assert_eq!(logs(None, Some(2)).await, (0, 0));
}

/// The server may go on working at a call that was cancelled or answered, however long ago.
#[tokio::test]
async fn what_is_logged_after_a_call_reaches_its_client_and_no_other() {
    let upstream = peer("legacy").await;
    let owned = |name, arguments, owner| Request {
        caller: Some(CallerId(owner)),
        ..call(name, &arguments)
    };
    let cancelled = upstream.request(owned("hang", json!({}), 1)).await.unwrap();
    drop(cancelled);
    let own = owned("say", json!({"x": 1}), 1);
    let (logged, _) = all(upstream.request(own).await.unwrap()).await;
    assert_eq!(logged[0]["params"]["data"], json!({"x": 1}));
    for (owner, x) in [(2, 2), (1, 3)] {
        let other = owned("say", json!({"x": x}), owner);
        let (logged, _) = all(upstream.request(other).await.unwrap()).await;
        assert!(logged.is_empty(), "{logged:?}");
    }
}

#[tokio::test]
async fn what_the_server_asks_is_answered_or_refused() {
    let upstream = peer("legacy").await;
    result(&upstream, "ask", json!({})).await;
    let seen = result(&upstream, "seen", json!({})).await;
    let seen = seen["seen"].as_array().unwrap();
    let replies: Vec<_> = seen.iter().filter(|m| m.get("method").is_none()).collect();
    let pong = json!({"jsonrpc": "2.0", "id": "p", "result": {}});
    assert_eq!(replies[0], &pong);
    let refusal = &replies[1]["error"];
    assert_eq!(
        (&replies[1]["id"], &refusal["code"]),
        (&json!(7), &json!(-32601))
    );
    let why = "no client on this connection";
    says(&refusal["message"], &["`sampling/createMessage`", why]);
}

#[tokio::test]
async fn a_server_of_both_eras_is_spoken_to_as_its_client_is() {
    for (temper, revision) in [
        ("dual", Revision::LATEST_LEGACY),
        ("legacy", Revision::LATEST_LEGACY),
        ("modern", Revision::LATEST_MODERN),
    ] {
        let mut config = config(temper);
        config.legacy_first = true;
        let upstream = UpstreamConnection::connect(config).await.unwrap();
        assert_eq!(upstream.handshake().revision, revision, "{temper}");
    }
    speaks("dual", Revision::LATEST_MODERN).await;
}

#[tokio::test]
async fn a_refusal_is_not_the_verdict_while_the_other_era_is_unanswered() {
    for temper in ["slow-modern", "errs-once"] {
        speaks(temper, Revision::LATEST_MODERN).await;
    }
    let mut slow = config("slow-legacy");
    slow.legacy_first = true;
    slow.limits.initialize = Duration::from_millis(100);
    let upstream = UpstreamConnection::connect(slow).await.unwrap();
    assert_eq!(upstream.handshake().revision, Revision::LATEST_LEGACY);
}

#[tokio::test]
async fn a_slow_process_that_may_have_taken_both_handshakes_is_started_again_for_one() {
    for temper in ["slow-dual", "slower-dual"] {
        let seen = result(&*peer(temper).await, "seen", json!({})).await;
        assert!(!seen.to_string().contains("initialize"), "{temper}: {seen}");
    }
}

#[tokio::test]
async fn the_end_of_the_first_process_is_no_event_of_the_one_started_in_its_place() {
    for temper in ["dies", "slow-dual"] {
        let upstream = UpstreamConnection::connect(config(temper).dedicated());
        let (upstream, mut events) = upstream.await.map(|it| (it.clone(), it.events())).unwrap();
        result(&upstream, "seen", json!({})).await;
        while let Ok(event) = events.try_recv() {
            assert!(!matches!(event, Event::Closed { .. }), "{temper}");
        }
    }
}

#[tokio::test]
async fn a_refusal_counts_once_the_other_era_stays_unanswered() {
    let mut unset = config("unset");
    unset.limits.ready_timeout = Duration::from_millis(200);
    let refused = fails(unset).await;
    says(&refused, &["`peer`", "refused `initialize`"]);
    says(&refused, &["API_KEY is not set"]);
}

/// A connection that the test has alone.
async fn held(limits: impl FnOnce(&mut Limits)) -> Arc<UpstreamConnection> {
    let mut config = config("legacy").dedicated();
    limits(&mut config.limits);
    UpstreamConnection::connect(config).await.unwrap()
}

fn relay(arguments: &Value) -> Request {
    // What a process asks is about the calls of a client.
    Request {
        caller: Some(CallerId(1)),
        ..call("relay", arguments)
    }
}

/// What the server asks next.
async fn asked(exchange: &mut Exchange) -> ServerRequest {
    match exchange.next().await.unwrap() {
        Message::Request(request) => request,
        other => panic!("the server asks nothing: {other:?}"),
    }
}

#[tokio::test]
async fn who_has_a_connection_alone_is_asked_and_answers() {
    let upstream = held(|_| {}).await;
    let elicitation = json!({"method": "elicitation/create", "n": 5});
    let mut exchange = upstream.request(relay(&elicitation)).await.unwrap();
    let request = asked(&mut exchange).await;
    assert_eq!(request.method(), "elicitation/create");
    assert_eq!(request.params(), Some(r#"{"n": 5}"#));
    request.reply(Ok("{\"action\":\n\"decline\"}"));
    // Only the first answer counts.
    request.reply(Err("{}"));
    let outcome = all(exchange).await.1.unwrap();
    assert_eq!(outcome["reply"]["result"], json!({"action": "decline"}));
    assert!(request.is_settled());
}

#[tokio::test]
async fn what_nobody_answers_is_refused_once_it_is_let_go() {
    let upstream = held(|_| {}).await;
    let roots = json!({"method": "roots/list"});
    let mut exchange = upstream.request(relay(&roots)).await.unwrap();
    drop(asked(&mut exchange).await);
    let outcome = all(exchange).await.1.unwrap();
    let message = &outcome["reply"]["error"]["message"];
    says(message, &["`roots/list` was not answered"]);
}

#[tokio::test]
async fn a_call_does_not_time_out_while_the_client_is_asked() {
    let upstream = held(|limits| limits.idle = Duration::from_secs(1)).await;
    let elicitation = json!({"method": "elicitation/create"});
    let mut exchange = upstream.request(relay(&elicitation)).await.unwrap();
    let request = asked(&mut exchange).await;
    let waiting = tokio::time::timeout(Duration::from_millis(1_500), exchange.next());
    assert!(waiting.await.is_err());
    request.reply(Ok("{}"));
    assert!(all(exchange).await.1.is_ok());
    // Where nobody is asked, silence is as before.
    let silent = upstream.request(call("hang", &json!({}))).await.unwrap();
    says(&all(silent).await.1.unwrap_err(), &["sent nothing"]);
}

#[tokio::test]
async fn what_the_server_withdraws_is_not_answered() {
    let upstream = held(|_| {}).await;
    let withdrawn = json!({"method": "elicitation/create", "withdraw": true});
    let mut exchange = upstream.request(relay(&withdrawn)).await.unwrap();
    let request = asked(&mut exchange).await;
    request.settled().await;
    request.reply(Ok("{}"));
    let (told, _) = all(exchange).await;
    assert_eq!(told[0]["method"], "notifications/cancelled");
    let seen = result(&upstream, "seen", json!({})).await;
    let seen = seen["seen"].as_array().unwrap();
    assert!(seen.iter().all(|message| message.get("method").is_some()));
}

#[tokio::test]
async fn of_what_belongs_to_no_call_changes_are_told() {
    let upstream = peer("legacy").await;
    let mut events = upstream.events();
    for _ in 0..2 {
        let exchange = upstream.request(call("change", &json!({}))).await.unwrap();
        assert!(all(exchange).await.0.is_empty());
    }
    for _ in 0..2 {
        let event = soon(events.recv()).await;
        assert!(matches!(event, Ok(Event::ListChanged(Kind::Tools))));
        let event = soon(events.recv()).await;
        assert!(matches!(event, Ok(Event::ResourceUpdated { uri, .. }) if &*uri == "a:b"));
        // Of a task in either form.
        for _ in 0..2 {
            let event = soon(events.recv()).await;
            assert!(matches!(event, Ok(Event::TaskChanged { id, .. }) if &*id == "t-1"));
        }
    }
    assert!(events.is_empty());
}

#[tokio::test]
async fn a_modern_server_is_asked_for_its_list_changes() {
    let upstream = peer("modern").await;
    let mut events = upstream.events();
    // What may have changed before the subscription was acknowledged, and what the server tells right after that;
    // who listens and who reads may hear of the two in either order.
    let received = [
        soon(events.recv()).await.unwrap(),
        soon(events.recv()).await.unwrap(),
    ];
    let may_have = |event: &Event| matches!(event, Event::ListMayHaveChanged(Kind::Tools));
    let has = |event: &Event| matches!(event, Event::ListChanged(Kind::Tools));
    assert!(
        received.iter().any(may_have) && received.iter().any(has),
        "{received:?}"
    );
    let seen = result(&upstream, "seen", json!({})).await;
    let mut seen = seen["seen"].as_array().unwrap().iter();
    let listen = seen
        .find(|message| message["method"] == "subscriptions/listen")
        .unwrap();
    assert_eq!(
        listen["params"]["notifications"],
        json!({"toolsListChanged": true})
    );
    for (key, value) in upstream.client_meta() {
        assert_eq!(listen["params"]["_meta"][key], parse(value.as_bytes()));
    }
}

#[tokio::test]
async fn a_process_that_does_not_read_blocks_nobody() {
    let mut config = config("legacy");
    config.limits.outbox = 512 * 1024;
    config.limits.write = Duration::from_millis(100);
    config.limits.grace = Duration::from_millis(100);
    let upstream = UpstreamConnection::connect(config).await.unwrap();
    // One answer larger than the pipe, which the peer would have to write while we write to it.
    let stop = ["-STOP".to_owned()];
    let own = result(&upstream, "spawn", json!({})).await["own"].to_string();
    let halted = std::process::Command::new("kill")
        .args(stop)
        .arg(&own)
        .status();
    assert!(halted.unwrap().success());
    let large = json!({"x": "x".repeat(400_000)});
    let mut open = Vec::new();
    let busy = loop {
        match upstream.request(call("echo", &large)).await {
            Ok(exchange) => open.push(exchange),
            Err(error) => break error,
        }
    };
    assert!(matches!(busy, UpstreamError::Busy { .. }), "{busy}");
    upstream.close().await;
}
