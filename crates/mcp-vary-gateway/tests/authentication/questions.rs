//! What a server asks is answered by the principal whose call it is, and by nobody else.

use super::clients::{Session, bearer, for_ann_and_eve, key};
use crate::support::*;

/// A legacy server whose tool asks its client, and returns the answer.
fn server() -> Script {
    type Call = (UnboundedSender<Bytes>, ReceivedRequest);
    let open = Arc::<Mutex<Vec<Call>>>::default();
    let calls = Arc::clone(&open);
    Script::legacy("asking")
        .declares(json!({"tools": {"listChanged": true}}))
        .tools(&["ask"])
        .in_sessions(|_| "s".to_owned())
        .reply("tools/call", move |seen| {
            let (stream, reply) = Reply::stream();
            let params = json!({"message": "Who?", "requestedSchema": {"type": "object"}});
            let question = request(json!(7), "elicitation/create", params);
            let _ = stream.send(event(&question).into());
            calls.lock().unwrap().push((stream, seen.clone()));
            reply
        })
        .may_reply("POST", move |seen| {
            if seen.id() != 7 {
                return None;
            }
            let (stream, call) = open.lock().unwrap().pop()?;
            let reported = json!({"content": [], "reply": seen.body["result"]});
            let _ = stream.send(event(&call.message(&reported)).into());
            Some(Reply::new(202, "text/plain", ""))
        })
}

/// The answers that the server got to its questions.
fn replies(harness: &Harness) -> Vec<Value> {
    let received = harness.peer.received();
    let replies = received.iter().filter(|it| it.body["id"] == 7);
    replies.map(|it| it.body["result"].clone()).collect()
}

fn accepts(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// A modern client gets the question as a result, and the call is suspended until its principal sends the answer.
#[tokio::test]
async fn the_suspended_call_of_another_is_unknown() {
    let harness = Harness::with_server(server(), for_ann_and_eve).await;
    let ask = async |who: &str, params: Value| {
        let capabilities = json!({"elicitation": {}});
        let message = modern(json!(1), "tools/call", params, &capabilities);
        let mut http = RawHttp::connect(harness.address()).await;
        let post = bearer(HttpRequest::modern(&message), &key(who));
        http.ask(&post).await.json()
    };
    let asked = ask("ann", tool("ask")).await;
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let requests = result["inputRequests"].as_object().unwrap();
    let question = requests.keys().next().unwrap();
    let retry = |state: &Value, name: &str| {
        let mut params = tool("ask");
        params["requestState"] = state.clone();
        params["inputResponses"] = json!({question: accepts(name)});
        params
    };
    let state = &result["requestState"];
    let of_another = ask("eve", retry(state, "Eve")).await;
    let forged = ask("eve", retry(&json!("forged"), "Eve")).await;
    assert_eq!(of_another, forged);
    of_another.has("/error/code", -32602);
    of_another.has("/error/message", "Invalid request state");
    assert_eq!(replies(&harness), [Value::Null; 0], "it reached the server");

    let done = ask("ann", retry(state, "Ann")).await;
    done.has("/result/reply", accepts("Ann"));
    assert_eq!(replies(&harness), [accepts("Ann")]);
}

/// A legacy client gets the question on the stream of its call.
#[tokio::test]
async fn a_question_to_another_cannot_be_answered() {
    let harness = Harness::with_server(server(), for_ann_and_eve).await;
    let capabilities = json!({"elicitation": {}});
    let of_ann = Session::open(&harness, &key("ann"), &capabilities).await;
    let of_eve = Session::open(&harness, &key("eve"), &capabilities).await;
    let call = request(json!(1), "tools/call", tool("ask"));
    let mut stream = harness.connect().await;
    let post = bearer(HttpRequest::of(&of_ann.id, call.to_string()), &key("ann"));
    stream.send(&post.bytes()).await;
    assert_eq!(stream.head().await.status, 200);
    let question = soon(stream.event()).await.unwrap();
    question.has("/method", "elicitation/create");

    let reply = async |session: &Session, who: &str, id: &Value| -> HttpResponse {
        let name = if who == "ann" { "Ann" } else { "Eve" };
        let reply = json!({"jsonrpc": "2.0", "id": id, "result": accepts(name)});
        let post = bearer(HttpRequest::of(&session.id, reply.to_string()), &key(who));
        harness.connect().await.ask(&post).await
    };
    let id = question["id"].as_u64().unwrap();
    let of_another = reply(&of_eve, "eve", &question["id"]).await;
    let of_nobody = reply(&of_eve, "eve", &json!(id + 1_000)).await;
    assert_eq!(of_another.status, of_nobody.status);
    assert_eq!(of_another.text(), of_nobody.text());
    let in_the_session = reply(&of_ann, "eve", &question["id"]).await;
    assert_eq!(in_the_session.status, 404, "{}", in_the_session.text());
    assert_eq!(replies(&harness), [Value::Null; 0], "it reached the server");

    assert_eq!(reply(&of_ann, "ann", &question["id"]).await.status, 202);
    let done = soon(stream.event()).await.unwrap();
    done.has("/result/reply", accepts("Ann"));
    assert_eq!(replies(&harness), [accepts("Ann")]);
}
