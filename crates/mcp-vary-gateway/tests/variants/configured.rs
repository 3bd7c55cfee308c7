//! Variants of an operator's file, from the file to what clients are offered.

use mcp_vary_config::Source;

use crate::support::*;
use crate::variants::selection::Asks;

const EXTENSION: &str = "io.modelcontextprotocol/server-variants";

fn server() -> Script {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "description": "How many."}}});
    let tool = |name: &str| {
        json!({"name": name, "title": "T", "description": "Does it. Well.", "inputSchema": schema,
            "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}})
    };
    let echoed =
        |params: &Value| json!({"messages": [], "completion": {"values": ["x"]}, "said": params});
    Script::legacy("n")
        .declares(places_server::capabilities())
        .lists(json!({"tools": [tool("one"), tool("two")]}))
        .results(json!({"tools/call": {
            "content": [{"type": "text", "text": "{\"n\":1}"}], "structuredContent": {"n": 1},
        }}))
        .lists(json!({
            "resources": [
                {"uri": "doc:a", "name": "a", "description": "A text. Long.", "mimeType": "text/plain"},
                {"uri": "img:b", "name": "b", "mimeType": "image/png"},
            ],
            "resourceTemplates": [
                {"uriTemplate": "doc:{name}", "name": "d"}, {"uriTemplate": "img:{name}", "name": "i"},
            ],
            "prompts": [
                {"name": "ask", "description": "Asks. A lot.", "arguments": [{"name": "who"}, {"name": "what"}]},
                {"name": "tell"},
            ],
        }))
        .on("prompts/get", echoed)
        .on("completion/complete", echoed)
}

/// 2026-11-20
const TODAY: u64 = 1_795_132_800;

/// A gateway with these `variants:`.
async fn harness(variants: &str) -> Harness {
    let peer = server().start().await;
    let url = &peer.url;
    let text = format!("servers: {{a: {{url: \"{url}\"}}}}\nvariants:\n{variants}");
    let outside = Environment::new(|| TODAY, |bytes| getrandom::fill(bytes).unwrap());
    let file = Source::new("vary.yaml", &text).read(&|_| None);
    let file = file.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let config: Config = file.into_config(outside).with_limits(limits());
    Harness::behind(peer, config).await
}

/// What a client of these capabilities is told of variants; it declares the extension.
async fn offered(harness: &Harness, client_kind: ClientKind, capabilities: &Value) -> Value {
    let introduction = client_kind.introduction(harness, capabilities).await;
    introduction["capabilities"]["extensions"][EXTENSION].clone()
}

fn ids(offered: &Value) -> Vec<&str> {
    let all = offered["availableVariants"].as_array().unwrap().iter();
    all.map(|variant| variant["id"].as_str().unwrap()).collect()
}

const WAYS: [ClientKind; 3] = [
    ClientKind::HttpLegacy,
    ClientKind::HttpModern,
    ClientKind::StdioModern,
];

/// SV-1: what an operator declares is what clients read. A variant whose removal is overdue is served.
#[tokio::test]
async fn a_variant_is_offered_as_it_was_declared() {
    let harness = harness(concat!(
        "  new: {description: For all., hints: {useCase: planning, contextSize: standard}, priority: 3}\n",
        "  trial: {description: To try., status: experimental, hints: {useCase: trying}}\n",
        "  old:\n    description: Was for all.\n    status: deprecated\n    hints: {useCase: planning}\n    deprecation:\n",
        "      {message: Ask for new., replacement: new, removal-date: 2026-01-31}\n",
    ))
    .await;
    for way in WAYS {
        let expected = json!([
            {"id": "new", "description": "For all.", "status": "stable",
                "hints": {"useCase": "planning", "contextSize": "standard"}},
            {"id": "trial", "description": "To try.", "status": "experimental",
                "hints": {"useCase": "trying"}},
            {"id": "old", "description": "Was for all.", "status": "deprecated",
                "hints": {"useCase": "planning"}, "deprecationInfo": {
                "message": "Ask for new.", "replacement": "new", "removalDate": "2026-01-31",
            }},
        ]);
        let offered = offered(&harness, way, &json!({})).await;
        assert_eq!(offered["availableVariants"], expected, "{way:?}");
        let params = under("old", json!({}));
        let list = harness.ask(way, "tools/list", params).await;
        assert_eq!(names(&list), ["one", "two"], "{way:?}");
    }
}

/// SV-3: the first variant is stable unless another one is named: by the client in the address or a header, by the operator in
/// default or rule. Hints alone never put a deprecated or experimental one first.
#[tokio::test]
async fn a_named_variant_is_first_whatever_its_status() {
    let variants = "  new: {description: For all.}\n  trial: {description: To try., status: experimental, hints: \
                    {useCase: x}}\n  old: {description: Was., deprecation: {message: m}, hints: {useCase: y}}\n";
    let harness = harness(&format!(
        "{variants}clients:\n  - {{name: tester, variant: trial}}\n"
    ))
    .await;
    let defaults = self::harness(&format!("{variants}variant: old\n")).await;
    let hinted = Asks::of(|it| it.capabilities = hints(json!({"useCase": ["x", "y"]})));
    let trial = Asks::of(|it| it.path = Some("/mcp/v/trial"));
    for (harness, asks, expected) in [
        (&harness, Asks::default(), "new"),
        (&harness, hinted, "new"),
        (&harness, Asks::of(|it| it.path = Some("/mcp/v/old")), "old"),
        (&harness, trial, "trial"),
        (&harness, Asks::of(|it| it.header = Some("old")), "old"),
        (&harness, Asks::of(|it| it.name = "tester"), "trial"),
        (&defaults, Asks::default(), "old"),
    ] {
        let discovered = asks.modern(harness, "server/discover").await;
        let offers = &discovered["result"]["capabilities"]["extensions"][EXTENSION];
        let found = &offers["availableVariants"][0]["id"];
        assert_eq!(*found, expected, "{discovered}");
    }
}

/// SV-1: a set of variants with a mistake is no configuration; the mistake is named.
#[test]
fn a_wrong_declaration_starts_no_gateway() {
    let long = "v".repeat(129);
    for [variants, why] in rows(
        r#"
        "": {} | the identifier of a variant is empty
        LONG: {} | at most 128 bytes
        "a\u0007": {} | control character
        a: {}, a: {} | twice
        a: {status: experimental} | no stable variant
        a: {status: deprecated, deprecation: {message: m}} | no stable variant
        a: {}, b: {deprecation: {message: m, replacement: c}} | is not a variant
        a: {}, b: {deprecation: {message: m, replacement: b}} | the variant itself
        a: {}, b: {deprecation: {message: m, removal-date: 2026-02-30}} | not a day of the calendar
    "#,
    ) {
        let variants = variants.replace("LONG", &long);
        let text = format!("servers: {{a: {{command: x}}}}\nvariants: {{{variants}}}\n");
        let mistakes = Source::new("vary.yaml", &text).read(&|_| None);
        let said = mistakes.unwrap_err().to_string();
        assert!(said.contains(why), "{variants}: {said}");
    }
}

/// Seven variants, each for a use case of its own.
fn seven() -> String {
    let all = ["a", "b", "c", "d", "e", "f", "g"].iter();
    let all =
        all.map(|id| format!("  {id}: {{description: Is {id}., hints: {{useCase: case-{id}}}}}\n"));
    all.collect()
}

/// SV-2, SV-3: not more than five are offered, and that there are more is said only where there are.
#[tokio::test]
async fn five_are_offered_and_that_there_are_more_is_said() {
    let harness = harness(&seven()).await;
    let few = self::harness("  a: {}\n  b: {}\n").await;
    for way in WAYS {
        let all = offered(&harness, way, &json!({})).await;
        assert_eq!(ids(&all), ["a", "b", "c", "d", "e"], "{way:?}");
        assert_eq!(all["moreVariantsAvailable"], true, "{way:?}");
        let asked = hints(json!({"useCase": "case-g"}));
        let ranked = offered(&harness, way, &asked).await;
        assert_eq!(ids(&ranked), ["g", "a", "b", "c", "d"], "{way:?}");
        let both = offered(&few, way, &json!({})).await;
        assert_eq!(ids(&both).len(), 2, "{way:?}");
        assert_eq!(both.get("moreVariantsAvailable"), None, "{way:?}");
    }
}

/// SV-9: a variant need not be offered to be chosen; who names none is told of all that are visible.
#[tokio::test]
async fn every_variant_that_there_is_can_be_chosen() {
    let harness = harness(&seven()).await;
    for way in ClientKind::ALL {
        for id in ["a", "e", "f", "g"] {
            let list = harness.ask(way, "tools/list", under(id, json!({}))).await;
            assert_eq!(names(&list), ["one", "two"], "{way:?} {id}");
        }
        let refused = harness.ask(way, "tools/list", under("h", json!({}))).await;
        // Those that are advertised come first.
        let found = &refused["error"]["data"]["availableVariants"];
        let expected = json!(["a", "b", "c", "d", "e", "f", "g"]);
        assert_eq!(*found, expected, "{way:?}");
        let asked = json!({"useCase": "case-f"});
        let params = under("h", json!({}));
        let refused = way.ask(&harness, &hints(asked), "tools/list", params).await;
        let expected = json!(["f", "a", "b", "c", "d", "e", "g"]);
        refused.has("/error/data/availableVariants", expected);
    }
}

/// SV-4: preferences are ordered, and what cannot be read of them is left out alone.
#[tokio::test]
async fn hints_are_read_as_far_as_they_go() {
    let harness = harness(&seven()).await;
    let others = |count: usize| (0..count).map(|n| format!("other-{n}")).collect::<Vec<_>>();
    let late = |count: usize| {
        let mut all = others(count);
        all.push("case-g".to_owned());
        json!({"useCase": all})
    };
    let strange = json!({"useCase": "case-c", "contextSize": 7, "x": {"y": 1}, "modelFamily": []});
    for (asked, first) in [
        (json!({"useCase": "case-c"}), "c"),
        (json!({"useCase": ["case-f", "case-c"]}), "f"),
        (json!({"useCase": ["none", "case-c", "case-f"]}), "c"),
        (json!({"useCase": [7, null, "case-c"]}), "c"),
        (strange, "c"),
        (json!({"useCase": {"is": "case-c"}}), "a"),
        (json!("case-c"), "a"),
        (json!(["case-c"]), "a"),
        // The sixteenth counts, the seventeenth does not.
        (late(15), "g"),
        (late(16), "a"),
    ] {
        for way in WAYS {
            let mut told = hints(asked.clone());
            told["extensions"][EXTENSION]["variantHints"]["description"] = json!("Anything.");
            let offered = offered(&harness, way, &told).await;
            assert_eq!(ids(&offered)[0], first, "{way:?} {asked}");
        }
    }
}

const EVERYTHING: &str = concat!(
    "  all: {}\n",
    "  other:\n",
    "    tools: {exclude: [two]}\n",
    "    resources: {exclude: [\"img:*\"]}\n",
    "    prompts: {exclude: [tell]}\n",
    "    descriptions: first-sentence\n",
    "    result: content\n",
    "    overrides:\n",
    "      tools:\n",
    "        one:\n",
    "          name: uno\n",
    "          title: U\n",
    "          annotations: {idempotentHint: true}\n",
    "          arguments: {n: {name: count, description: So many.}}\n",
    "      resources: {\"doc:a\": {name: text, title: A text}}\n",
    "      prompts: {ask: {name: question, arguments: {what: {hidden: true}}}}\n",
    "  nothing: {tools: {exclude: [\"*\"]}, resources: {exclude: [\"*\"]}, prompts: {exclude: [\"*\"]}}\n",
);

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
    ("prompts/list", "prompts"),
];

/// SV-11: what a variant can make of everything that is listed.
#[tokio::test]
async fn a_variant_can_change_everything_that_is_listed() {
    let harness = harness(EVERYTHING).await;
    let expected = [
        json!([{
            "name": "uno", "title": "U", "description": "Does it.",
            "inputSchema": {"type": "object", "properties": {
                "count": {"type": "integer", "description": "So many."},
            }},
            "annotations": {"readOnlyHint": true, "idempotentHint": true},
        }]),
        json!([{
            "uri": "doc:a", "name": "text", "description": "A text.", "mimeType": "text/plain",
            "title": "A text",
        }]),
        json!([{"uriTemplate": "doc:{name}", "name": "d"}]),
        json!([{"name": "question", "description": "Asks.", "arguments": [{"name": "who"}]}]),
    ];
    for way in ClientKind::ALL {
        let ask = async |variant: &str, method: &str, params: Value| {
            let params = under(variant, params);
            harness.ask(way, method, params).await["result"].clone()
        };
        for ((method, key), expected) in LISTS.iter().zip(&expected) {
            let other = ask("other", method, json!({})).await;
            assert_eq!(other[key], *expected, "{way:?} {method}");
            // A kind that a variant lacks is empty, not missing.
            let none = ask("nothing", method, json!({})).await;
            assert_eq!(none[key], json!([]), "{way:?} {method}");
            let all = ask("all", method, json!({})).await;
            assert_eq!(all[key].as_array().unwrap().len(), 2, "{way:?} {method}");
        }
        // The default behaviour of its calls, too.
        let called = ask("other", "tools/call", tool("uno")).await;
        assert_eq!(called.get("structuredContent"), None, "{way:?} {called}");
        let called = ask("all", "tools/call", tool("one")).await;
        assert_eq!(called["structuredContent"], json!({"n": 1}), "{way:?}");
    }
}

/// SV-11: capabilities are the same for all, whatever their variant shows.
#[tokio::test]
async fn capabilities_are_the_same_in_every_variant() {
    let harness = harness(EVERYTHING).await;
    let of = |message: &Value| {
        let mut told = message.clone();
        told.as_object_mut().unwrap().remove("extensions");
        told
    };
    let mut seen = Vec::new();
    for path in ["all", "other", "nothing"] {
        let mut http = harness.connect().await;
        let initialize = initialize("2025-11-25", &json!({}));
        let post =
            HttpRequest::new(initialize.to_string()).line(&format!("POST /mcp/v/{path} HTTP/1.1"));
        let answer = http.ask(&post).await.json();
        let capabilities = &answer["result"]["capabilities"];
        let first = &capabilities["extensions"][EXTENSION]["availableVariants"][0]["id"];
        assert_eq!(first, path);
        seen.push(of(capabilities));
    }
    assert!(seen[0]["prompts"].is_object(), "{seen:?}");
    assert_eq!([&seen[1], &seen[2]], [&seen[0], &seen[0]]);
}
