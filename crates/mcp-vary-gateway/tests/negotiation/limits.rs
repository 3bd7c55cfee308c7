//! Results within the operator's limits.

use crate::support::*;

const ROWS: usize = 200;

fn rows() -> Value {
    let rows = (0..ROWS)
        .map(|at| json!({"id": at, "name": format!("name {at}"), "deep": {"a": {"b": at}}}));
    json!({"rows": rows.collect::<Vec<_>>(), "total": ROWS})
}

/// A server that offers tools alone.
fn server() -> Script {
    let closed = json!({"type": "object", "properties": {"rows": {}, "total": {}}, "additionalProperties": false});
    let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
    let text = json!({"type": "text", "text": rows().to_string()});
    Script::legacy("rows")
        .lists(json!({"tools": [
            {"name": "rows", "inputSchema": {"type": "object"}},
            {"name": "bound", "inputSchema": {"type": "object"}, "outputSchema": closed},
            {"name": "prose", "inputSchema": {"type": "object"}},
            {"name": "fail", "inputSchema": {"type": "object"}},
        ]}))
        .on_call(move |params| match params["name"].as_str().unwrap() {
            "prose" => {
                json!({"content": [{"type": "text", "text": "One sentence. ".repeat(1000)}]})
            }
            "fail" => json!({"content": [text], "isError": true}),
            _ => json!({"content": [image, text], "structuredContent": rows()}),
        })
}

async fn result(harness: &Harness, tags: &[&str], name: &str) -> Value {
    harness
        .result_of(ClientKind::HttpModern, tags, "tools/call", tool(name))
        .await
}

/// CN-13, CN-20: of any array so many whole elements go out, counted and linked to the rest, in both fields.
#[tokio::test]
async fn rows_are_cut_where_the_operator_says() {
    let harness = Harness::ruled(server(), "- {tools: [rows], limits: {elements: 3}}").await;
    let told = result(&harness, &["format=json"], "rows").await;
    let few: Value = serde_json::from_str(texts(&told)[0]).unwrap();
    let all = rows();
    let expected = &all["rows"].as_array().unwrap()[..3];
    assert_eq!(few["rows"].as_array().unwrap()[..], *expected);
    assert_eq!(
        (&few["total"], &told["structuredContent"]["rows"]),
        (&json!(ROWS), &few["rows"])
    );
    let uri = link(&told);
    let said = format!("/rows: 3 of 200 elements; {uri}?pointer=/rows&offset=3");
    assert_eq!(texts(&told)[1], said);
    assert_eq!(told["structuredContent"]["vary/leftOut"], json!([said]));
    told.has("/content/0/type", "image");
    let params = json!({"uri": format!("{uri}?pointer=/rows&offset=3&limit=1")});
    let read = harness
        .ask_with(
            ClientKind::HttpModern,
            &["format=json"],
            "resources/read",
            params,
        )
        .await;
    let row = read["result"]["contents"][0]["text"].as_str().unwrap();
    let row: Value = serde_json::from_str(row).unwrap();
    assert_eq!(row, json!([rows()["rows"][3]]));
}

/// CN-7: a limit is for those that its rule is for; others get the bytes that the server sent.
#[tokio::test]
async fn a_limit_is_for_those_that_its_rule_is_for() {
    let all = rows().to_string();
    for (rule, tags, is_cut) in [
        ("{limits: {elements: 3}}", &[][..], false),
        ("{limits: {elements: 3}, for: everyone}", &[], true),
        ("{limits: {elements: 3}, when: agent}", &["human"], false),
        ("{limits: {elements: 3}, when: agent}", &["agent"], true),
        ("{limits: {elements: 200}, for: everyone}", &[], false),
    ] {
        let harness = Harness::ruled(server(), &format!("- {rule}")).await;
        let told = result(&harness, tags, "rows").await;
        assert_eq!(
            told.to_string().contains("vary://result/"),
            is_cut,
            "{rule} {tags:?}"
        );
        if tags.is_empty() {
            assert_eq!(texts(&told)[0] == all, !is_cut, "{rule}");
            assert_eq!(told.get("_meta"), None, "{rule}");
        }
    }
}

/// TR-4: a value whose schema has no room for a cut is cut in `content` alone.
#[tokio::test]
async fn a_schema_without_room_keeps_its_value() {
    let harness =
        Harness::ruled(server(), "- {limits: {elements: 3, tokens: 300, depth: 2}}").await;
    for tags in [&["format=json"][..], &["human"], &["verbosity=compact"]] {
        let told = result(&harness, tags, "bound").await;
        assert_eq!(told["structuredContent"], rows(), "{tags:?}");
        assert!(texts(&told)[0].len() < 1200, "{tags:?}");
        link(&told);
    }
}

/// Tokens bound whatever is said: rows, and an author's text; an error is said whole.
#[tokio::test]
async fn tokens_bound_rows_and_texts() {
    let harness = Harness::ruled(server(), "- {limits: {tokens: 300}, for: everyone}").await;
    for tags in [
        &[][..],
        &["agent", "format=json"],
        &["human"],
        &["human", "verbosity=compact"],
    ] {
        let told = result(&harness, tags, "rows").await;
        let size = texts(&told)
            .concat()
            .len()
            .max(told["structuredContent"].to_string().len());
        assert!(size < 1400, "{tags:?}: {size}");
        link(&told);
        let prose = result(&harness, tags, "prose").await;
        assert!(texts(&prose)[0].len() < 1400, "{tags:?}");
        assert!(texts(&prose)[0].ends_with("sentence. …"), "{tags:?}");
        let params = json!({"uri": link(&prose)});
        let read = harness
            .ask_with(ClientKind::HttpModern, tags, "resources/read", params)
            .await;
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        assert_eq!(text, "One sentence. ".repeat(1000), "{tags:?}");
        let error = result(&harness, tags, "fail").await;
        assert_eq!(texts(&error), [rows().to_string()], "{tags:?}");
    }
}

/// CN-20: a template says the rows that are left; what it cannot say stays whole, and is counted.
#[tokio::test]
async fn a_template_says_the_rows_that_are_left() {
    let rule = r"- {limits: {elements: 2}, project: '.rows | map({id})', markdown: '{% for row in value %}#{{ row.id }} {% endfor %}'}";
    let short = Harness::ruled(server(), rule).await;
    let told = result(&short, &["human"], "rows").await;
    let said = format!("2 of 200 elements; {}?offset=2", link(&told));
    assert_eq!(texts(&told), ["#0 #1", said.as_str()]);
    let params = json!({"uri": format!("{}?offset=199", link(&told))});
    let read = short.ask_with(ClientKind::HttpModern, &["human"], "resources/read", params);
    let read = read.await;
    read.has("/result/contents/0/text", r#"[{"id":199}]"#);

    let rule = r"- {limits: {elements: 2}, project: '.rows', markdown: '{{ value[100].id }}'}";
    let fails = Harness::ruled(server(), rule).await;
    let told = result(&fails, &["human"], "rows").await;
    assert_eq!(texts(&told), ["100"], "as it was said without the limit");
    assert_eq!(fails.gateway.failed_results(), 1);
}

/// A client whose results a limit can shorten is offered resources, so that it can read the rest.
#[tokio::test]
async fn a_limit_for_everyone_offers_resources_to_all() {
    for (rule, tags, is_offered) in [
        ("{limits: {elements: 3}}", &[][..], false),
        ("{limits: {elements: 3}}", &["agent"], true),
        ("{limits: {elements: 3}, for: everyone}", &[], true),
        ("{project: ., for: everyone}", &[], false),
    ] {
        let harness = Harness::ruled(server(), &format!("- {rule}")).await;
        let answer = harness
            .ask_with(ClientKind::HttpModern, tags, "server/discover", json!({}))
            .await;
        let offered = answer["result"]["capabilities"].get("resources").is_some();
        assert_eq!(offered, is_offered, "{rule} {tags:?}");
        let list = harness
            .ask_with(ClientKind::HttpModern, tags, "resources/list", json!({}))
            .await;
        assert_eq!(list.get("result").is_some(), is_offered, "{rule} {tags:?}");
    }
}
