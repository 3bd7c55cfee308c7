//! Legacy clients of modern servers: an input request in a result becomes a request to the client.

use super::sealed;
use crate::support::*;

fn all() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}})
}

fn accepts() -> Value {
    json!({"action": "accept", "content": {"name": "Ada"}})
}

fn reply(question: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": question["id"], "result": result})
}

/// A legacy client, on either transport.
enum Client {
    Http(Box<LegacyClient>, RawHttp),
    Stdio(Box<StdioPipe>),
}

impl Client {
    async fn each(harness: &Harness) -> [Self; 2] {
        let legacy = LegacyClient::open(harness, "2025-11-25", &all()).await;
        let pipe = legacy_pipe(&harness.gateway, "2025-11-25", &all()).await;
        [
            Self::Http(Box::new(legacy), harness.connect().await),
            Self::Stdio(Box::new(pipe)),
        ]
    }

    /// Sends a request, and returns the first message that comes back.
    async fn begin(&mut self, method: &str, params: Value) -> Value {
        let message = request(json!(7), method, params);
        match self {
            Self::Http(legacy, calls) => {
                let post = legacy.post(&message);
                calls.send(&post.bytes()).await;
                let head = calls.head().await;
                assert_eq!(head.header("content-type"), Some("text/event-stream"));
            }
            Self::Stdio(pipe) => pipe.send(message.to_string()).await,
        }
        self.receive().await
    }

    async fn receive(&mut self) -> Value {
        match self {
            Self::Http(_, calls) => soon(calls.event()).await.expect("the stream goes on"),
            Self::Stdio(pipe) => pipe.receive().await,
        }
    }

    async fn send(&mut self, message: &Value) {
        match self {
            Self::Http(legacy, _) => {
                let post = legacy.post(message);
                assert_eq!(legacy.http.ask(&post).await.status, 202);
            }
            Self::Stdio(pipe) => pipe.send(message.to_string()).await,
        }
    }

    /// After the answer nothing comes on the stream of a request.
    async fn is_over(&mut self) {
        if let Self::Http(_, calls) = self {
            assert_eq!(soon(calls.event()).await, None);
        }
    }
}

/// The client is asked in its way, and the server hears what it said in its own.
#[tokio::test]
async fn what_a_modern_server_asks_is_asked_in_a_request() {
    let harness = Harness::of_server(sealed::server()).await;
    for mut client in Client::each(&harness).await {
        for (method, params) in sealed::subjects() {
            let question = client.begin(method, params).await;
            question.has("/method", "elicitation/create");
            question.has("/params", json!({"message": "Who?", "x": 1.0}));
            client.send(&reply(&question, &accepts())).await;
            let answer = client.receive().await;
            answer.has("/id", 7);
            answer.has("/result/said/who", accepts());
            answer.has("/result/state", "asked \"who\"");
            client.is_over().await;
            let calls = harness.peer.of(method);
            let [first, second] = &calls[calls.len() - 2..] else {
                panic!("two rounds");
            };
            assert_ne!(first.id(), second.id());
            let meta = "io.modelcontextprotocol/clientCapabilities";
            assert_eq!(first.body["params"]["_meta"][meta]["sampling"], json!({}));
            let expected = &first.body["params"]["_meta"];
            assert_eq!(second.body["params"]["_meta"], *expected);
        }
    }
}

/// > Any elicitations […] MUST be URL mode elicitations and have an `elicitationId` property.
/// > (MCP 2025-11-25, client/elicitation, of addresses to visit)
#[tokio::test]
async fn an_address_to_visit_gets_an_id_for_clients_that_know_one() {
    let harness = Harness::of_server(sealed::server()).await;
    for mut client in Client::each(&harness).await {
        let question = client.begin("tools/call", tool("visit")).await;
        question.has("/params/url", "https://example.org");
        let id = question["params"]["elicitationId"].as_str().unwrap();
        assert_eq!(id.len(), 32);
        let accepted = json!({"action": "accept"});
        client.send(&reply(&question, &accepted)).await;
        let answer = client.receive().await;
        answer.has("/result/said/page", accepted);
    }
}

/// A server that only wants to be asked again is, without the client.
#[tokio::test]
async fn a_state_alone_is_no_question() {
    let harness = Harness::of_server(sealed::server()).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let answer = client.answer("tools/call", tool("later")).await;
    answer.has("/result/content", json!([]));
    assert_eq!(harness.peer.of("tools/call").len(), 2);
}

#[tokio::test]
async fn a_server_asks_only_so_often() {
    let harness = Harness::with_server(
        sealed::server(),
        edited(|config| config.limits.max_rounds = 2),
    )
    .await;
    for mut client in Client::each(&harness).await {
        let mut question = client.begin("tools/call", tool("again")).await;
        for _ in 0..2 {
            question.has("/method", "elicitation/create");
            client.send(&reply(&question, &accepts())).await;
            question = client.receive().await;
        }
        let error = &question["error"];
        assert_eq!(error["code"], -32603, "{question}");
        assert!(
            error["message"].as_str().unwrap().contains("2 times"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn what_a_client_refuses_ends_its_request() {
    let harness = Harness::of_server(sealed::server()).await;
    for mut client in Client::each(&harness).await {
        let before = harness.peer.of("tools/call").len();
        let question = client.begin("tools/call", tool("greet")).await;
        let error = json!({"code": -1, "message": "not now"});
        let refusal = json!({"jsonrpc": "2.0", "id": question["id"], "error": error});
        client.send(&refusal).await;
        let answer = client.receive().await;
        answer.fails(-32603, "refused it: \"not now\"");
        assert_eq!(harness.peer.of("tools/call").len(), before + 1);
    }
}

/// Who does not answer is told that nobody waits any more, and why the request failed.
#[tokio::test]
async fn a_client_that_does_not_answer_is_not_waited_for() {
    let adapt = edited(|config| config.limits.ask_timeout = Duration::from_millis(1));
    let harness = Harness::with_server(sealed::server(), adapt).await;
    for mut client in Client::each(&harness).await {
        let question = client.begin("tools/call", tool("greet")).await;
        let withdrawn = client.receive().await;
        withdrawn.has("/method", "notifications/cancelled");
        assert_eq!(withdrawn["params"]["requestId"], question["id"]);
        let answer = client.receive().await;
        answer.contains("/error/message", "did not answer in time");
    }
}

/// A client that is gone is not waited for at all: one whose session has ended hears that, one on stdio what became of
/// its request.
#[tokio::test]
async fn a_client_that_is_gone_is_not_waited_for() {
    let harness = Harness::of_server(sealed::server()).await;
    for mut client in Client::each(&harness).await {
        let (method, params) = sealed::subjects().into_iter().next().unwrap();
        let question = client.begin(method, params).await;
        question.has("/method", "elicitation/create");
        match client {
            Client::Http(mut legacy, mut calls) => {
                legacy.delete().await;
                let answer = soon(calls.event()).await.expect("an answer");
                answer.has("/error/code", -32001);
            }
            Client::Stdio(pipe) => {
                let rest = pipe.close().await.join("\n");
                assert!(rest.contains("the client is gone"), "{rest}");
            }
        }
        assert_eq!(harness.gateway.status().pending_server_requests, 0);
    }
}

#[tokio::test]
async fn what_a_client_cannot_be_asked_is_the_servers_mistake() {
    let harness = Harness::of_server(sealed::server()).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let answer = client.answer("tools/call", tool("greet")).await;
    answer.fails(-32603, "declared no `elicitation`");
}

/// A client that cancels its request is asked no more, and the server neither.
#[tokio::test]
async fn a_request_that_is_cancelled_has_no_second_round() {
    let harness = Harness::of_server(sealed::server()).await;
    for mut client in Client::each(&harness).await {
        let before = harness.peer.of("tools/call").len();
        let question = client.begin("tools/call", tool("greet")).await;
        let cancelled = json!({"requestId": 7});
        let message = notification("notifications/cancelled", cancelled);
        client.send(&message).await;
        client.is_over().await;
        client.send(&reply(&question, &accepts())).await;
        if let Client::Stdio(pipe) = &mut client {
            let answer = pipe.ask(&request(json!(8), "ping", json!({}))).await;
            answer.has("/id", 8);
        }
        assert_eq!(harness.peer.of("tools/call").len(), before + 1);
    }
}
