//! Extensions that the gateway does not know: what is advertised is answered by the server that owns it.

use std::collections::BTreeMap;

use mcp_vary_gateway::Base;
use mcp_vary_view::Selection;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use crate::support::*;

const SKILLS: &str = "io.modelcontextprotocol/skills";
const LEDGER: &str = "com.example/ledger";
const UNITS: &str = "org.example/units";

/// What the servers of the table declare.
const DECLARED: [&[&str]; 5] = [
    &[],
    &[SKILLS],
    &[LEDGER],
    &[LEDGER, UNITS],
    &[SKILLS, LEDGER],
];

/// A method of each extension.
const METHODS: [(&str, &str); 3] = [
    (SKILLS, "skills/list"),
    (LEDGER, "ledger/balance"),
    (UNITS, "units/list"),
];

/// The variants, each with the servers of which it hides something.
const VARIANTS: [(&str, &[&str]); 4] = [
    ("whole", &[]),
    ("short", &[]),
    ("some", &["one"]),
    ("safe", &["one", "two"]),
];

fn selection(text: Value) -> Selection {
    serde_json::from_value(text).unwrap()
}

fn variants() -> Vec<VariantConfig> {
    let based = |id: &str, base: Base| VariantConfig::with_base(variant(id), base);
    let mut some = variant("some");
    some.tools = selection(json!({"exclude": [{"server": "one", "name": "b"}]}));
    let short = based("short", Base::Compact);
    vec![variant("whole"), short, some, based("safe", Base::ReadOnly)]
}

/// A server that declares `extensions`, and answers their methods with its name.
#[derive(Clone, Copy)]
struct Server {
    name: &'static str,
    era: Era,
    extensions: &'static [&'static str],
}

impl Server {
    fn result(self, method: &str) -> Option<Value> {
        let settings = self.extensions.iter();
        let settings = settings.map(|id| ((*id).to_owned(), json!({"of": self.name})));
        let settings: BTreeMap<_, _> = settings.collect();
        let capabilities = json!({"tools": {}, "extensions": settings});
        let mut known = METHODS.iter();
        let has_it = known.any(|(id, known)| self.extensions.contains(id) && *known == method);
        match (method, self.era) {
            ("initialize", Era::Legacy) => Some(introduced(self.name, capabilities)),
            ("server/discover", Era::Modern) => Some(discovered(capabilities)),
            ("tools/list", _) => Some(tool_list(&["a", "b"])),
            _ if has_it => {
                Some(json!({"skills": [{"uri": "skill://a/SKILL.md"}], "server": self.name}))
            }
            _ => None,
        }
    }

    async fn start(self) -> ScriptedServer {
        ScriptedServer::start(move |seen| Some(seen.answer(&self.result(seen.method())?))).await
    }

    /// Answers on a pipe, as a program does on its standard streams.
    async fn serve(self, pipe: DuplexStream) {
        let (reading, mut writing) = tokio::io::split(pipe);
        let mut lines = BufReader::new(reading).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = serde_json::from_str(&line).unwrap();
            let Some(id) = request.get("id") else {
                continue;
            };
            let answer = match self.result(request["method"].as_str().unwrap()) {
                Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                None => {
                    let error = json!({"code": -32601, "message": "Method not found"});
                    json!({"jsonrpc": "2.0", "id": id, "error": error})
                }
            };
            // The gateway may have closed its end.
            let _ = writing.write_all(format!("{answer}\n").as_bytes()).await;
        }
    }

    /// The server on a pipe.
    fn piped(self) -> UpstreamConfig {
        let target = Target::in_process(move || {
            let (gateway, server) = tokio::io::duplex(64 * 1024);
            tokio::spawn(self.serve(server));
            gateway
        });
        UpstreamConfig::new(self.name, target)
    }
}

async fn server(
    name: &'static str,
    era: Era,
    extensions: &'static [&'static str],
) -> ScriptedServer {
    let server = Server {
        name,
        era,
        extensions,
    };
    server.start().await
}

/// The transport of the servers.
#[derive(Clone, Copy, Debug)]
enum Transport {
    Http,
    Stdio,
}

/// A gateway in front of two servers with these extensions, and what they need to go on.
async fn in_front_of(servers: [Server; 2], transport: Transport) -> (Harness, Vec<ScriptedServer>) {
    let mut config = before(&[]);
    let mut started = Vec::new();
    for server in servers {
        let entry = match transport {
            Transport::Http => {
                let peer = server.start().await;
                let target = Target::http(peer.url.clone());
                started.push(peer);
                UpstreamConfig::new(server.name, target)
            }
            Transport::Stdio => server.piped(),
        };
        config.servers.push(entry);
    }
    let config = config.with_variants_of(variants()).unwrap();
    (Harness::alone(config).await, started)
}

/// The servers that declare `id`, of those in the table.
fn declaring(declared: [&[&str]; 2], id: &str) -> Vec<&'static str> {
    let named = std::iter::zip(["one", "two"], declared);
    let declaring = named.filter(|(_, extensions)| extensions.contains(&id));
    declaring.map(|(name, _)| name).collect()
}

/// The skill of a server beside another.
fn skill(server: &str) -> Value {
    json!({"uri": format!("skill://{server}/skill/a/SKILL.md")})
}

/// A method goes to the only server that declares its extension, under each variant that hides nothing of that server.
/// Skills are those of all servers. Others are unknown, and an extension that nobody answers is not advertised.
async fn is_routed(transport: Transport, era: Era, declared: [&'static [&'static str]; 2]) {
    let [one, two] = declared;
    let servers = [("one", one), ("two", two)].map(|(name, extensions)| Server {
        name,
        era,
        extensions,
    });
    let (harness, _started) = in_front_of(servers, transport).await;
    for kind in ClientKind::ALL {
        let introduction = kind.introduction(&harness, &json!({})).await;
        let mut client = Client::open(&harness, kind, &json!({})).await;
        for (id, method) in METHODS {
            let owners = declaring(declared, id);
            let settings = match owners[..] {
                [owner] => json!({"of": owner}),
                [first, _] if id == SKILLS => json!({"of": first}),
                _ => Value::Null,
            };
            let advertised = &introduction["capabilities"]["extensions"][id];
            let case = format!("{transport:?} {era:?} {kind:?} {declared:?}");
            assert_eq!(*advertised, settings, "{case} {id}");
            for (variant, hides) in VARIANTS {
                let answer = client.ask(method, under(variant, json!({}))).await;
                let case = format!("{case} {variant} {answer}");
                // Variants that select tools show all skills.
                let hidden = if id == SKILLS { &[] } else { hides };
                match owners[..] {
                    [_, _] if id == SKILLS => answer.has("/result/skills/1", skill("two")),
                    [owner] if !hidden.contains(&owner) => {
                        assert_eq!(answer["result"]["server"], owner, "{case}");
                    }
                    _ => {
                        assert_eq!(answer["error"]["code"], -32601, "{case}");
                        // What nobody declares may be of the only other extension, whose server refuses it.
                        let active = &answer["error"]["data"]["activeVariant"];
                        assert!(owners.is_empty() || *active == variant, "{case}");
                    }
                }
            }
        }
    }
}

/// What is advertised is answered, whatever two servers declare.
async fn are_routed(transport: Transport) {
    for era in [Era::Legacy, Era::Modern] {
        for first in DECLARED {
            for second in DECLARED {
                is_routed(transport, era, [first, second]).await;
            }
        }
    }
}

/// EXT-8, EXT-10: what is advertised is answered, whatever two servers declare, as the page of extensions says.
#[tokio::test]
async fn a_method_goes_to_the_only_server_that_declares_its_extension() {
    are_routed(Transport::Http).await;
}

/// EXT-8, EXT-10: so it is with servers on standard streams.
#[tokio::test]
async fn a_method_goes_to_the_only_program_that_declares_its_extension() {
    are_routed(Transport::Stdio).await;
}

/// Several clients share a connection to a server with an extension. What it sends outside of calls reaches each of
/// them once that declared the extension and sees something of the server.
async fn reaches_all_that_declared_it(era: Era, kind: ClientKind) {
    let stage = ChangingServer::new(era);
    let declared = json!({"extensions": {LEDGER: {}, SKILLS: {}}});
    stage.declare(json!({"tools": {"listChanged": true}, "extensions": declared["extensions"]}));
    let mut hiding = variant("hiding");
    hiding.tools = selection(json!({"include": ["second"]}));
    let all = vec![variant("whole"), hiding];
    let adapt = |config: Config| config.with_variants_of(all).unwrap();
    let harness = Harness::changing_with(&stage, adapt).await;
    let listening = async |variant: Option<&str>, capabilities: &Value| {
        let what = (everything(&[]), variant);
        let mut client = NotificationClient::listening_as(&harness, kind, what, capabilities).await;
        // The answer comes after its subscription.
        client.ask("tools/list", json!({})).await;
        client
    };
    let mut receivers = vec![
        listening(None, &declared).await,
        listening(None, &declared).await,
    ];
    let mut others = vec![listening(None, &json!({})).await];
    if kind.is_modern() {
        others.push(listening(Some("hiding"), &declared).await);
    }
    let listen = match era {
        Era::Legacy => "GET",
        Era::Modern => "subscriptions/listen",
    };
    // Clients that declare the extension share a connection of their own.
    harness.peer.wait_for(listen, 2).await;
    stage.notify_all("notifications/ledger/changed", &json!({"n": 1.0}));
    for client in &mut receivers {
        let message = client.receive().await;
        message.has("/method", "notifications/ledger/changed");
        message.has("/params/n", 1.0);
        let subscription = &message["params"]["_meta"][SUBSCRIPTION];
        let expected = if kind.is_modern() {
            json!("listen")
        } else {
            Value::Null
        };
        assert_eq!(*subscription, expected, "{era:?} {kind:?} {message}");
    }
    // A variant that hides tools says nothing of skills.
    stage.notify_all("notifications/skills/updated", &json!({}));
    for client in receivers.iter_mut().chain(others.iter_mut().skip(1)) {
        let message = client.receive().await;
        message.has("/method", "notifications/skills/updated");
    }
    stage.set_tools(&["first", "second"]);
    stage.notify_list_changed("tools");
    for client in receivers.iter_mut().chain(&mut others) {
        let message = client.receive().await;
        message.has("/method", "notifications/tools/list_changed");
    }
}

/// EXT-8: an extension's notifications outside of calls are for all that declared it.
#[tokio::test]
async fn a_notification_outside_of_calls_reaches_all_that_declared_its_extension() {
    for era in [Era::Legacy, Era::Modern] {
        for kind in ClientKind::ALL {
            reaches_all_that_declared_it(era, kind).await;
        }
    }
}

/// The extensions that a new client is offered, and the answer to a method of `LEDGER`.
async fn seen_by(harness: &Harness, kind: ClientKind) -> (Value, Value) {
    let introduction = kind.introduction(harness, &json!({})).await;
    let answer = harness.ask(kind, "ledger/balance", json!({})).await;
    (introduction["capabilities"]["extensions"].clone(), answer)
}

/// EXT-8: of two servers with one extension, the configuration names the one that answers.
#[tokio::test]
async fn the_configuration_decides_between_servers() {
    for era in [Era::Legacy, Era::Modern] {
        let one = server("one", era, &[LEDGER]).await;
        let two = server("two", era, &[LEDGER]).await;
        let mut config = before(&[("one", &one), ("two", &two)]);
        let harness = Harness::behind(one, config.clone()).await;
        let reported = harness.gateway.undecided_extensions();
        assert_eq!((reported.len(), &*reported[0].id), (1, LEDGER));
        assert_eq!(reported[0].servers, ["one", "two"]);
        config.extension_servers = [(LEDGER.to_owned(), "two".to_owned())].into();
        harness.reload(config).await;
        assert_eq!(harness.gateway.undecided_extensions(), []);
        for kind in ClientKind::ALL {
            let (advertised, answer) = seen_by(&harness, kind).await;
            assert_eq!(advertised[LEDGER], json!({"of": "two"}), "{kind:?}");
            assert_eq!(answer["result"]["server"], "two", "{kind:?} {answer}");
        }
    }
}

/// EXT-8: of two servers with one extension, a request goes to the one that lists what it names.
#[tokio::test]
async fn what_a_request_names_decides_between_servers() {
    for era in [Era::Legacy, Era::Modern] {
        let one = server("one", era, &[LEDGER]).await;
        let two = server("two", era, &[LEDGER]).await;
        let config = before(&[("one", &one), ("two", &two)]);
        let harness = Harness::behind(one, config).await;
        for kind in ClientKind::ALL {
            let named = json!({"name": "two_a", "x": 1});
            let answer = harness.ask(kind, "ledger/balance", named).await;
            answer.has("/result/server", "two");
            let unknown = harness
                .ask(kind, "ledger/balance", json!({"name": "c"}))
                .await;
            unknown.has("/error/code", -32601);
        }
        let received = two.of("ledger/balance");
        assert_eq!(received[0].body["params"]["name"], "a", "{era:?}");
        assert!(harness.peer.of("ledger/balance").is_empty(), "{era:?}");
    }
}

/// EXT-8, SV-11: all variants advertise the same, but nothing that no variant of the client can use.
#[tokio::test]
async fn an_extension_that_no_variant_can_use_is_not_advertised() {
    let peer = server("one", Era::Modern, &[LEDGER]).await;
    let adapt = |config: Config| {
        let safe = VariantConfig::with_base(variant("safe"), Base::ReadOnly);
        config.with_variants_of(vec![safe]).unwrap()
    };
    let harness = Harness::behind_one(peer, adapt).await;
    let allowed = server("one", Era::Modern, &[LEDGER]).await;
    let with_method = |config: Config| {
        let mut config = adapt(config);
        config.servers[0].allowed_methods = vec!["ledger/balance".to_owned()];
        config
    };
    let with_method = Harness::behind_one(allowed, with_method).await;
    for kind in ClientKind::ALL {
        let (advertised, answer) = seen_by(&harness, kind).await;
        assert_eq!(advertised[LEDGER], Value::Null, "{kind:?}");
        answer.has("/error/code", -32601);
        answer.has("/error/data/activeVariant", "safe");
        let (advertised, answer) = seen_by(&with_method, kind).await;
        assert_eq!(advertised[LEDGER], json!({"of": "one"}), "{kind:?}");
        answer.has("/result/server", "one");
    }
}

/// EXT-8: the settings of an extension that the server declares reach it from each client that declares it, and those of others
/// do not.
#[tokio::test]
async fn settings_reach_the_servers_that_declare_the_extension() {
    for era in [Era::Legacy, Era::Modern] {
        let one = server("one", era, &[LEDGER]).await;
        let two = server("two", era, &[UNITS]).await;
        let config = before(&[("one", &one), ("two", &two)]);
        let harness = Harness::behind(one, config).await;
        let declared = json!({"extensions": {LEDGER: {"level": 2}, "com.example/none": {}}});
        for kind in ClientKind::ALL {
            let answer = kind
                .ask(&harness, &declared, "ledger/balance", json!({}))
                .await;
            answer.has("/result/server", "one");
            let received = declared_to(&harness.peer);
            let expected = json!({"extensions": {LEDGER: {"level": 2}}});
            assert!(
                received.contains(&expected),
                "{era:?} {kind:?} {received:?}"
            );
            assert!(
                declared_to(&two).iter().all(|it| *it == json!({})),
                "{era:?}"
            );
        }
    }
}

/// The capabilities of the client that a server has received.
fn declared_to(peer: &ScriptedServer) -> Vec<Value> {
    let key = "io.modelcontextprotocol/clientCapabilities";
    let received = peer.received();
    let declared = received.iter().map(|seen| {
        let params = &seen.body["params"];
        let in_meta = &params["_meta"][key];
        if in_meta.is_object() {
            in_meta.clone()
        } else {
            params["capabilities"].clone()
        }
    });
    declared.filter(Value::is_object).collect()
}
