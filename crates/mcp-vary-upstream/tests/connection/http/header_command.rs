//! Headers whose values a program prints.

use std::path::PathBuf;

use http::header::AUTHORIZATION;
use mcp_vary_http_client::credential_source::CredentialSource;
use mcp_vary_upstream::header_command::{HeaderCommand, HeaderCommandSettings};

use super::*;

/// A program of one line of shell that has counted its runs in `$1`.
fn settings(name: &str, script: &str) -> HeaderCommandSettings {
    let count = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("header-command-{name}"));
    let _ = std::fs::remove_file(&count);
    let script = format!("echo >> \"$1\"; N=$(wc -l < \"$1\" | tr -d ' '); {script}");
    let args = ["-c", &script, "sh", count.to_str().unwrap()];
    HeaderCommandSettings {
        program: "sh".to_owned(),
        args: args.map(str::to_owned).to_vec(),
        scheme: Some("Bearer".to_owned()),
        cache: Duration::from_secs(300),
        timeout: Duration::from_secs(20),
    }
}

fn runs(settings: &HeaderCommandSettings) -> usize {
    std::fs::read(&settings.args[3]).unwrap_or_default().len()
}

fn config_with(peer: &ScriptedServer, settings: &HeaderCommandSettings) -> UpstreamConfig {
    let source = HeaderCommand::new("remote", settings.clone());
    config(peer).with_credential(AUTHORIZATION, Arc::new(source))
}

async fn connect_with(
    peer: &ScriptedServer,
    settings: &HeaderCommandSettings,
) -> Arc<UpstreamConnection> {
    UpstreamConnection::connect(config_with(peer, settings))
        .await
        .unwrap()
}

#[tokio::test]
async fn the_output_is_the_value_for_all_requests_until_it_is_old() {
    let peer = legacy(|seen| seen.answer(&json!({}))).await;
    let mut settings = settings("cached", "echo TOKEN-$N");
    let upstream = connect_with(&peer, &settings).await;
    result(&upstream, "x").await.unwrap();
    assert_eq!(runs(&settings), 1);
    for seen in peer.received() {
        assert_eq!(seen.header("authorization"), Some("Bearer TOKEN-1"));
    }
    settings.cache = Duration::ZERO;
    let upstream = connect_with(&peer, &settings).await;
    result(&upstream, "x").await.unwrap();
    assert!(runs(&settings) > 3);
}

#[tokio::test]
async fn a_hundred_requests_at_once_run_it_once() {
    let settings = settings("single", "echo TOKEN-$N");
    let source = HeaderCommand::new("remote", settings.clone());
    let values = futures_util::future::join_all((0..100).map(|_| source.authorization())).await;
    assert!(
        values
            .iter()
            .all(|value| value.as_ref().unwrap().as_ref().unwrap() == "Bearer TOKEN-1")
    );
    assert_eq!(runs(&settings), 1);
    // So does a failure, and a thousand requests that follow do not start it again.
    let settings = self::settings("failing", "exit 3");
    let source = HeaderCommand::new("remote", settings.clone());
    let values = futures_util::future::join_all((0..100).map(|_| source.authorization())).await;
    assert!(values.iter().all(Result::is_err));
    assert_eq!(runs(&settings), 1);
}

#[tokio::test]
async fn it_runs_once_more_when_the_server_refuses_the_value() {
    let peer = legacy(|seen| match seen.header("authorization") {
        Some("Bearer TOKEN-2") => seen.answer(&json!({})),
        _ => Reply::new(401, "text/plain", "TOKEN-1 has expired"),
    })
    .await;
    let settings = settings("refused", "echo TOKEN-$N");
    let upstream = connect_with(&peer, &settings).await;
    result(&upstream, "x").await.unwrap();
    result(&upstream, "x").await.unwrap();
    assert_eq!((runs(&settings), peer.of("tools/call").len()), (2, 3));
    // A server that refuses every value does not run it for every request.
    let peer = legacy(|_| Reply::new(401, "text/plain", "no")).await;
    let settings = self::settings("never", "echo TOKEN-$N");
    let upstream = connect_with(&peer, &settings).await;
    for _ in 0..5 {
        let error = result(&upstream, "x").await.unwrap_err();
        says(
            &error,
            &["401", "refused the headers that were sent, `authorization`"],
        );
    }
    assert_eq!(runs(&settings), 2);
    // The same value is not sent again.
    let settings = self::settings("same", "echo TOKEN");
    let upstream = connect_with(&peer, &settings).await;
    let sent = peer.of("tools/call").len();
    result(&upstream, "x").await.unwrap_err();
    assert_eq!(
        (runs(&settings), peer.of("tools/call").len()),
        (2, sent + 1)
    );
}

/// A program that does this leaves its server unused, with an error that has `parts` and no secret.
async fn fails(name: &str, script: &str, parts: &[&str]) {
    let peer = legacy(|seen| seen.answer(&json!({}))).await;
    let mut settings = settings(name, script);
    settings.timeout = Duration::from_secs(2);
    let config = config_with(&peer, &settings);
    let shown = format!("{config:?}");
    let error = UpstreamConnection::connect(config).await.unwrap_err();
    says(
        &error,
        &[
            "server `remote` has no usable credentials: the program that prints the value of a header failed: `sh` ",
        ],
    );
    says(&error, parts);
    for text in [
        error.to_string(),
        format!("{error:?}"),
        error.client_message(),
        shown,
    ] {
        assert!(!text.contains("SECRET"), "{text}");
    }
    assert_eq!(
        error.client_message(),
        "server `remote` has no usable credentials: the program that prints the value of a header failed"
    );
    assert!(peer.received().is_empty());
}

#[tokio::test]
async fn what_is_wrong_with_it_is_an_error_without_secrets() {
    let script = "echo SECRET-A; echo 'log in first (SECRET-A)' >&2; exit 3";
    fails(
        "exit",
        script,
        &["ended with exit status: 3; its standard error is `log in first (***)`"],
    )
    .await;
    fails("empty", "true", &["printed nothing"]).await;
    let alone =
        "printed something else than one line of visible ASCII; let it print the value alone";
    fails("lines", "echo SECRET-A; echo SECRET-B", &[alone]).await;
    fails("bytes", r"printf 'SECRET\001'", &[alone]).await;
    fails(
        "long",
        "head -c 100000 /dev/zero | tr '\\0' S",
        &["printed more than the 8192 bytes of a header"],
    )
    .await;
    fails("slow", "sleep 60", &["did not end within 2s"]).await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let peer = legacy(|seen| seen.answer(&json!({}))).await;
    let mut settings = settings("missing", "");
    settings.program = "no-such-program-of-vary".to_owned();
    let error = UpstreamConnection::connect(config_with(&peer, &settings))
        .await
        .unwrap_err();
    says(
        &error,
        &["the program `no-such-program-of-vary` was not found; install it"],
    );
}
