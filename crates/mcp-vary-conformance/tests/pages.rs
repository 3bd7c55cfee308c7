//! What is made from the checks is up to date.

use mcp_vary_conformance::{registry, traceability};

const WRITE: &str = "run `cargo run -p mcp-vary-conformance --example pages`";

#[test]
fn the_page_lists_the_checks() {
    let page = include_str!("../../../docs/internals/checks.md");
    for list in [
        registry::to_markdown(registry::checks()),
        registry::to_markdown(registry::client_checks()),
    ] {
        assert!(
            page.contains(&format!("\n{list}\n")),
            "docs/internals/checks.md is not up to date; {WRITE}"
        );
    }
}

#[test]
fn each_document_has_its_traceability() {
    let files = [
        include_str!("../../../spec/traceability/sep-2053.yaml"),
        include_str!("../../../spec/traceability/sep-2133.yaml"),
        include_str!("../../../spec/traceability/content-negotiation.yaml"),
        include_str!("../../../spec/traceability/tool-result-visibility.yaml"),
    ];
    for (document, text) in traceability::documents().zip(files) {
        assert_eq!(
            text,
            document.to_yaml(),
            "{} is not up to date; {WRITE}",
            document.file()
        );
    }
    assert_eq!(traceability::documents().count(), files.len());
}
