//! The address of the endpoint, opened in a browser.

use crate::support::*;

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

fn opened(path: &str) -> HttpRequest {
    let line = format!("GET {path} HTTP/1.1");
    HttpRequest::new("").line(&line).with("Accept", BROWSER)
}

#[tokio::test]
async fn a_browser_gets_the_same_page_whatever_is_behind() {
    let keys = "
auth:
  keys: [{name: ci, sha256: '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'}]
";
    let (open, guarded) = (Shown::with("variants: off").await, Shown::with(keys).await);
    let mut pages = Vec::new();
    for shown in [&open, &guarded] {
        for path in ["/", "/mcp"] {
            let answer = shown.client(&opened(path)).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            let media_type = answer.header("content-type");
            assert_eq!(media_type, Some("text/html; charset=utf-8"));
            let policy = answer.header("content-security-policy").unwrap();
            let strict = "default-src 'none'; base-uri 'none'";
            assert!(policy.starts_with(strict), "{policy}");
            pages.push(answer.text());
        }
    }
    assert!(pages.iter().all(|page| *page == pages[0]));
    let advice = "vary connect cursor http://localhost/mcp --write";
    assert!(pages[0].contains(advice), "{}", pages[0]);
    assert!(!pages[0].contains("places") && !pages[0].contains("standard"));
}

#[tokio::test]
async fn a_client_gets_no_page() {
    let shown = Shown::with("").await;
    for (request, status) in [
        (opened("/mcp").with("Accept", "text/event-stream"), 400),
        (opened("/mcp").with("Accept", "*/*"), 400),
        (opened("/mcp").with("Accept", "application/json"), 406),
        (opened("/mcp").line("DELETE /mcp HTTP/1.1"), 400),
        (opened("/mcp/v/compact"), 400),
        (opened("/other"), 404),
        (opened("/mcp").with("Host", "evil.example"), 403),
    ] {
        let answer = shown.client(&request).await;
        let text = answer.text();
        assert_eq!(answer.status, status, "{request:?}: {text}");
        assert!(!text.contains("<html"), "{text}");
    }
}
