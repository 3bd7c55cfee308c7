//! What is logged about negotiation, and what is never logged.

use crate::negotiation::seed_cases::{EXTENSION, operated, params};
use crate::support::*;

const NEGOTIATED: &str = "mcp_vary_results::negotiation_log";

/// A method, the kind of content, what the client declares, and the chosen representation.
const CASES: &str = r#"
    tools/call     | result   | human,x-a=1              | format="markdown"; variant="standard";
    tools/call     | result   | agent,verbosity=standard | format="json"; verbosity="standard"; variant="standard";
    resources/read | resource | format=markdown          | format="markdown"; variant="standard";
    prompts/get    | prompt   | human,interactive        | variant="standard";
"#;

/// CN-21: which tags there were, which were ignored and why, and what was chosen, of every kind of content.
#[tokio::test]
async fn negotiation_is_logged() {
    let harness = operated().await;
    let mut count = 0;
    for way in ClientKind::ALL {
        for [method, what, tags, said] in rows(CASES) {
            // Told apart from what another way and method declared, which is remembered.
            let unknown = format!("{way:?}={method}=");
            let mut declared: Vec<&str> = tags.split(',').collect();
            declared.extend(["format==json", &unknown]);
            let (log, _listening) = CapturedLog::listen(NEGOTIATED, Level::DEBUG);
            let answer = ask_as(&harness, way, &features(&declared), method, params(method)).await;
            assert!(answer["result"].is_object(), "{answer}");
            count += 1;
            let is_warned_of = count <= 8 || count == 16;
            let level = if is_warned_of { "WARN" } else { "DEBUG" };
            let grammar = "a value holds only printable ASCII without `=`, `!`, `,`, `;`, not '='";
            let expected = [
                format!(
                    "{level} parts of a client's declaration ignored; extension=\"content-negotiation\"; \
                         ignored=`format==json`: {grammar}; `{unknown}`: {grammar}; count={count}; "
                ),
                format!("DEBUG feature tags declared; tags={tags}; ignored=2; "),
                format!("DEBUG content negotiated; what=\"{what}\"; tags={tags}; {said} "),
            ];
            assert_eq!(log.take(), expected, "{way:?} {method}");
        }
    }
}

/// CN-21: that nothing was changed is logged, too.
#[tokio::test]
async fn what_is_left_as_it_was_is_logged() {
    let harness = operated().await;
    for way in ClientKind::ALL {
        let (log, _listening) = CapturedLog::listen(NEGOTIATED, Level::DEBUG);
        let declared = features(&["x-a=1"]);
        ask_as(&harness, way, &declared, "tools/call", params("tools/call")).await;
        let said = log.take();
        let last = r#"DEBUG content sent as the server returned it; what="result"; tags=x-a=1; variant="standard"; "#;
        assert_eq!(
            said.last().map(String::as_str),
            Some(last),
            "{way:?} {said:?}"
        );
    }
}

/// CN-21: nothing of clients that do not negotiate.
#[tokio::test]
async fn nothing_is_logged_of_who_does_not_negotiate() {
    let harness = operated().await;
    for way in ClientKind::ALL {
        let (log, _listening) = CapturedLog::listen(NEGOTIATED, Level::TRACE);
        for method in ["tools/call", "resources/read", "prompts/get"] {
            way.ask(&harness, &json!({"sampling": {}}), method, params(method))
                .await;
        }
        assert_eq!(log.take(), [""; 0], "{way:?}");
    }
}

/// What no log may hold: it stands in hints, arguments, headers and results.
const SECRET: &str = "hunter2";

/// A declaration that is as long, as many and as strange as a client can make it.
fn hostile() -> Value {
    // Just below 64 KiB, which capabilities may have.
    let tags = (0..180).map(|at| match at % 5 {
        0 => json!(format!("x-{at}={}", "v".repeat(110))),
        1 => json!(format!("\u{1b}[31mERROR\r\n{at}")),
        2 => json!("\u{202e}format=json".repeat(100)),
        3 => json!({"a": [at]}),
        _ => json!(format!("format={at}\nWARN forged; count=1;")),
    });
    let hints = json!({
        "description": format!("my password is {SECRET}\n"),
        "hints": {"useCase": [SECRET, "\u{7}"], "\n": "x"},
    });
    json!({"extensions": {
        EXTENSION: {"version": "1.0", "features": tags.collect::<Vec<_>>()},
        "io.modelcontextprotocol/server-variants": {"variantHints": hints},
    }})
}

async fn all_ways(harness: &Harness, declared: &Value) {
    for client_kind in ClientKind::ALL {
        for method in ["tools/call", "resources/read", "prompts/get", "tools/list"] {
            let mut params = params(method);
            params["arguments"] = json!({"key": SECRET});
            client_kind.ask(harness, declared, method, params).await;
        }
    }
    let post = HttpRequest::modern_request_as("tools/call", params("tools/call"), declared)
        .with("Authorization", format!("Bearer {SECRET}"));
    harness.connect().await.ask(&post).await;
}

/// CN-1, CN-21: the log is bounded, no peer writes lines of its own there, and nothing that may be secret
/// stands in it.
#[tokio::test]
async fn the_log_is_bounded_and_harmless() {
    let harness = operated().await;
    let (log, _listening) = CapturedLog::listen("mcp_vary", Level::TRACE);
    all_ways(&harness, &hostile()).await;
    let said = log.take();
    let declared = said
        .iter()
        .filter(|line| line.contains("feature tags declared"));
    assert!(declared.count() >= 9, "{said:?}");
    for line in &said {
        let printable = line.chars().all(|c| c == ' ' || c.is_ascii_graphic());
        assert!(printable, "{line:?}");
        assert!(line.len() < 4_096, "{} bytes: {line}", line.len());
        assert!(!line.contains(SECRET), "{line}");
    }
}

/// CN-21: formats and verbosities that the gateway does not know are warned of once per declaration; other tags that
/// have no effect are not, since an operator may use them.
#[tokio::test]
async fn an_unknown_format_or_verbosity_is_warned_of() {
    let harness = operated().await;
    for (number, way) in ClientKind::ALL.into_iter().enumerate() {
        let mark = format!("x-way={number}");
        let mut tags: Vec<_> = "format=xml format!=pdf verbosity=loud frobnicate agent"
            .split(' ')
            .collect();
        tags.push(&mark);
        let (log, _listening) = CapturedLog::listen(NEGOTIATED, Level::WARN);
        let (declared, params) = (features(&tags), params("tools/call"));
        let answer = ask_as(&harness, way, &declared, "tools/call", params).await;
        assert!(answer["result"].is_object(), "{answer}");
        let count = number + 1;
        let expected = [format!(
            "WARN unsupported feature tags declared; tags=format=xml,verbosity=loud; count={count}; "
        )];
        assert_eq!(log.take(), expected, "{way:?}");
    }
}

/// CN-2, EXT-5: tags that the id of a session has no room for are counted and warned of.
#[tokio::test]
async fn tags_without_room_in_a_session_are_counted_and_warned_of() {
    let harness = operated().await;
    let mut tags: Vec<String> = (0..14)
        .map(|n| format!("x-{n:03}-{}", "a".repeat(110)))
        .collect();
    tags.extend(["human".to_owned(), "x-last".to_owned()]);
    let tags: Vec<_> = tags.iter().map(String::as_str).collect();
    let (log, _listening) = CapturedLog::listen(NEGOTIATED, Level::WARN);
    let client = LegacyClient::open(&harness, "2025-11-25", &features(&tags)).await;
    assert!(client.session.len() <= 2048, "{}", client.session.len());
    let status = harness.status();
    let dropped = status["counters"]["dropped-tags"].as_u64().unwrap();
    assert!((1..=8).contains(&dropped), "{dropped}");
    assert_eq!(
        log.take(),
        [format!(
            "WARN feature tags without room in the session id dropped; dropped={dropped}; count=1; "
        )]
    );
}

/// SV-22: at `debug` the log says which variant each request ran under and what decided that, and which were refused.
#[tokio::test]
async fn selections_and_refusals_of_variants_are_logged() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let listen = || CapturedLog::listen("mcp_vary", Level::DEBUG);
    let about = |log: &CapturedLog| -> Vec<String> {
        let lines = log.take().into_iter();
        lines
            .filter(|line| line.contains("variant selected") || line.contains("variant refused"))
            .collect()
    };
    let list = |selector: Value| {
        let mut request = modern(json!(1), "tools/list", json!({}), &json!({}));
        if !selector.is_null() {
            request["params"]["_meta"][SELECTOR] = selector;
        }
        HttpRequest::modern(&request)
    };
    let (log, _listening) = listen();
    let selected = |variant: &str, by: &str| {
        format!(r#"DEBUG variant selected; variant={variant}; by="{by}"; method="tools/list"; "#)
    };
    let refused = r#"DEBUG variant refused; requested="no\nsuch\u{202e}"; "#;
    let by_header = list(Value::Null).with("MCP-Server-Variant", "read-only");
    for (post, expected) in [
        (list(Value::Null), selected("standard", "ranking")),
        (list(json!("compact")), selected("compact", "selector")),
        (by_header, selected("read-only", "header")),
        (list(json!("no\nsuch\u{202e}")), refused.to_owned()),
    ] {
        http.ask(&post).await;
        assert_eq!(about(&log), [expected]);
    }
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    client.ask("tools/list", json!({})).await;
    assert_eq!(
        about(&log),
        [
            r#"DEBUG variant selected; variant=standard; by="ranking"; method="initialize"; order="standard=20 compact=20 directory=20 read-only=20"; "#,
            r#"DEBUG variant selected; variant=standard; by="ranking"; method="tools/list"; "#,
        ]
    );
}

const SELECTOR: &str = "io.modelcontextprotocol/server-variant";
