use std::time::{Duration, Instant};

use http::{Method, StatusCode};

use crate::{
    AdminToken, Command, GatewayState, Probe, ProbeResponse, Readiness, RefusedCommand, TokenError,
    channel,
};

const TOKEN: &str = "correct-horse-battery";

#[track_caller]
fn is_token(text: &str, expected: Result<(), TokenError>) {
    let token = text.parse::<AdminToken>();
    assert_eq!(token.map(drop), expected, "{text:?}");
}

#[test]
fn a_token_is_long_enough_and_fits_a_header() {
    is_token(TOKEN, Ok(()));
    is_token(&"x".repeat(16), Ok(()));
    is_token(&"x".repeat(15), Err(TokenError::Short));
    is_token(&"x".repeat(1024), Ok(()));
    is_token(&"x".repeat(1025), Err(TokenError::Long));
    is_token("correct horse battery", Err(TokenError::Characters));
    is_token("correct-horse-battery\n", Err(TokenError::Characters));
    is_token("correct-hörse-battery", Err(TokenError::Characters));
    is_token("", Err(TokenError::Short));
    let drawn = AdminToken::from_random([7; 32]);
    is_token(drawn.expose(), Ok(()));
    assert_eq!(format!("{drawn:?}"), "AdminToken");
}

/// OP-8
#[test]
fn only_the_token_admits() {
    let (operator, _requests) = channel(Some(&TOKEN.parse().unwrap()));
    for (header, expected) in [
        ("Bearer correct-horse-battery", true),
        ("bearer  correct-horse-battery", true),
        ("Bearer correct-horse-batterz", false),
        ("Bearer correct-horse-battery2", false),
        ("Bearer correct-horse-batter", false),
        ("Bearer", false),
        ("Bearer ", false),
        ("Basic correct-horse-battery", false),
        ("correct-horse-battery", false),
        ("", false),
    ] {
        assert_eq!(operator.admits(header.as_bytes()), expected, "{header}");
    }
    let (without, _requests) = channel(None);
    assert!(!without.admits(b"Bearer correct-horse-battery"));
    assert!(!without.admits(b"Bearer "));
    let shown = format!("{operator:?}");
    assert!(shown.contains("TokenDigest"), "{shown}");
}

/// OP-9
#[test]
fn the_token_of_the_page_admits_to_nothing_else() {
    let token: AdminToken = TOKEN.parse().unwrap();
    let (operator, _requests) = channel(Some(&token));
    let header = |token: &str| format!("Bearer {token}").into_bytes();
    let page = header(token.for_page().expose());
    assert!(operator.admits_to_page(&page) && !operator.admits(&page));
    assert!(operator.admits_to_page(&header(TOKEN)));
    let further = token.for_page().for_page();
    assert!(!operator.admits_to_page(&header(further.expose())));
    let (without, _requests) = channel(None);
    assert!(!without.admits_to_page(&page) && !without.admits_to_page(b"Bearer "));
}

/// OP-9
#[test]
fn a_code_of_the_page_works_once_within_a_minute() {
    let token: AdminToken = TOKEN.parse().unwrap();
    let (operator, _requests) = channel(Some(&token));
    let start = Instant::now();
    let after = |seconds| start + Duration::from_secs(seconds);
    let exchange = |code: &str, seconds| {
        let header = format!("Bearer {code}");
        let token = operator
            .clone()
            .page_token(header.as_bytes(), after(seconds))
            .cloned();
        token.map(|token| token.expose().to_owned())
    };
    let page = Some(token.for_page().expose().to_owned());
    let first = operator.page_code([1; 32], start);
    let second = operator.page_code([2; 32], start);
    let header = format!("Bearer {second}").into_bytes();
    assert!(!operator.admits(&header) && !operator.admits_to_page(&header));
    assert_eq!(exchange(&second, 59), page);
    assert_eq!(exchange(&second, 59), None);
    assert_eq!(exchange(&first, 60), None);
    assert_eq!(exchange(TOKEN, 0), None);
    let oldest = operator.page_code([3; 32], start);
    let newer: Vec<_> = (4..20)
        .map(|byte| operator.page_code([byte; 32], start))
        .collect();
    assert_eq!(exchange(&oldest, 1), None);
    assert!(newer.iter().all(|code| exchange(code, 1) == page));
    let (without, _requests) = channel(None);
    let code = without.page_code([1; 32], start);
    let header = format!("Bearer {code}");
    assert!(without.page_token(header.as_bytes(), start).is_none());
}

#[test]
fn each_command_has_its_path() {
    for command in Command::ALL {
        assert_eq!(Command::at(command.path()), Some(command));
    }
    assert_eq!(Command::at("/status"), None);
    assert_eq!(Command::at("/Reload"), None);
}

#[tokio::test]
async fn a_reload_is_answered_by_the_program() {
    let (operator, mut requests) = channel(None);
    let program = async {
        requests.reload().await.answer(Ok("1 added".to_owned()));
        requests.reload().await.answer(Err("line 3".to_owned()));
        // It was received and forgotten.
        drop(requests.reload().await);
    };
    let clients = async {
        assert_eq!(operator.run(Command::Reload).await, Ok("1 added".into()));
        let failed = Err(RefusedCommand::Failed("line 3".into()));
        assert_eq!(operator.run(Command::Reload).await, failed);
        let stopping = Err(RefusedCommand::Stopping);
        assert_eq!(operator.run(Command::Reload).await, stopping);
    };
    tokio::join!(program, clients);
}

#[tokio::test]
async fn a_drain_ends_reloads_that_wait() {
    let (operator, requests) = channel(None);
    let waiting = tokio::spawn({
        let operator = operator.clone();
        async move { operator.run(Command::Reload).await }
    });
    // It waits once it was sent.
    tokio::task::yield_now().await;
    assert!(!requests.drain().is_cancelled());
    for _ in 0..2 {
        assert!(operator.run(Command::Drain).await.is_ok());
        assert!(requests.drain().is_cancelled());
    }
    assert_eq!(waiting.await.unwrap(), Err(RefusedCommand::Stopping));
    let late = operator.run(Command::Reload).await;
    assert_eq!(late, Err(RefusedCommand::Stopping));
}

#[test]
fn a_gateway_is_ready_without_a_reason_against_it() {
    let ready = GatewayState {
        is_serving: true,
        is_stopping: false,
        servers: (2, 2),
        missing_keys: (0, 1),
        is_store_read: true,
    };
    for readiness in [Readiness::Any, Readiness::All, Readiness::None] {
        assert!(readiness.reasons(ready).is_empty(), "{readiness:?}");
    }
    let worst = GatewayState {
        is_serving: false,
        is_stopping: true,
        servers: (0, 2),
        missing_keys: (1, 1),
        is_store_read: false,
    };
    let reasons = Readiness::Any.reasons(worst);
    let begins: Vec<_> = reasons
        .iter()
        .filter_map(|reason| reason.split(':').next())
        .collect();
    assert_eq!(begins, ["starting", "stopping", "servers", "keys", "store"]);
    assert_eq!(Readiness::None.reasons(worst).len(), 4);
}

#[test]
fn probes_are_got_at_their_paths_alone() {
    for (path, expected) in [
        ("/livez", Probe::Live),
        ("/readyz", Probe::Ready),
        ("/healthz", Probe::Ready),
        ("/metrics", Probe::Metrics),
    ] {
        assert_eq!(Probe::of(&Method::GET, path), Ok(expected));
        let refused = Probe::of(&Method::POST, path).unwrap_err();
        assert_eq!(refused.status, StatusCode::METHOD_NOT_ALLOWED);
    }
    for path in ["/", "/livez/", "/status", "/Metrics"] {
        let refused = Probe::of(&Method::GET, path).unwrap_err();
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[test]
fn a_reason_against_a_gateway_makes_it_not_ready() {
    let servers = [("a\nb", "up"), ("c", "down")];
    let ready = ProbeResponse::ready(&[], servers);
    assert_eq!(
        ready,
        ProbeResponse::new(StatusCode::OK, "ok\na\\nb: up\nc: down\n")
    );
    let stopping = ProbeResponse::ready(&["stopping".to_owned()], []);
    let expected = ProbeResponse::new(StatusCode::SERVICE_UNAVAILABLE, "stopping\n");
    assert_eq!(stopping, expected);
}
