//! The five sets of rows in compact form, as every kind of client reads them.

use std::collections::BTreeSet;

use crate::support::*;

const SETS: [&str; 5] = ["connections", "issues", "logs", "staff", "stations"];

/// The set `name`: its value, its list of rows, and the key of each.
fn set(name: &str) -> (Value, String, String) {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../mcp-vary/tests/fixtures/rows"
    );
    let text = std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap();
    let mut set = cell(&text);
    let text = |key: &str| set[key].as_str().unwrap().to_owned();
    let (list, key) = (text("rows"), text("key"));
    (set["structuredContent"].take(), list, key)
}

/// A server with a tool for each set.
fn server() -> Script {
    Script::legacy("rows").tools(&SETS).on_call(|params| {
        let (value, _, _) = set(params["name"].as_str().unwrap());
        json!({"content": [{"type": "text", "text": value.to_string()}], "structuredContent": value})
    })
}

/// Asserts that each key is read inline up to 500 rows, and all rows, page by page, where the link leads. One client does
/// all of it, since only the session that got a result may read it.
async fn reads(harness: &Harness, client_kind: ClientKind, name: &str, tags: &[&str]) {
    let at = format!("{name} {client_kind:?} {tags:?}");
    let declared = features(tags);
    let mut client = Client::open(harness, client_kind, &declared).await;
    let sent = client.ask("tools/call", tool(name)).await["result"].take();
    let (value, list, key) = set(name);
    let rows = value[&list].as_array().unwrap();

    let blocks = sent["content"].as_array().unwrap();
    let mut inline = texts(&sent);
    // What stands beside a text is for programs.
    let structured = sent["structuredContent"].to_string();
    if tags.contains(&"agent") {
        inline.push(&structured);
    }
    let read_of_it: usize = inline.iter().map(|text| text.len()).sum();
    assert!(
        read_of_it * 2 < value.to_string().len(),
        "{at}: {read_of_it} bytes"
    );
    let is_edge = |c: char| !c.is_alphanumeric() && c != '-';
    let terms: BTreeSet<&str> = inline.iter().flat_map(|text| text.split(is_edge)).collect();
    for row in rows.iter().take(500) {
        let key = row[&key]
            .as_str()
            .map_or_else(|| row[&key].to_string(), str::to_owned);
        assert!(terms.contains(key.as_str()), "{at}: {key}");
    }

    let link = blocks.iter().find(|block| block["type"] == "resource_link");
    let uri = link.unwrap_or_else(|| panic!("{at}: no link"))["uri"]
        .as_str()
        .unwrap();
    let (mut read, mut next) = (Vec::new(), Some(format!("{uri}?pointer=/{list}")));
    let mut pages = 0;
    while let Some(uri) = next {
        let params = json!({"uri": uri});
        let part = client.ask("resources/read", params).await["result"].take();
        let page = cell(part["contents"][0]["text"].as_str().unwrap());
        read.extend(page.as_array().unwrap().clone());
        next = part["contents"][1]["uri"].as_str().map(str::to_owned);
        pages += 1;
    }
    assert_eq!(read, *rows, "{at}");
    assert!(pages > 1 || rows.len() <= 500, "{at}: {pages} pages");
}

/// CN-13: every row's key inline up to 500 rows, every row where the link leads, over each way and in each era.
#[tokio::test]
async fn every_row_is_reached_over_every_way() {
    let harness = Harness::of_server(server()).await;
    for way in ClientKind::ALL {
        for name in ["connections", "issues", "staff", "stations"] {
            reads(&harness, way, name, &["verbosity=compact"]).await;
        }
    }
}

/// CN-13: in every form.
#[tokio::test]
async fn every_row_is_reached_in_every_form() {
    let harness = Harness::of_server(server()).await;
    for tags in [
        &["format=json", "verbosity=compact"][..],
        &["agent", "format=json", "verbosity=compact"],
        &["human", "verbosity=compact"],
        &["format=text", "verbosity=compact"],
    ] {
        for name in ["connections", "issues"] {
            reads(&harness, ClientKind::HttpModern, name, tags).await;
        }
    }
}

/// CN-13: five thousand rows, too, are read whole.
#[tokio::test]
async fn five_thousand_rows_are_reached() {
    let harness = Harness::of_server(server()).await;
    let kind = ClientKind::StdioLegacy;
    reads(&harness, kind, "logs", &["verbosity=compact"]).await;
}
