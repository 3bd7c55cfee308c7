//! Log messages on the standalone stream of a legacy server, for a client without a session: its call receives them until
//! the response.

use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::support::*;

/// A legacy server whose streams the test writes.
struct Server {
    peer: ScriptedServer,
    /// The standalone stream, once the gateway has asked for it.
    standalone: UnboundedReceiver<UnboundedSender<Bytes>>,
    /// Lets the head of the standalone stream leave.
    gate: Arc<Notify>,
    /// The stream of each call, and its response.
    calls: UnboundedReceiver<(UnboundedSender<Bytes>, Value)>,
}

impl Server {
    async fn start() -> Self {
        let (standalone_sender, standalone) = unbounded_channel();
        let (calls_sender, calls) = unbounded_channel();
        let gate = Arc::new(Notify::new());
        let opened = Arc::clone(&gate);
        let script = move |seen: &ReceivedRequest| {
            let result = match seen.method() {
                "GET" => {
                    let (sender, reply) = Reply::stream();
                    standalone_sender.send(sender).unwrap();
                    return Some(reply.after(&opened));
                }
                "tools/call" => {
                    let (sender, reply) = Reply::stream();
                    let response = seen.message(&json!({"content": []}));
                    calls_sender.send((sender, response)).unwrap();
                    return Some(reply);
                }
                "initialize" => introduced("logs", json!({"tools": {}, "logging": {}})),
                "tools/list" => {
                    json!({"tools": [{"name": "x", "inputSchema": {"type": "object"}}]})
                }
                "logging/setLevel" => json!({}),
                _ => return None,
            };
            Some(seen.answer(&result))
        };
        let peer = ScriptedServer::start(script).await;
        Self {
            peer,
            standalone,
            gate,
            calls,
        }
    }

    async fn gateway(&self) -> Arc<Gateway> {
        let target = Target::http(self.peer.url.clone());
        Gateway::start(config(target)).await.unwrap()
    }
}

async fn call(client: &mut StdioPipe, id: u64) {
    let mut params = tool("x");
    params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("info");
    let call = modern(json!(id), "tools/call", params, &json!({}));
    client.send(call.to_string()).await;
}

fn log(data: &str) -> Value {
    notification(
        "notifications/message",
        json!({"level": "info", "data": data}),
    )
}

fn send(stream: &UnboundedSender<Bytes>, message: &Value) {
    stream.send(event(message).into()).unwrap();
}

/// Some servers send the head of the stream only with the first message; others are called before it has arrived.
#[tokio::test]
async fn a_call_receives_what_is_logged_on_a_stream_that_opens_during_the_call() {
    let mut server = Server::start().await;
    let gateway = server.gateway().await;
    let mut client = open_pipe(&gateway);
    let standalone = soon(server.standalone.recv()).await.unwrap();
    call(&mut client, 1).await;
    let (stream, response) = soon(server.calls.recv()).await.unwrap();
    send(&standalone, &log("during the call"));
    server.gate.notify_one();
    assert_eq!(client.receive().await, log("during the call"));
    send(&stream, &response);
    client.receive().await.has("/id", 1);
}

/// Two streams have no common order: a message may arrive after the response of its call.
#[tokio::test]
async fn what_is_logged_of_a_call_after_its_response_reaches_the_next_call_of_the_only_client() {
    let mut server = Server::start().await;
    server.gate.notify_one();
    let gateway = server.gateway().await;
    let mut client = open_pipe(&gateway);
    let standalone = soon(server.standalone.recv()).await.unwrap();
    call(&mut client, 1).await;
    let (stream, response) = soon(server.calls.recv()).await.unwrap();
    send(&stream, &response);
    client.receive().await.has("/id", 1);
    call(&mut client, 2).await;
    let (stream, response) = soon(server.calls.recv()).await.unwrap();
    send(&standalone, &log("about the first call"));
    assert_eq!(client.receive().await, log("about the first call"));
    send(&stream, &response);
    client.receive().await.has("/id", 2);
}
