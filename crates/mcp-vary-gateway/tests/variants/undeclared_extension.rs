//! A client that never heard of server variants: it gets what it would get without them.

use crate::support::*;

const LEGACY: [ClientKind; 2] = [ClientKind::HttpLegacy, ClientKind::StdioLegacy];

/// Changes the tools, and then the prompts; returns the variants that the client is notified of about the tools.
async fn notified_of(stage: &ChangingServer, client: &mut NotificationClient) -> Vec<String> {
    stage.set_tools(&["first", "second"]);
    stage.notify_list_changed("tools");
    let mut variants = Vec::new();
    let (_, first, _) = soon(client.change()).await;
    variants.extend(first);
    // Whatever else concerns the tools comes before this.
    stage.set_prompts(&["greet", "part"]);
    stage.notify_list_changed("prompts");
    loop {
        let (list, variant, _) = soon(client.change()).await;
        match &*list {
            "tools/list_changed" => variants.extend(variant),
            _ => return variants,
        }
    }
}

fn with_prompts() -> ChangingServer {
    let stage = ChangingServer::new(Era::Legacy);
    let changes = json!({"listChanged": true});
    stage.declare(json!({"tools": changes, "prompts": changes}));
    stage
}

/// SV-16: one change of a list is one notification, as without a gateway.
#[tokio::test]
async fn one_change_is_one_notification() {
    for way in LEGACY {
        let stage = with_prompts();
        let harness = Harness::changing(&stage).await;
        let what = (everything(&[]), None);
        let mut client = NotificationClient::listening_as(&harness, way, what, &json!({})).await;
        let expected = ["standard"];
        assert_eq!(notified_of(&stage, &mut client).await, expected, "{way:?}");
    }
}

/// SV-16: also of a variant that the client selects by the way.
#[tokio::test]
async fn a_variant_that_it_selects_counts() {
    for way in LEGACY {
        let stage = with_prompts();
        let harness = Harness::changing(&stage).await;
        let what = (everything(&[]), None);
        let mut client = NotificationClient::listening_as(&harness, way, what, &json!({})).await;
        let listed = under("compact", json!({}));
        soon(client.ask("tools/list", listed)).await;
        let mut expected = vec!["standard", "compact"];
        let mut found = Vec::new();
        stage.set_tools(&["first", "second"]);
        stage.notify_list_changed("tools");
        for _ in 0..2 {
            found.push(soon(client.change()).await);
        }
        expected.retain(|variant| !found.contains(&changed("tools", variant)));
        assert!(expected.is_empty(), "{way:?}: {found:?}");
    }
}

/// The address of a variant makes it the only one that the client is notified of.
#[tokio::test]
async fn at_the_address_of_a_variant_one_change_is_one_notification() {
    let stage = with_prompts();
    let harness = Harness::changing(&stage).await;
    let line = |verb: &str| format!("{verb} /mcp/v/compact HTTP/1.1");
    let mut http = RawHttp::connect(harness.address()).await;
    let open = HttpRequest::initialize(&json!({}));
    let opened = http.ask(&open.line(&line("POST"))).await;
    let id = opened.header("mcp-session-id").unwrap().to_owned();
    let get = HttpRequest::of(&id, "").line(&line("GET"));
    http.open_stream(&get).await;
    stage.set_tools(&["first", "second"]);
    stage.notify_list_changed("tools");
    let first = soon(http.event()).await.unwrap();
    stage.set_prompts(&["greet", "part"]);
    stage.notify_list_changed("prompts");
    let second = soon(http.event()).await.unwrap();
    let name = |message: &Value| {
        message["params"]["_meta"]["io.modelcontextprotocol/server-variant"].clone()
    };
    first.has("/method", "notifications/tools/list_changed");
    second.has("/method", "notifications/prompts/list_changed");
    assert_eq!([name(&first), name(&second)], ["compact", "compact"]);
}

/// SV-12: an error of the server names the active variant to clients that know of variants, and is as the server wrote
/// it for others.
#[tokio::test]
async fn an_error_of_the_server_stays_as_it_is() {
    let refuse = |seen: &ReceivedRequest| seen.refuse(200, -32602, "no");
    let script = places_server::script(Era::Legacy)
        .reply("resources/read", refuse)
        .reply("resources/subscribe", refuse);
    let harness = Harness::of_server(script).await;
    let read = json!({"uri": "place:none"});
    let no = |data: Value| {
        if data.is_null() {
            json!({"code": -32602, "message": "no"})
        } else {
            json!({"code": -32602, "message": "no", "data": data})
        }
    };
    let named = |id: &str| no(json!({"activeVariant": id}));
    for way in ClientKind::ALL {
        for (capabilities, params, expected) in [
            (json!({}), read.clone(), no(Value::Null)),
            (json!({}), under("compact", read.clone()), named("compact")),
            (declaring_variants(), read.clone(), named("standard")),
        ] {
            let answer = ask_as(&harness, way, &capabilities, "resources/read", params).await;
            assert_eq!(answer["error"], expected, "{way:?} {capabilities}");
        }
    }
    let at_address = HttpRequest::modern_request("resources/read", read.clone())
        .line("POST /mcp/v/compact HTTP/1.1");
    let mut http = RawHttp::connect(harness.address()).await;
    assert_eq!(
        http.ask(&at_address).await.json()["error"],
        named("compact")
    );
    let open = HttpRequest::initialize(&json!({}));
    let id = http
        .ask(&open)
        .await
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    let subscribe = request(json!(1), "resources/subscribe", read).to_string();
    let answer = http.ask(&HttpRequest::of(&id, subscribe)).await.json();
    answer.has("/error", no(Value::Null));
}
