//! The figures of the README and of the first page of the book: what the README's configuration lists, in tokens.

use std::fs;

use mcp_vary_view::model_tool;
use serde_json::Value;

use crate::front::{Front, REPLAY_SERVER, root};

/// The servers of the README's configuration, and their recorded lists.
const SERVERS: &[(&str, &str)] = &[
    ("command: uvx\n    args: [mcp-server-git]", "git"),
    (
        "command: npx\n    args: [-y, \"@modelcontextprotocol/server-filesystem\", \".\"]",
        "filesystem",
    ),
];

/// The README's configuration, with recorded lists in place of its servers.
fn configuration(readme: &str) -> String {
    let (_, remaining) = readme.split_once("```yaml\n").unwrap();
    let (yaml, _) = remaining.split_once("```").unwrap();
    let root = root();
    let root = root.to_str().unwrap();
    SERVERS
        .iter()
        .fold(yaml.to_owned(), |text, (server, list)| {
            assert!(text.contains(server), "{text}");
            let file = format!("{root}/crates/mcp-vary-view/tests/fixtures/tool-lists/{list}.json");
            text.replace(
                server,
                &format!("command: {REPLAY_SERVER}\n    args: [{file}]"),
            )
        })
}

/// What a model gets of the tools.
fn tokens(tools: &[Value]) -> usize {
    let tools: Vec<String> = tools.iter().map(|it| model_tool(&it.to_string())).collect();
    let text = format!("[{}]", tools.join(","));
    mcp_vary_tokens::count(&text)
}

/// A figure with a comma between thousands.
fn with_comma(figure: usize) -> String {
    match figure {
        0..1000 => figure.to_string(),
        _ => format!("{},{:03}", figure / 1000, figure % 1000),
    }
}

#[tokio::test]
async fn the_readme_has_the_tokens_of_each_variant() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let book = fs::read_to_string(root().join("docs/index.md")).unwrap();
    let mut front = Front::with("readme.yaml", &configuration(&readme)).await;
    assert_eq!(front.gateway.unmatched_overrides(), []);
    let whole = tokens(&front.list("standard", "tools").await);
    let mut missing = Vec::new();
    for variant in ["standard", "compact", "reviewer", "agent"] {
        let tools = front.list(variant, "tools").await;
        let tokens = tokens(&tools);
        let percent = (tokens * 200 + whole) / (whole * 2);
        let (count, tokens) = (tools.len(), with_comma(tokens));
        let end = format!("| {count} | {tokens} | {percent} % |");
        for page in [&readme, &book] {
            let row = page
                .lines()
                .find(|line| line.starts_with(&format!("| `{variant}` |")));
            if row.is_none_or(|row| !row.ends_with(&end)) {
                missing.push(format!("`{variant}`: {end}"));
            }
        }
    }
    assert_eq!(missing, [""; 0]);
    front.gateway.close().await;
}
