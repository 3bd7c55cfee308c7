//! Extensions that the gateway does not know: what is advertised is answered by the server that owns it.

use std::collections::BTreeMap;

use mcp_vary_gateway::Base;
use mcp_vary_view::Selection;

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
async fn server(
    name: &'static str,
    era: Era,
    extensions: &'static [&'static str],
) -> ScriptedServer {
    ScriptedServer::start(move |seen| {
        let settings = extensions
            .iter()
            .map(|id| ((*id).to_owned(), json!({"of": name})));
        let settings: BTreeMap<_, _> = settings.collect();
        let capabilities = json!({"tools": {}, "extensions": settings});
        let has = |method: &str| {
            let mut known = METHODS.iter();
            known.any(|(id, known)| extensions.contains(id) && *known == method)
        };
        let result = match (seen.method(), era) {
            ("initialize", Era::Legacy) => introduced(name, capabilities),
            ("server/discover", Era::Modern) => discovered(capabilities),
            ("tools/list", _) => tool_list(&["a", "b"]),
            (method, _) if has(method) => {
                json!({"skills": [{"uri": "skill://a/SKILL.md"}], "server": name})
            }
            _ => return None,
        };
        Some(seen.answer(&result))
    })
    .await
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
async fn is_routed(era: Era, declared: [&'static [&'static str]; 2]) {
    let one = server("one", era, declared[0]).await;
    let two = server("two", era, declared[1]).await;
    let config = before(&[("one", &one), ("two", &two)]);
    let config = config.with_variants_of(variants()).unwrap();
    let harness = Harness::behind(one, config).await;
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
            assert_eq!(*advertised, settings, "{era:?} {kind:?} {declared:?} {id}");
            for (variant, hides) in VARIANTS {
                let answer = client.ask(method, under(variant, json!({}))).await;
                let case = format!("{era:?} {kind:?} {declared:?} {variant} {answer}");
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

/// EXT-8, EXT-10: what is advertised is answered, whatever two servers declare, as the page of extensions says.
#[tokio::test]
async fn a_method_goes_to_the_only_server_that_declares_its_extension() {
    for era in [Era::Legacy, Era::Modern] {
        for first in DECLARED {
            for second in DECLARED {
                is_routed(era, [first, second]).await;
            }
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
