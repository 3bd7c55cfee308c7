//! Extensions other than tasks: their settings, methods and notifications.

use super::*;

/// What servers can do beside the protocol is told to clients of every era, settings and all.
#[tokio::test]
async fn other_extensions_are_told_as_the_servers_tell_them() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::of_server(jobs("one", era)).await;
        let client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        let found = harness.ask_modern("server/discover", json!({})).await;
        for told in [&client.initialized, &found["result"]] {
            let expected = json!({"level": 1.5});
            assert_eq!(told["capabilities"]["extensions"][OTHER], expected);
        }
    }
}

/// The methods of an extension go to the server that declares one, where that is only one.
#[tokio::test]
async fn methods_of_an_extension_reach_its_server() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::of_server(jobs("one", era)).await;
        for way in ClientKind::ALL {
            let answer = harness.ask(way, "ledger/balance", json!({"of": 1.0})).await;
            assert_eq!(answer["result"]["balance"], 1.10, "{way:?} {answer}");
            answer.has("/result/said/of", 1.0);
            let none = harness.ask(way, "tools/unknown", json!({})).await;
            assert_eq!(none["error"]["code"], -32601, "{way:?}");
        }
        let (harness, _two) = two(era).await;
        let answer = harness.ask_modern("ledger/balance", json!({})).await;
        answer.has("/error/code", -32601);
    }
}

/// A server that declares an extension, and its client's, hear of each other.
async fn ledger(name: &'static str, era: Era) -> (ScriptedServer, UpstreamConfig) {
    let peer = jobs(name, era).start().await;
    let mut entry = UpstreamConfig::new(name, Target::http(peer.url.clone()));
    entry.forwarded_extensions = vec![OTHER.to_owned()];
    (peer, entry)
}

/// What a client of `capabilities` tells, each in its turn; a request after that is answered.
async fn tells(harness: &Harness, kind: ClientKind, capabilities: &Value, sent: &[Value]) {
    match kind {
        ClientKind::HttpLegacy => {
            let mut client = LegacyClient::open(harness, "2025-11-25", capabilities).await;
            for message in sent {
                let post = client.post(message);
                assert_eq!(client.http.ask(&post).await.status, 202);
            }
        }
        ClientKind::HttpModern => {
            for message in sent {
                let post = HttpRequest::modern(&said_by(message, capabilities));
                assert_eq!(harness.connect().await.ask(&post).await.status, 202);
            }
        }
        ClientKind::StdioLegacy => {
            let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", capabilities).await;
            for message in sent {
                pipe.send(message.to_string()).await;
            }
            pipe.close().await;
        }
        ClientKind::StdioModern => {
            let mut pipe = open_pipe(&harness.gateway);
            for message in sent {
                pipe.send(said_by(message, capabilities).to_string()).await;
            }
            pipe.close().await;
        }
    }
}

/// A notification of a client without a session.
fn said_by(message: &Value, capabilities: &Value) -> Value {
    let params = message["params"].clone();
    let method = message["method"].as_str().unwrap();
    let mut reported = modern(json!(0), method, params, capabilities);
    reported.as_object_mut().unwrap().remove("id");
    reported
}

/// A notification of an extension goes to the server that declares the same one, in order; what the protocol
/// does not have otherwise is ignored, as is one of a client that has not declared it.
#[tokio::test]
async fn notifications_of_an_extension_reach_its_server() {
    let told = |of: f64| notification("notifications/ledger/changed", json!({"of": of}));
    for era in [Era::Legacy, Era::Modern] {
        let (one, entry) = ledger("one", era).await;
        let plain = ScriptedServer::start(|_| None).await;
        let mut all: Config = config(Target::command("none", []));
        let two = UpstreamConfig::new("two", Target::http(plain.url.clone()));
        all.servers = vec![entry, two];
        // What was said before the pipe was closed arrives, however slow the machine.
        all.limits = limits().with_drain(Duration::from_secs(60));
        let harness = Harness::behind(one, all).await;
        let knows = json!({"extensions": {OTHER: {}}});
        let received = || harness.peer.of("notifications/ledger/changed");
        for (round, way) in ClientKind::ALL.into_iter().enumerate() {
            tells(&harness, way, &json!({}), &[told(7.0)]).await;
            let foreign = notification("notifications/tools/unknown", json!({}));
            tells(&harness, way, &knows, &[told(1.0), foreign, told(2.50)]).await;
            until(async || received().len() >= 2 * (round + 1)).await;
            let of = |seen: &ReceivedRequest| seen.body["params"]["of"].as_f64().unwrap();
            let said: Vec<_> = received().iter().map(of).collect();
            assert_eq!(said[2 * round..], [1.0, 2.5], "{era:?} {way:?}");
        }
        for seen in received() {
            let meta = &seen.body["params"]["_meta"];
            let era_of = meta["io.modelcontextprotocol/protocolVersion"].as_str();
            assert_eq!(era_of.is_some(), era == Era::Modern, "{}", seen.body);
        }
        for peer in [&harness.peer, &plain] {
            assert!(peer.of("notifications/tools/unknown").is_empty());
        }
        assert!(plain.of("notifications/ledger/changed").is_empty());
    }
}
