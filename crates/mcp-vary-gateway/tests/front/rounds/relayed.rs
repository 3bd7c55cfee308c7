//! Legacy clients of modern servers: what is asked in a result becomes a request.

use std::time::Duration;

use mcp_vary_gateway::Config;
use serde_json::{Value, json};

use super::told;
use crate::http_peer::Peer;
use crate::support::{House, Http, Legacy, Pipe, Post, notification, request, soon, tool};

async fn house(adapt: impl FnOnce(Config) -> Config) -> House {
    House::behind_one(Peer::start(told::answer).await, adapt).await
}

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
    Http(Box<Legacy>, Http),
    Stdio(Box<Pipe>),
}

impl Client {
    async fn each(house: &House) -> [Self; 2] {
        let legacy = Legacy::open(house, "2025-11-25", &all()).await;
        let pipe = Pipe::legacy(&house.gateway, "2025-11-25", &all()).await;
        [
            Self::Http(Box::new(legacy), house.connect().await),
            Self::Stdio(Box::new(pipe)),
        ]
    }

    /// Asks something, and hears the first message that comes back.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let message = request(json!(7), method, params);
        match self {
            Self::Http(legacy, calls) => {
                let post = legacy.post(&message);
                calls.send(&post.bytes()).await;
                let head = calls.head().await;
                assert_eq!(head.header("content-type"), Some("text/event-stream"));
            }
            Self::Stdio(pipe) => pipe.say(message.to_string()).await,
        }
        self.hear().await
    }

    async fn hear(&mut self) -> Value {
        match self {
            Self::Http(_, calls) => soon(calls.event()).await.expect("the stream goes on"),
            Self::Stdio(pipe) => pipe.hear().await,
        }
    }

    async fn say(&mut self, message: &Value) {
        match self {
            Self::Http(legacy, _) => {
                let post = legacy.post(message);
                assert_eq!(legacy.http.ask(&post).await.status, 202);
            }
            Self::Stdio(pipe) => pipe.say(message.to_string()).await,
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
    let house = house(|config| config).await;
    for mut client in Client::each(&house).await {
        for (method, params) in told::subjects() {
            let question = client.ask(method, params).await;
            assert_eq!(question["method"], "elicitation/create", "{question}");
            assert_eq!(question["params"], json!({"message": "Who?", "x": 1.0}));
            client.say(&reply(&question, &accepts())).await;
            let answer = client.hear().await;
            assert_eq!(answer["id"], 7);
            assert_eq!(answer["result"]["said"]["who"], accepts(), "{answer}");
            assert_eq!(answer["result"]["state"], "asked \"who\"");
            client.is_over().await;
            let calls = house.peer.of(method);
            let [first, second] = &calls[calls.len() - 2..] else {
                panic!("two rounds");
            };
            assert_ne!(first.id(), second.id());
            let meta = "io.modelcontextprotocol/clientCapabilities";
            assert_eq!(first.body["params"]["_meta"][meta]["sampling"], json!({}));
            assert_eq!(
                second.body["params"]["_meta"],
                first.body["params"]["_meta"]
            );
        }
    }
}

/// > Any elicitations […] MUST be URL mode elicitations and have an `elicitationId` property.
/// > (MCP 2025-11-25, client/elicitation, of addresses to visit)
#[tokio::test]
async fn an_address_to_visit_gets_an_id_for_clients_that_know_one() {
    let house = house(|config| config).await;
    for mut client in Client::each(&house).await {
        let question = client.ask("tools/call", tool("visit")).await;
        assert_eq!(
            question["params"]["url"], "https://example.org",
            "{question}"
        );
        let id = question["params"]["elicitationId"].as_str().unwrap();
        assert_eq!(id.len(), 32);
        let accepted = json!({"action": "accept"});
        client.say(&reply(&question, &accepted)).await;
        let answer = client.hear().await;
        assert_eq!(answer["result"]["said"]["page"], accepted, "{answer}");
    }
}

/// A server that only wants to be asked again is, without the client.
#[tokio::test]
async fn a_state_alone_is_no_question() {
    let house = house(|config| config).await;
    let mut client = Legacy::open(&house, "2025-11-25", &json!({})).await;
    let answer = client.ask("tools/call", tool("later")).await.json();
    assert_eq!(answer["result"]["content"], json!([]), "{answer}");
    assert_eq!(house.peer.of("tools/call").len(), 2);
}

#[tokio::test]
async fn a_server_asks_only_so_often() {
    let house = house(|mut config| {
        config.limits.max_rounds = 2;
        config
    })
    .await;
    for mut client in Client::each(&house).await {
        let mut question = client.ask("tools/call", tool("again")).await;
        for _ in 0..2 {
            assert_eq!(question["method"], "elicitation/create", "{question}");
            client.say(&reply(&question, &accepts())).await;
            question = client.hear().await;
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
    let house = house(|config| config).await;
    for mut client in Client::each(&house).await {
        let before = house.peer.of("tools/call").len();
        let question = client.ask("tools/call", tool("greet")).await;
        let error = json!({"code": -1, "message": "not now"});
        let refusal = json!({"jsonrpc": "2.0", "id": question["id"], "error": error});
        client.say(&refusal).await;
        let answer = client.hear().await;
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("refused it: \"not now\""), "{message}");
        assert_eq!(house.peer.of("tools/call").len(), before + 1);
    }
}

/// Who does not answer is told that nobody waits any more, and why the request failed.
#[tokio::test]
async fn a_client_that_does_not_answer_is_not_waited_for() {
    let house = house(|mut config| {
        config.limits.ask_timeout = Duration::from_millis(1);
        config
    })
    .await;
    for mut client in Client::each(&house).await {
        let question = client.ask("tools/call", tool("greet")).await;
        let withdrawn = client.hear().await;
        assert_eq!(
            withdrawn["method"], "notifications/cancelled",
            "{withdrawn}"
        );
        assert_eq!(withdrawn["params"]["requestId"], question["id"]);
        let answer = client.hear().await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("did not answer in time"), "{message}");
    }
}

/// A client that is gone is not waited for at all: one whose session has ended hears that, one on stdio what became of
/// its request.
#[tokio::test]
async fn a_client_that_is_gone_is_not_waited_for() {
    let house = house(|config| config).await;
    for mut client in Client::each(&house).await {
        let (method, params) = told::subjects().into_iter().next().unwrap();
        let question = client.ask(method, params).await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        match client {
            Client::Http(mut legacy, mut calls) => {
                let delete = Post::of(&legacy.session, "").line("DELETE /mcp HTTP/1.1");
                assert_eq!(legacy.http.ask(&delete).await.status, 200);
                let answer = soon(calls.event()).await.expect("an answer");
                assert_eq!(answer["error"]["code"], -32001, "{answer}");
            }
            Client::Stdio(pipe) => {
                let rest = pipe.close().await.join("\n");
                assert!(rest.contains("the client is gone"), "{rest}");
            }
        }
        assert_eq!(house.gateway.status().pending_server_requests, 0);
    }
}

#[tokio::test]
async fn what_a_client_cannot_be_asked_is_the_servers_mistake() {
    let house = house(|config| config).await;
    let mut client = Legacy::open(&house, "2025-11-25", &json!({})).await;
    let answer = client.ask("tools/call", tool("greet")).await.json();
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("declared no `elicitation`"), "{message}");
}

/// A client that cancels its request is asked no more, and the server neither.
#[tokio::test]
async fn a_request_that_is_cancelled_has_no_second_round() {
    let house = house(|config| config).await;
    for mut client in Client::each(&house).await {
        let before = house.peer.of("tools/call").len();
        let question = client.ask("tools/call", tool("greet")).await;
        let cancelled = json!({"requestId": 7});
        client
            .say(&notification("notifications/cancelled", cancelled))
            .await;
        client.is_over().await;
        client.say(&reply(&question, &accepts())).await;
        if let Client::Stdio(pipe) = &mut client {
            let answer = pipe.ask(&request(json!(8), "ping", json!({}))).await;
            assert_eq!(answer["id"], 8, "{answer}");
        }
        assert_eq!(house.peer.of("tools/call").len(), before + 1);
    }
}
