//! Who may read the page, and what it lets a browser do.

use crate::support::*;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
     base-uri 'none'; frame-ancestors 'none'; form-action 'none'";

/// OP-9
#[tokio::test]
async fn data_needs_the_token_and_files_do_not() {
    let shown = Shown::with("").await;
    let bare = |path: &str| get(path).without("Authorization");
    for (request, status) in [
        (bare("/"), 200),
        (bare("/page/app.js"), 200),
        (bare("/api/status"), 401),
        (bare("/api/nothing"), 401),
        (bare("/nothing"), 404),
        (get("/api/status"), 200),
        (get("/api/nothing"), 404),
        (get("/api/status").line("POST /api/status HTTP/1.1"), 405),
        (get("/").line("POST / HTTP/1.1"), 405),
        (get("/api/explain"), 405),
        (get("/api/callers"), 405),
        (get("/api/retry?server=places"), 405),
        (
            bare("/").line("POST /api/retry?server=places HTTP/1.1"),
            401,
        ),
        (
            get("/api/status").with("Authorization", "Bearer wrong-horse-battery"),
            401,
        ),
        (
            get("/api/status").with("Authorization", format!("Bearer {TOKEN}")),
            200,
        ),
        (
            get("/api/status").with_another("Authorization", "Bearer x"),
            401,
        ),
        (get("/api/status").with("Host", "evil.example"), 403),
        (
            get("/api/status").with("Origin", "http://evil.example"),
            403,
        ),
        (bare("/").with("Host", "evil.example"), 403),
        (bare("/").with("Origin", "http://evil.example"), 403),
    ] {
        let answer = request.send_to(shown.address).await;
        let text = answer.text();
        assert_eq!(answer.status, status, "{request:?}: {text}");
        assert!(!text.contains("horse"), "{text}");
        if status != 403 {
            let has = |name| answer.header(name).map(str::to_owned);
            assert_eq!(has("content-security-policy").as_deref(), Some(POLICY));
            assert_eq!(has("x-content-type-options").as_deref(), Some("nosniff"));
            assert_eq!(has("referrer-policy").as_deref(), Some("no-referrer"));
            assert_eq!(has("cache-control").as_deref(), Some("no-store"));
        }
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

/// OP-9
#[tokio::test]
async fn the_token_of_the_page_is_no_token_for_commands() {
    let shown = Shown::with("").await;
    let drain = get("/drain").line("POST /drain HTTP/1.1");
    assert_eq!(drain.send_to(shown.address).await.status, 401);
}

/// OP-9
#[tokio::test]
async fn where_there_is_a_page_the_status_needs_its_token() {
    let shown = Shown::with("").await;
    let bare = get("/status").without("Authorization");
    assert_eq!(bare.send_to(shown.address).await.status, 401);
    assert_eq!(shown.get("/status").await.status, 200);
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused() {
    let shown = Shown::with("").await;
    let large = json!({"key": "x".repeat(1 << 20)});
    assert_eq!(shown.post("/api/explain", &large).await.status, 413);
}

#[tokio::test]
async fn the_status_is_that_of_the_status_command() {
    let shown = Shown::with("").await;
    let page = shown.get("/api/status").await.json();
    let command = shown.get("/status").await.json();
    assert_eq!(page["servers"][0]["name"], "places");
    let keys = |status: &Value| {
        status
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    let mut others = keys(&page);
    others.retain(|key| {
        !["calls", "writes", "retries", "keys", "failures", "recent"].contains(&&**key)
    });
    assert_eq!(others, keys(&command));
}
