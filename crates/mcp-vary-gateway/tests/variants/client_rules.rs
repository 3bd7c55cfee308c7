//! How rules for clients change a variant: the operator's rules, and those for known clients.

use mcp_vary::feature::Features;
use mcp_vary_gateway::{ClientPattern, ClientRule};
use mcp_vary_view::{Dialect, ResultFields};

use crate::support::*;
use crate::variants::selection::Asks;

const EXTENSION: &str = "io.modelcontextprotocol/server-variants";

/// A server with a tool whose schema no Gemini takes, and whose result has both fields and an image.
fn weather() -> Script {
    Script::legacy("weather")
        .lists(json!({"tools": [{
            "name": "weather", "description": "Tells the weather. And more.",
            "inputSchema": {
                "type": "object", "properties": {"place": {"$ref": "#/$defs/place"}},
                "$defs": {"place": {"type": "string"}},
            },
            "outputSchema": {"type": "object"},
        }]}))
        .results(json!({"tools/call": {
            "content": [{"type": "text", "text": "8 degrees"}, {"type": "image", "data": "", "mimeType": "image/png"}],
            "structuredContent": {"degrees": 8},
        }}))
}

fn rule(name: &str, change: impl FnOnce(&mut ClientRule)) -> ClientRule {
    let mut rule = ClientRule::default().with_name(ClientPattern::new(name).unwrap());
    change(&mut rule);
    rule
}

/// A gateway with the variants `all`, `brief` and `values`, of which the last has a `result` of its own.
async fn ruled(known_clients: bool, rules: Vec<ClientRule>) -> Harness {
    let variant = |id: &str, result| {
        let declared = ServerVariant::new(id.parse().unwrap(), "For tests.");
        let mut variant = VariantConfig::new(declared.with_hint("contextSize", id));
        variant.style.result = result;
        variant
    };
    let variants = vec![
        variant("all", ResultFields::Both),
        variant("brief", ResultFields::Both),
        variant("values", ResultFields::Structured),
    ];
    Harness::with_server(weather(), |config| {
        let mut config = config.with_variants_of(variants).unwrap();
        config.selection.rules = rules;
        config.selection.known_clients = known_clients;
        config
    })
    .await
}

/// What a client is shown of the tool, be it modern or legacy.
#[derive(Debug, PartialEq)]
struct Shown {
    refers: bool,
    output: bool,
    text: bool,
    image: bool,
    structure: bool,
}

const ALL: Shown = Shown {
    refers: true,
    output: true,
    text: true,
    image: true,
    structure: true,
};

const CONTENT: Shown = Shown {
    output: false,
    structure: false,
    ..ALL
};

const GEMINI: Shown = Shown {
    refers: false,
    ..ALL
};

const VALUES: Shown = Shown { text: false, ..ALL };

impl Shown {
    fn of(list: &Value, call: &Value) -> Self {
        let tool = &list["result"]["tools"][0];
        assert_eq!(tool["name"], "weather", "{list}");
        let result = &call["result"];
        let has = |kind: &str| {
            let blocks = result["content"].as_array().unwrap();
            blocks.iter().any(|block| block["type"] == kind)
        };
        Self {
            refers: tool["inputSchema"].to_string().contains("$ref"),
            output: tool.get("outputSchema").is_some(),
            text: has("text"),
            image: has("image"),
            structure: result.get("structuredContent").is_some(),
        }
    }
}

async fn shows(harness: &Harness, asks: Asks, expected: Shown) {
    let call = Asks {
        params: json!({"name": "weather", "arguments": {"place": "Bern"}}),
        ..asks.clone()
    };
    let (list, called) = (
        asks.modern(harness, "tools/list").await,
        call.modern(harness, "tools/call").await,
    );
    assert_eq!(Shown::of(&list, &called), expected, "modern {}", asks.name);
    let (list, called) = (
        asks.legacy(harness, "tools/list").await,
        call.legacy(harness, "tools/call").await,
    );
    assert_eq!(Shown::of(&list, &called), expected, "legacy {}", asks.name);
    // What rules make of a variant is no variant.
    let offered = asks.modern(harness, "server/discover").await;
    let offered = &offered["result"]["capabilities"]["extensions"][EXTENSION]["availableVariants"];
    let ids = offered.as_array().unwrap().iter();
    let mut ids: Vec<_> = ids.map(|variant| variant["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["all", "brief", "values"]);
}

fn named(name: &'static str) -> Asks {
    Asks::of(|it| it.name = name)
}

/// SV-2, SV-8: a rule changes how the variant is shown that a request runs under, and neither which nor the offers.
#[tokio::test]
async fn a_rule_says_how_a_variant_is_shown_to_a_client() {
    let content = |rule: &mut ClientRule| rule.result = Some(ResultFields::Content);
    let gemini = |rule: &mut ClientRule| rule.dialect = Some(Some(Dialect::Gemini));
    let team = rule("ops", content).with_header(
        "x-team".parse().unwrap(),
        ClientPattern::new("audit").unwrap(),
    );
    let rules = vec![rule("*reader*", content), rule("*gem", gemini), team];
    let harness = ruled(false, rules).await;
    shows(&harness, named("person"), ALL).await;
    shows(&harness, named("Reader"), CONTENT).await;
    shows(&harness, named("gem"), GEMINI).await;
    let both = Shown {
        refers: false,
        ..CONTENT
    };
    shows(&harness, named("reader-gem"), both).await;
    shows(&harness, named("ops"), ALL).await;
    let audit = Asks {
        team: Some("audit"),
        ..named("ops")
    };
    shows(&harness, audit, CONTENT).await;
    // Whatever led to the variant, and but for what the variant says itself.
    let selects = |selector| Asks {
        selector: Some(selector),
        ..named("reader")
    };
    shows(&harness, selects("brief"), CONTENT).await;
    shows(&harness, selects("values"), VALUES).await;
    let hinted = Asks {
        capabilities: hints(json!({"contextSize": "values"})),
        ..named("reader")
    };
    shows(&harness, hinted, VALUES).await;
}

/// The table is off until it is wanted, and an operator's rule comes before it.
#[tokio::test]
async fn known_clients_get_what_they_need_when_they_are_on() {
    let off = ruled(false, Vec::new()).await;
    shows(&off, named("claude-code"), ALL).await;
    shows(&off, named("gemini-cli-mcp-client"), ALL).await;
    let own = rule("codex*", |rule| rule.result = Some(ResultFields::Both));
    let on = ruled(true, vec![own]).await;
    shows(&on, named("claude-code"), CONTENT).await;
    shows(&on, named("github-copilot-developer"), CONTENT).await;
    shows(&on, named("gemini-cli-mcp-client-weather"), GEMINI).await;
    shows(&on, named("codex-mcp-client"), ALL).await;
    shows(&on, named("person"), ALL).await;
}

/// What a rule takes a client to have declared, the client's own word replaces.
#[tokio::test]
async fn a_rule_may_know_what_a_client_wants() {
    let (human, _) = Features::from_tags(["agent", "format=json"]);
    let presumed = rule("quiet", |rule| rule.features = Some(human.into()));
    let harness = ruled(false, vec![presumed]).await;
    let call = |name, capabilities: Value| Asks {
        params: json!({"name": "weather", "arguments": {}}),
        capabilities,
        ..named(name)
    };
    let texts = |answer: &Value| answer["result"]["content"].to_string();
    let plain = call("other", json!({}))
        .modern(&harness, "tools/call")
        .await;
    let declared = call("other", features(&["agent", "format=json"]));
    let declared = declared.modern(&harness, "tools/call").await;
    let presumed = call("quiet", json!({}));
    for answer in [
        presumed.modern(&harness, "tools/call").await,
        presumed.legacy(&harness, "tools/call").await,
    ] {
        assert_eq!(texts(&answer), texts(&declared), "{answer}");
        assert_ne!(texts(&answer), texts(&plain));
        // CN-19: only who declared something is told what became of it.
        assert_eq!(answer["result"].get("_meta"), None, "{answer}");
    }
    let own = call("quiet", features(&["human"]));
    let own = own.modern(&harness, "tools/call").await;
    assert_ne!(texts(&own), texts(&declared));
}
