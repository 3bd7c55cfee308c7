//! What is logged of negotiation, and what never is.

use serde_json::{Value, json};
use tracing::Level;

use crate::log::Log;
use crate::seed::{EXTENSION, operated, params};
use crate::support::{House, Post, Way, features, modern};

const NEGOTIATED: &str = "mcp_vary_gateway::negotiated";

/// CN-21: which tags there were, which were ignored and why, and what was chosen, of every kind of content.
#[tokio::test]
async fn negotiation_is_logged() {
    let house = operated().await;
    let mut count = 0;
    for way in Way::ALL {
        for (method, what, tags, said) in [
            (
                "tools/call",
                "result",
                "human,x-a=1",
                r#"format="markdown"; variant="standard"; "#,
            ),
            (
                "tools/call",
                "result",
                "agent,verbosity=standard",
                r#"format="json"; verbosity="standard"; variant="standard"; "#,
            ),
            (
                "resources/read",
                "resource",
                "format=markdown",
                r#"format="markdown"; variant="standard"; "#,
            ),
            (
                "prompts/get",
                "prompt",
                "human,interactive",
                r#"variant="standard"; "#,
            ),
        ] {
            // Told apart from what another way and method declared, which is remembered.
            let unknown = format!("{way:?}={method}=");
            let mut declared: Vec<&str> = tags.split(',').collect();
            declared.extend(["format==json", &unknown]);
            let (log, _listening) = Log::listen(NEGOTIATED, Level::DEBUG);
            let answer = way
                .ask(&house, &features(&declared), method, params(method))
                .await;
            assert!(answer["result"].is_object(), "{answer}");
            count += 1;
            let level = if count <= 8 || count == 16 {
                "WARN"
            } else {
                "DEBUG"
            };
            let grammar = "a value holds only printable ASCII without `=`, `!`, `,`, `;`, not '='";
            assert_eq!(
                log.take(),
                [
                    format!(
                        "{level} parts of a client's declaration ignored; extension=\"content-negotiation\"; \
                         ignored=`format==json`: {grammar}; `{unknown}`: {grammar}; count={count}; "
                    ),
                    format!("DEBUG feature tags declared; tags={tags}; ignored=2; "),
                    format!("DEBUG content negotiated; what=\"{what}\"; tags={tags}; {said}"),
                ],
                "{way:?} {method}"
            );
        }
    }
    assert_eq!(house.gateway.ignored_declarations(), count);
}

/// CN-21: that nothing was changed is logged, too.
#[tokio::test]
async fn what_is_left_as_it_was_is_logged() {
    let house = operated().await;
    for way in Way::ALL {
        let (log, _listening) = Log::listen(NEGOTIATED, Level::DEBUG);
        let declared = features(&["x-a=1"]);
        way.ask(&house, &declared, "tools/call", params("tools/call"))
            .await;
        let said = log.take();
        let last = r#"DEBUG content left as the server said it; what="result"; tags=x-a=1; variant="standard"; "#;
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
    let house = operated().await;
    for way in Way::ALL {
        let (log, _listening) = Log::listen(NEGOTIATED, Level::TRACE);
        for method in ["tools/call", "resources/read", "prompts/get"] {
            way.ask(&house, &json!({"sampling": {}}), method, params(method))
                .await;
        }
        assert_eq!(log.take(), [""; 0], "{way:?}");
    }
}

/// What no log may hold: it stands in hints, arguments, headers and results.
const SECRET: &str = "hunter2";

/// A declaration that is as long, as many and as strange as a client can make it.
fn hostile() -> Value {
    let tags = (0..5_000).map(|at| match at % 5 {
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

async fn all_ways(house: &House, declared: &Value) {
    for way in Way::ALL {
        for method in ["tools/call", "resources/read", "prompts/get", "tools/list"] {
            let mut params = params(method);
            params["arguments"] = json!({"key": SECRET});
            way.ask(house, declared, method, params).await;
        }
    }
    let call = modern(json!(1), "tools/call", params("tools/call"), declared);
    let post = Post::modern(&call).with("Authorization", format!("Bearer {SECRET}"));
    house.connect().await.ask(&post).await;
}

/// CN-1, CN-21: the log is bounded, no peer writes lines of its own there, and nothing that may be secret
/// stands in it.
#[tokio::test]
async fn the_log_is_bounded_and_harmless() {
    let house = operated().await;
    let (log, _listening) = Log::listen("mcp_vary_gateway", Level::TRACE);
    all_ways(&house, &hostile()).await;
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
