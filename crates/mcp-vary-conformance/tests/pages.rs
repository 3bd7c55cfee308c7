//! What is made from the checks is up to date.

use std::fs;
use std::path::Path;

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
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/traceability");
    assert_eq!(
        fs::read_dir(&directory).unwrap().count(),
        traceability::FILES.len()
    );
    for (file, source) in traceability::FILES {
        let text = fs::read_to_string(directory.join(file)).unwrap();
        let expected = traceability::updated(&text, source).unwrap();
        assert_eq!(text, expected, "{file} is not up to date; {WRITE}");
    }
}
