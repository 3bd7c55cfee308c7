//! What becomes of pipes: those that the server closes, those that the gateway closes, and those that never work.

use std::time::Duration;

use fixture_server::Options;
use mcp_vary_gateway::{Gateway, Target};
use mcp_vary_testkit::message::Has as _;
use mcp_vary_testkit::wait::{soon, until};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Embedded, KINDS, PIPED, Pipes, call, config, piped};

/// A server that ends is a lost connection: the next call has another pipe.
#[tokio::test]
async fn a_server_that_ends_is_opened_anew() {
    let embedded = Embedded::with("").await;
    for kind in KINDS {
        let mut client = embedded.client(kind).await;
        client
            .call("echo", json!({}))
            .await
            .has("/result/isError", false);
        let before = embedded.pipes.count();
        embedded.pipes.abort();
        until(async || embedded.pipes.count() > before).await;
        let answer = client.call("echo", json!({"a": 1})).await;
        answer.has("/result/structuredContent/a", 1);
    }
}

/// A call that is in flight when its pipe is closed fails with a reason, and the next one works.
#[tokio::test]
async fn a_pipe_that_is_closed_during_a_call_fails_the_call() {
    let embedded = Embedded::with("").await;
    for kind in PIPED {
        let mut client = piped(&embedded, kind).await;
        client
            .send(call(kind, 1, "slow", &json!({"ms": 600_000})))
            .await;
        let begun = client.receive().await;
        begun.has("/method", "notifications/progress");
        embedded.pipes.abort();
        let failed = client.receive_until(|message| message["id"] == 1).await;
        failed.fails(-32603, "server `fixture` closed its pipe");
        client.send(call(kind, 2, "echo", &json!({"a": 1}))).await;
        let answer = client.receive_until(|message| message["id"] == 2).await;
        answer.has("/result/structuredContent/a", 1);
    }
}

/// A gateway that closes ends its pipes, and the server on each sees the end of its input.
#[tokio::test]
async fn a_gateway_that_closes_ends_its_pipes() {
    let embedded = Embedded::with("").await;
    for kind in KINDS {
        let mut client = embedded.client(kind).await;
        client.ask("tools/list", json!({})).await;
    }
    assert!(!embedded.pipes.have_ended());
    soon(embedded.gateway.close()).await;
    until(async || embedded.pipes.have_ended()).await;
}

/// A reload with the same target keeps its pipes; another target has others.
#[tokio::test]
async fn a_reload_keeps_the_pipes_of_an_equal_target() {
    let pipes = Pipes::default();
    let opened = pipes.clone();
    let target = Target::in_process(move || opened.open());
    let embedded = Embedded::start(config("", target.clone()), pipes).await;
    let with_variants = config("variants: {standard: {}}", target);
    embedded
        .gateway
        .reload(with_variants)
        .await
        .expect("it is right");
    assert_eq!(embedded.pipes.count(), 1);

    let others = Pipes::default();
    let opened = others.clone();
    let target = Target::in_process(move || opened.open());
    embedded
        .gateway
        .reload(config("", target))
        .await
        .expect("it is right");
    assert_eq!(others.count(), 1);
    until(async || embedded.pipes.have_ended()).await;
}

/// Why a gateway does not start with a server that does so with its pipe.
async fn refusal<F>(serve: fn(tokio::io::DuplexStream) -> F, text: &str) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let pipes = Pipes::default();
    let mut config = config(text, Target::in_process(move || pipes.serve(serve)));
    config.servers[0].limits.handshake = Duration::from_millis(500);
    let refused = soon(Gateway::start(config)).await;
    refused.expect_err("the server does not work").to_string()
}

/// The operator reads what a server in this process did, and is not told to run a command.
#[tokio::test]
async fn a_server_that_never_works_is_reported() {
    let closed = refusal(|pipe| async { drop(pipe) }, "").await;
    let expected = "server `fixture` closed its pipe; it runs in this process, whose log says more";
    assert_eq!(closed, expected);

    let silent = |mut pipe: tokio::io::DuplexStream| async move {
        let mut read = Vec::new();
        // It ends when the gateway gives up.
        let _ = pipe.read_to_end(&mut read).await;
    };
    let silent = refusal(silent, "").await;
    assert!(
        silent.starts_with("server `fixture` was not ready within 500ms: "),
        "{silent}"
    );
    assert!(
        silent.ends_with("it runs in this process, whose log says more"),
        "{silent}"
    );
}

/// Text that is not a message is skipped, as on standard output.
#[tokio::test]
async fn text_that_is_not_a_message_is_skipped() {
    let pipes = Pipes::default();
    let opened = pipes.clone();
    let target = Target::in_process(move || {
        opened.serve(|mut pipe| async {
            pipe.write_all(b"welcome\n")
                .await
                .expect("the gateway reads");
            // An error means that the gateway has closed the pipe.
            let _ = fixture_server::serve(Options::default(), pipe).await;
        })
    });
    let embedded = Embedded::start(config("", target), pipes).await;
    for kind in KINDS {
        let mut client = embedded.client(kind).await;
        client
            .call("echo", json!({}))
            .await
            .has("/result/isError", false);
    }
}
