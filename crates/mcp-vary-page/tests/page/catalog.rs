//! What each variant lists and costs.

use crate::support::*;

const VARIANTS: &str = "
variants:
  standard: {}
  compact: {}
  reader:
    description: Only reads.
    from: read-only
    overrides:
      tools: {odd: {name: strange, arguments: {n: {fixed: 3}}}}
  directory: {}
";

fn tool<'c>(catalog: &'c Value, name: &str) -> &'c Value {
    let mut tools = catalog["tools"].as_array().unwrap().iter();
    tools.find(|tool| tool["name"] == name).unwrap()
}

#[tokio::test]
async fn a_catalogue_has_each_tool_in_each_variant() {
    let shown = Shown::with(VARIANTS).await;
    let catalog = shown.get("/api/catalog").await.json();
    assert_eq!(catalog["servers"], json!(["places"]));
    assert_eq!(catalog["baseline"], "standard");
    let variants: Vec<_> = catalog["variants"].as_array().unwrap().iter().collect();
    let ids: Vec<_> = variants
        .iter()
        .map(|variant| variant["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["standard", "compact", "reader", "directory"]);
    for variant in &variants {
        let of = |key: &str| variant[key].as_u64().unwrap();
        assert!(of("tokens") <= of("wholeTokens"), "{variant}");
    }
    assert_eq!(catalog["tools"].as_array().unwrap().len(), 10);
    let odd = tool(&catalog, "odd");
    assert_eq!(odd["annotations"], json!({"readOnlyHint": true}));
    assert_eq!(odd["tokens"], odd["variants"]["standard"]["tokens"]);
    let reader = &odd["variants"]["reader"];
    let changed = json!(["name", "inputSchema"]);
    let expected = json!({"name": "strange", "renamed": true, "fixed": ["n"], "changed": changed});
    assert_members(reader, &expected);
    assert_eq!(odd["variants"]["standard"]["changed"], Value::Null);
    assert_eq!(tool(&catalog, "fail")["variants"]["reader"], Value::Null);
}

#[tokio::test]
async fn figures_that_the_browser_has_are_not_sent_again() {
    let shown = Shown::with("").await;
    let first = shown.get("/api/catalog").await;
    let tag = first.header("etag").unwrap();
    let again = get("/api/catalog")
        .with("If-None-Match", tag)
        .send_to(shown.address)
        .await;
    assert_eq!((again.status, again.text().as_str()), (304, ""));
    let other = get("/api/catalog")
        .with("If-None-Match", "\"x\"")
        .send_to(shown.address)
        .await;
    assert_eq!((other.status, other.text()), (200, first.text()));
}

#[tokio::test]
async fn a_tool_is_shown_as_its_server_wrote_it() {
    let shown = Shown::with(VARIANTS).await;
    let answer = shown.get("/api/tool?server=places&name=odd").await;
    let text = answer.text();
    assert!(text.contains(r#""x-vendor":1.0"#), "{text}");
    let tool = answer.json();
    assert_eq!(tool["original"]["name"], "odd");
    assert_eq!(tool["variants"]["reader"]["name"], "strange");
    let hidden = shown.get("/api/tool?server=places&name=fail").await.json();
    assert_eq!(hidden["variants"]["reader"], Value::Null);
    let named = shown.get("/api/tool?server=places&name=Z%C3%BCrich").await;
    assert_eq!(named.status, 200, "{}", named.text());
    let none = shown.get("/api/tool?server=places&name=none").await;
    assert_eq!(none.status, 404);
    assert!(none.json()["error"].is_string());
}
