//! What leads back to an earlier request belongs to its principal: to another it is unknown.

use std::num::NonZeroUsize;

use super::clients::{Session, ask_modern, bearer, claims, for_ann_and_eve, key, tokens};
use crate::support::people::PersonClient;
use crate::support::*;

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A modern server whose tools ask for input, become tasks, and return much.
fn server() -> Script {
    let task = json!({"resultType": "task", "taskId": "t-1", "status": "working", "ttlMs": 60_000});
    let working = task.clone();
    Script::new(Era::Modern, "binding")
        .declares(json!({"extensions": {TASKS: {}}}))
        .tools(&["ask", "job", "rows"])
        .on_call(move |params| match params["name"].as_str() {
            Some("ask") if params["requestState"].is_null() => json!({
                "resultType": "input_required", "requestState": "asked",
                "inputRequests": {"who": {"method": "elicitation/create", "params": {"message": "Who?"}}},
            }),
            Some("job") => working.clone(),
            Some("rows") => {
                let rows: Vec<_> = (0..1_000).collect();
                json!({"resultType": "complete", "content": [{"type": "text", "text": json!(rows).to_string()}]})
            }
            _ => json!({"resultType": "complete", "content": []}),
        })
        .result("tasks/get", task)
}

/// A modern client that declares all that the server needs.
async fn modern_client(harness: &Harness) -> PersonClient {
    let capabilities = json!({
        "elicitation": {}, "extensions": {
            TASKS: {}, "io.modelcontextprotocol/content-negotiation": {"features": ["verbosity=compact"]},
        },
    });
    PersonClient::open(harness.address, Era::Modern, "", capabilities).await
}

/// A response without what a client wrote itself, for comparison.
fn seen(answer: &HttpResponse) -> (u16, String) {
    (answer.status, answer.text())
}

#[tokio::test]
async fn the_session_of_another_is_unknown() {
    let harness = Harness::with(for_ann_and_eve).await;
    let mut session = Session::open(&harness, &key("ann"), &json!({})).await;
    let mut unknown = Session::open(&harness, &key("ann"), &json!({})).await;
    unknown.id.replace_range(0..2, "__");
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", tool("odd")),
        ("ping", json!({})),
    ] {
        let of_another = session.ask(&key("eve"), method, params.clone()).await;
        let of_nobody = unknown.ask(&key("eve"), method, params).await;
        assert_eq!(seen(&of_another), seen(&of_nobody), "{method}");
        assert_eq!(of_another.status, 404, "{method}");
    }
    for line in ["GET /mcp HTTP/1.1", "DELETE /mcp HTTP/1.1"] {
        let request = |id: &str| {
            let request = HttpRequest::of(id, "").line(line);
            bearer(request.with("Last-Event-ID", "0-0"), &key("eve"))
        };
        let mut http = harness.connect().await;
        let of_another = http.ask(&request(&session.id)).await;
        let mut http = harness.connect().await;
        let of_nobody = http.ask(&request(&unknown.id)).await;
        assert_eq!(seen(&of_another), seen(&of_nobody), "{line}");
        assert_eq!(of_another.status, 404, "{line}");
    }
    let answer = session.ask(&key("ann"), "ping", json!({})).await;
    assert_eq!(answer.status, 200, "it is still ann's");
}

/// A session that was opened while clients were not authenticated belongs to none of them.
#[tokio::test]
async fn a_session_of_nobody_is_unknown_to_those_who_are_known() {
    let harness = Harness::start().await;
    let client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let mut config = config(Target::http(harness.peer.url.clone()));
    config = for_ann_and_eve(config);
    harness.reload(config).await;
    let mut session = Session {
        http: harness.connect().await,
        id: client.session.clone(),
    };
    let found = session.ask(&key("ann"), "ping", json!({})).await.status;
    assert_eq!(found, 404);
}

#[tokio::test]
async fn the_cursor_of_another_is_a_forged_one() {
    let one = NonZeroUsize::new(1).unwrap();
    let harness = Harness::with_server(server(), |config| {
        for_ann_and_eve(config.with_page_size(one))
    })
    .await;
    let client = modern_client(&harness).await;
    let page = async |who: &str, cursor: Value| {
        client
            .ask(&key(who), "tools/list", json!({"cursor": cursor}))
            .await
    };
    let first = client.ask(&key("ann"), "tools/list", json!({})).await;
    let cursor = first["result"]["nextCursor"].clone();
    assert!(cursor.is_string(), "{first}");
    let of_another = page("eve", cursor.clone()).await;
    assert_eq!(of_another, page("eve", json!("forged")).await);
    of_another.has("/error/code", -32602);
    assert_eq!(
        page("ann", cursor).await["result"]["tools"][0]["name"],
        "job"
    );
}

#[tokio::test]
async fn a_cursor_of_a_session_is_bound_to_its_principal() {
    let one = NonZeroUsize::new(1).unwrap();
    let harness = Harness::with_server(server(), |config| {
        for_ann_and_eve(config.with_page_size(one))
    })
    .await;
    let mut of_ann = Session::open(&harness, &key("ann"), &json!({})).await;
    let mut of_eve = Session::open(&harness, &key("eve"), &json!({})).await;
    let params = json!({});
    let first = of_ann.ask(&key("ann"), "tools/list", params).await.json();
    let cursor = json!({"cursor": first["result"]["nextCursor"]});
    let of_another = of_eve
        .ask(&key("eve"), "tools/list", cursor.clone())
        .await
        .json();
    let forged = json!({"cursor": "forged"});
    let expected = of_eve.ask(&key("eve"), "tools/list", forged).await.json();
    assert_eq!(of_another, expected);
    let answer = of_ann.ask(&key("ann"), "tools/list", cursor).await.json();
    assert!(answer["result"]["tools"].is_array(), "{answer}");
}

#[tokio::test]
async fn the_request_state_of_another_is_a_forged_one() {
    let harness = Harness::with_server(server(), for_ann_and_eve).await;
    let client = modern_client(&harness).await;
    let required = client.ask(&key("ann"), "tools/call", tool("ask")).await;
    let state = required["result"]["requestState"].clone();
    let back = async |who: &str, state: Value| {
        let mut params = tool("ask");
        params["requestState"] = state;
        params["inputResponses"] = json!({"who": {"action": "accept", "content": {}}});
        client.ask(&key(who), "tools/call", params).await
    };
    let of_another = back("eve", state.clone()).await;
    assert_eq!(of_another, back("eve", json!("forged")).await);
    of_another.has("/error/message", "Invalid request state");
    assert_eq!(back("ann", state).await["result"]["content"], json!([]));
}

#[tokio::test]
async fn the_task_of_another_is_unknown() {
    let harness = Harness::with_server(server(), for_ann_and_eve).await;
    let client = modern_client(&harness).await;
    let created = client.ask(&key("ann"), "tools/call", tool("job")).await;
    let task = created["result"]["taskId"].clone();
    assert!(task.is_string(), "{created}");
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let about = |task: Value| json!({"taskId": task, "inputResponses": {}});
        let of_another = client.ask(&key("eve"), method, about(task.clone())).await;
        let of_nobody = client
            .ask(&key("eve"), method, about(json!("forged")))
            .await;
        assert_eq!(of_another, of_nobody, "{method}");
        assert!(of_another["error"].is_object(), "{of_another}");
    }
    let known = client
        .ask(&key("ann"), "tasks/get", json!({"taskId": task}))
        .await;
    known.has("/result/status", "working");
    assert_eq!(harness.peer.of("tasks/cancel").len(), 0);
}

#[tokio::test]
async fn the_stored_result_of_another_is_unknown() {
    let harness = Harness::with_server(server(), |config| {
        for_ann_and_eve(config.with_read_result(true))
    })
    .await;
    let client = modern_client(&harness).await;
    let whole = client.ask(&key("ann"), "tools/call", tool("rows")).await;
    let uri = link(&whole["result"]).to_owned();
    let unknown = format!("vary://result/{}", "0".repeat(32));
    for reading in [
        |uri: &str| ("resources/read", json!({"uri": uri})),
        |uri: &str| {
            (
                "tools/call",
                json!({"name": "read_result", "arguments": {"uri": uri}}),
            )
        },
    ] {
        let (method, params) = reading(&uri);
        let of_another = client.ask(&key("eve"), method, params).await;
        let (method, params) = reading(&unknown);
        let of_nobody = client.ask(&key("eve"), method, params).await;
        let of_nobody = of_nobody.to_string().replace(&unknown, &uri);
        assert_eq!(of_another.to_string(), of_nobody, "{method}");
    }
    let read = client
        .ask(&key("ann"), "resources/read", json!({"uri": uri}))
        .await;
    assert!(read["result"]["contents"].is_array(), "{read}");
}

/// A principal may read in one session what it stored in another.
#[tokio::test]
async fn the_sessions_of_a_principal_share_stored_results() {
    let harness = Harness::with_server(server(), for_ann_and_eve).await;
    let few = features(&["verbosity=compact"]);
    let mut one = Session::open(&harness, &key("ann"), &few).await;
    let arguments = tool("rows");
    let whole = one.ask(&key("ann"), "tools/call", arguments).await.json();
    let params = json!({"uri": link(&whole["result"])});
    let mut two = Session::open(&harness, &key("ann"), &few).await;
    let read = two
        .ask(&key("ann"), "resources/read", params.clone())
        .await
        .json();
    assert!(read["result"]["contents"].is_array(), "{read}");
    let mut of_eve = Session::open(&harness, &key("eve"), &few).await;
    let read = of_eve
        .ask(&key("eve"), "resources/read", params)
        .await
        .json();
    assert!(read["error"].is_object(), "{read}");
}

#[tokio::test]
async fn a_refreshed_token_goes_on_with_everything() {
    let server = AuthorizationServer::start().await;
    let authentication = tokens(&server);
    let harness = Harness::with(|config| {
        let mut config = config.with_page_size(NonZeroUsize::new(1).unwrap());
        config.authentication = Some(authentication);
        config
    });
    let harness = harness.await;
    let first = server.sign(claims("ann"));
    let mut refreshed = claims("ann");
    refreshed["groups"] = json!(["sre"]);
    refreshed["jti"] = json!("2");
    let refreshed = server.sign(refreshed);
    let mut session = Session::open(&harness, &first, &json!({})).await;
    let page = session.ask(&first, "tools/list", json!({})).await.json();
    let cursor = json!({"cursor": page["result"]["nextCursor"]});
    let page = session
        .ask(&refreshed, "tools/list", cursor.clone())
        .await
        .json();
    page.has("/result/tools/0/name", "bound");
    let page = ask_modern(&harness, &refreshed, "tools/list", cursor)
        .await
        .json();
    page.has("/result/tools/0/name", "bound");
    let other = server.sign(claims("eve"));
    assert_eq!(session.ask(&other, "ping", json!({})).await.status, 404);
}
