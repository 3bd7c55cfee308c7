//! Shortened results, and how a client reads the whole.

use mcp_vary::feature::Features;
use mcp_vary_gateway::ClientRule;
use mcp_vary_view::ResultFields;

use crate::support::*;

/// So many rows that not all of them go out.
const ROWS: usize = 1_000;

fn rows() -> Value {
    let rows = (0..ROWS).map(|at| {
        json!({"id": format!("row-{at}"), "note": "What it is all about, said at some length.", "none": null})
    });
    json!({"rows": rows.collect::<Vec<_>>()})
}

/// A server that offers tools alone.
fn server() -> Script {
    Script::legacy("rows")
        .lists(json!({"tools": [
            {"name": "rows", "inputSchema": {"type": "object"}},
            {"name": "bare", "inputSchema": {"type": "object"}},
            {"name": "bound", "inputSchema": {"type": "object"}, "outputSchema": {
                "type": "object", "required": ["rows"],
                "properties": {"rows": {"type": "array", "minItems": ROWS}}}},
        ]}))
        .on_call(|params| match params["name"].as_str() {
            Some("bare") => json!({"content": [], "structuredContent": rows()}),
            _ => json!({
                "content": [{"type": "text", "text": rows().to_string()}], "structuredContent": rows(),
            }),
        })
}

/// CN-13: what is left out is read through the link, part by part, and is all there.
#[tokio::test]
async fn what_is_left_out_can_be_read() {
    let harness = Harness::of_server(server()).await;
    let declared = features(&["verbosity=compact"]);
    for way in [ClientKind::HttpModern, ClientKind::StdioModern] {
        let call = ask_as(&harness, way, &declared, "tools/call", tool("rows")).await;
        let result = &call["result"];
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.len() * 2 < rows().to_string().len(), "{}", text.len());
        let uri = link(result);
        let (mut read, mut next) = (Vec::new(), format!("{uri}?pointer=/rows"));
        loop {
            let params = json!({"uri": next});
            let part = way.ask(&harness, &declared, "resources/read", params).await;
            let contents = part["result"]["contents"].as_array().unwrap();
            contents[0].has("/mimeType", "application/json");
            let text = contents[0]["text"].as_str().unwrap();
            let page: Vec<Value> = serde_json::from_str(text).unwrap();
            read.extend(page);
            match contents.get(1) {
                Some(more) => next = more["uri"].as_str().unwrap().to_owned(),
                None => break,
            }
        }
        assert_eq!(Value::from(read), rows()["rows"]);
    }
}

/// CN-13, CN-9: the notice and the link stand in `content`, even for an agent that reads JSON alone.
#[tokio::test]
async fn an_agent_is_told_what_is_missing() {
    let harness = Harness::of_server(server()).await;
    let declared = features(&["agent", "format=json", "verbosity=compact"]);
    let call = ask_modern_as(&harness, &declared, "tools/call", tool("rows")).await;
    link(&call["result"]);
    let found = &call["result"]["_meta"]["vary/applied"]["verbosity"];
    assert_eq!(*found, "compact");
    let bound = ask_modern_as(&harness, &declared, "tools/call", tool("bound")).await;
    let rows = bound["result"]["structuredContent"]["rows"].as_array();
    assert_eq!(
        rows.unwrap().len(),
        ROWS,
        "the listed schema asks for all of them"
    );
}

/// CN-13: a client that gets the text alone reads what is left of the value there, and not merely what is missing,
/// even where it asked for the value, or the server gave no text.
#[tokio::test]
async fn who_gets_the_text_alone_reads_more_than_what_is_missing() {
    let variant = |id: &str| VariantConfig::new(ServerVariant::new(id.parse().unwrap(), "x"));
    let harness = Harness::with_server(server(), |config| {
        let mut words = variant("words");
        words.style.result = ResultFields::Content;
        let all = vec![variant("all"), words];
        config.with_variants_of(all).unwrap()
    })
    .await;
    for tags in [
        &["verbosity=compact"][..],
        &["agent", "format=json", "verbosity=compact"],
    ] {
        for name in ["rows", "bare"] {
            let params = under("words", tool(name));
            let call = ask_modern_as(&harness, &features(tags), "tools/call", params).await;
            let result = &call["result"];
            assert_eq!(result.get("structuredContent"), None, "{tags:?} {name}");
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("row-499"), "{tags:?} {name}: {text:.200}");
            link(result);
        }
    }
}

/// What a session got is that session's; whoever has none goes by the URI, which nobody guesses.
#[tokio::test]
async fn one_session_reads_nothing_of_another() {
    let harness = Harness::of_server(server()).await;
    let declared = features(&["verbosity=compact"]);
    let mut mine = LegacyClient::open(&harness, "2025-11-25", &declared).await;
    let mut other = LegacyClient::open(&harness, "2025-11-25", &declared).await;
    let call = mine.answer("tools/call", tool("rows")).await;
    let uri = link(&call["result"]);
    let params = json!({"uri": uri});
    let read = mine.answer("resources/read", params.clone()).await;
    assert!(read["result"]["contents"][0]["text"].is_string(), "{read}");
    let refused = other.answer("resources/read", params.clone()).await;
    refused.has("/error/code", -32002);
    let unknown = json!({"uri": "vary://result/00000000000000000000000000000000"});
    let nothing = other.answer("resources/read", unknown).await;
    let found = &refused["error"]["message"];
    assert_eq!(*found, nothing["error"]["message"], "as if there were none");
}

/// A part that is none says what to write.
#[tokio::test]
async fn a_part_that_is_none_is_refused() {
    let harness = Harness::of_server(server()).await;
    let declared = features(&["verbosity=compact"]);
    let call = ask_modern_as(&harness, &declared, "tools/call", tool("rows")).await;
    let uri = link(&call["result"]);
    for (query, why) in [
        ("limit=0", "write `pointer=/rows&offset=0&limit=50`"),
        ("pointer=/nothing", "omit the pointer"),
        ("pointer=/rows&offset=9999", "begin before that"),
    ] {
        let params = json!({"uri": format!("{uri}?{query}")});
        let read = ask_modern_as(&harness, &declared, "resources/read", params).await;
        read.fails(-32602, why);
    }
}

/// The capabilities that a gateway declares to a client of `declared`.
async fn offered(harness: &Harness, kind: ClientKind, declared: &Value) -> Value {
    let result = kind.introduction(harness, declared).await;
    assert!(result["capabilities"]["tools"].is_object(), "{result}");
    result["capabilities"].clone()
}

/// The results of both lists of resources, or the codes of their errors.
async fn resource_lists(harness: &Harness, kind: ClientKind, declared: &Value) -> [Value; 2] {
    let list = async |method: &str, key: &str| {
        let answer = kind.ask(harness, declared, method, json!({})).await;
        match &answer["error"] {
            Value::Null => answer["result"][key].clone(),
            error => error["code"].clone(),
        }
    };
    let resources = list("resources/list", "resources").await;
    [
        resources,
        list("resources/templates/list", "resourceTemplates").await,
    ]
}

/// CN-16, SV-11: a client may read what was left out of its results, whatever tags it declares; a client without the
/// extension sees what the servers have.
#[tokio::test]
async fn tags_change_no_capability() {
    let harness = Harness::of_server(server()).await;
    for way in ClientKind::ALL {
        let usual = offered(&harness, way, &features(&["agent"])).await;
        assert_eq!(usual["resources"], json!({}), "{way:?}");
        for tags in [&[][..], &["human", "!agent"], &["verbosity=compact"]] {
            let declared = features(tags);
            let found = offered(&harness, way, &declared).await;
            assert_eq!(found, usual, "{way:?} {tags:?}");
            let lists = resource_lists(&harness, way, &declared).await;
            assert_eq!(lists, [json!([]), json!([])], "{way:?} {tags:?}");
        }
        let mut without = usual;
        without.as_object_mut().unwrap().remove("resources");
        assert_eq!(offered(&harness, way, &json!({})).await, without, "{way:?}");
        let lists = resource_lists(&harness, way, &json!({})).await;
        assert_eq!(lists, [json!(-32601), json!(-32601)], "{way:?}");
    }
}

/// SV-11: where a variant, or a rule about clients, asks for few words, every client is offered resources, before it
/// has chosen a variant, too.
#[tokio::test]
async fn a_variant_that_shortens_results_offers_resources_to_all() {
    let short = Arc::new(Features::from_tags(["verbosity=compact"]).0);
    for by_rule in [true, false] {
        let harness = Harness::with_server(server(), |mut config| {
            if by_rule {
                let mut rule = ClientRule::default();
                rule.features = Some(Arc::clone(&short));
                config.selection.rules.push(rule);
                return config;
            }
            let mut face = VariantConfig::new(ServerVariant::new("short".parse().unwrap(), "Few."));
            face.features = Some(Arc::clone(&short));
            config.with_variants_of(vec![face]).unwrap()
        })
        .await;
        for way in ClientKind::ALL {
            let capabilities = offered(&harness, way, &json!({})).await;
            assert_eq!(capabilities["resources"], json!({}), "{way:?} {by_rule}");
            let lists = resource_lists(&harness, way, &json!({})).await;
            assert_eq!(lists, [json!([]), json!([])], "{way:?} {by_rule}");
        }
    }
}

/// Nothing is kept where there is no room for it: then nothing is said to be readable.
#[tokio::test]
async fn without_room_there_is_no_link() {
    let harness =
        Harness::with_server(server(), edited(|config| config.limits.result_store = 0)).await;
    let declared = features(&["verbosity=compact"]);
    let call = ask_modern_as(&harness, &declared, "tools/call", tool("rows")).await;
    assert!(!call["result"].to_string().contains("vary://"));
}
