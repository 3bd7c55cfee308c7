//! Which clients learn what was applied to a result.

use mcp_vary_config::{Source, read_prompts, read_resources, read_results};

use crate::support::*;

const CALL: &str = "tools/call";
const READ: &str = "resources/read";
const GET: &str = "prompts/get";

/// What the server says, with `meta` in its results; nobody would write it so but this server.
fn served(method: &str, meta: &str) -> Option<String> {
    Some(match method {
        CALL => format!(
            r#"{{"content": [{{"type":"text","text":"{{\"rows\":[{{\"id\":1,\"none\":null}},{{\"id\":2,\"none\":null}}]}}"}}], "structuredContent":{{"rows":[{{"id":1,"none":null}},{{"id":2,"none":null}}]}} , "_meta":{meta}}}"#
        ),
        READ => format!(
            r#"{{"contents": [{{"uri":"map://bern","mimeType":"application/json","text":"{{\"a\":1.0}}"}}] , "_meta":{meta}}}"#
        ),
        GET => format!(
            r#"{{"messages": [{{"role":"user","content":{{"type":"text","text":"Plan it."}}}}] , "_meta":{meta}}}"#
        ),
        _ => return None,
    })
}

async fn harness(meta: &'static str, adapt: impl FnOnce(Config) -> Config) -> Harness {
    let peer = ScriptedServer::start(move |seen: &ReceivedRequest| {
        if let Some(result) = served(seen.method(), meta) {
            return Some(seen.answer_text(&result));
        }
        let result = match seen.method() {
            "initialize" => introduced("trips", places_server::capabilities()),
            "tools/list" => tool_list(&["rows"]),
            "resources/list" => json!({"resources": [{"uri": "map://bern", "name": "bern"}]}),
            "prompts/list" => json!({"prompts": [{"name": "plan"}]}),
            _ => return None,
        };
        Some(seen.answer(&result))
    });
    Harness::behind_one(peer.await, adapt).await
}

fn params(method: &str) -> Value {
    match method {
        CALL => json!({"name": "rows", "arguments": {}}),
        READ => json!({"uri": "map://bern"}),
        _ => json!({"name": "plan"}),
    }
}

/// Rules about all of it, for whoever declares anything.
fn ruled(mut config: Config) -> Config {
    let results = "- {project: '{rows}', markdown: 'Rows.', text: 'Rows.', hints: ['Look twice.']}";
    config.results = read_results(results).unwrap();
    config.resource_results = read_resources("- {when: '*', as: markdown}").unwrap();
    config.prompt_results = read_prompts("- {text: 'Plan it well.'}").unwrap();
    config
}

const FORMATS: [&[&str]; 7] = [
    &["agent", "format=json"],
    &["format=json", "verbosity=compact"],
    &["human", "sampling"],
    &["format=text", "verbosity=verbose"],
    &["format=markdown", "verbosity=compact"],
    &["human", "verbosity=standard"],
    &["agent", "sampling"],
];

/// CN-19: whoever declared is told what was applied to each kind of content, beside what the server says in
/// `_meta`.
#[tokio::test]
async fn who_declared_is_told_what_was_applied() {
    let harness = harness(r#"{"acme/own":1.0}"#, ruled).await;
    for [tags, method, applied] in rows(
        r#"
        agent,format=json        | tools/call     | {"format": "json", "variant": "standard"}
        agent,format=json        | resources/read | {"format": "markdown", "variant": "standard"}
        agent,format=json        | prompts/get    | {"variant": "standard"}
        human,verbosity=standard | tools/call     | {"format": "markdown", "verbosity": "standard", "variant": "standard"}
        human,verbosity=standard | resources/read | {"format": "markdown", "verbosity": "standard", "variant": "standard"}
        human,verbosity=standard | prompts/get    | {"verbosity": "standard", "variant": "standard"}
        format=text              | tools/call     | {"format": "text", "variant": "standard"}
        format=text              | resources/read | {"format": "markdown", "variant": "standard"}
        format=text              | prompts/get    | {"variant": "standard"}
    "#,
    ) {
        let declared = features(&tags.split(',').collect::<Vec<_>>());
        for way in ClientKind::ALL {
            let answer = ask_as(&harness, way, &declared, method, params(method)).await;
            let meta = &answer["result"]["_meta"];
            let found = &meta["vary/applied"];
            assert_eq!(*found, cell(applied), "{way:?} {method} {tags}: {answer}");
            assert_eq!(meta["acme/own"].to_string(), "1.0", "{way:?} {method}");
        }
    }
}

/// CN-19: the variant that is named is the active one.
#[tokio::test]
async fn the_variant_that_was_applied_is_the_requests() {
    let harness = harness("{}", ruled).await;
    for way in ClientKind::ALL {
        for method in [CALL, READ, GET] {
            let params = under("compact", params(method));
            let answer = ask_as(&harness, way, &features(&["human"]), method, params).await;
            let applied = &answer["result"]["_meta"]["vary/applied"];
            assert_eq!(applied["variant"], "compact", "{way:?} {method}: {answer}");
        }
    }
}

/// CN-7, CN-19: others see no trace of it, whatever the operator has done to what they get.
#[tokio::test]
async fn others_see_no_trace() {
    let everyone = "
servers: {trips: {command: x}}
variants:
  standard: {features: [human, verbosity=compact]}
  words: {result: content}
results: [{for: everyone, markdown: Rows.}]
resources: [{as: markdown}]
prompts: [{text: Plan it well.}]
";
    let file = Source::new("vary.yaml", everyone).read(&|_| None).unwrap();
    let outside = Environment::new(|| 0, |bytes| getrandom::fill(bytes).unwrap());
    let of_file = file.into_config(outside);
    let adapt = edited(|config| {
        let servers = std::mem::take(&mut config.servers);
        *config = of_file;
        config.servers = servers;
    });
    let harness = harness(r#"{"acme/own":1.0}"#, adapt).await;
    for way in ClientKind::ALL {
        for variant in ["standard", "words"] {
            for method in [CALL, READ, GET] {
                let params = under(variant, params(method));
                let answer = ask_as(&harness, way, &json!({"sampling": {}}), method, params).await;
                answer.has("/result/_meta", json!({"acme/own": 1.0}));
                assert!(!answer.to_string().contains("vary/"), "{answer}");
            }
            let call = under(variant, params(CALL));
            let told = harness.ask(way, CALL, call).await;
            let found = &told["result"]["content"][0]["text"];
            assert_eq!(*found, "Rows.", "{way:?}: {told}");
        }
        let read = harness.ask(way, READ, params(READ)).await;
        read.has("/result/contents/0/mimeType", "text/markdown");
    }
}

/// CN-19: what says that it was shaped goes out byte for byte, whatever a client declared and an operator
/// wants.
#[tokio::test]
async fn nothing_is_shaped_twice() {
    const SHAPED: &str = r#"{"vary/applied": {"format":"text"} }"#;
    let harness = harness(SHAPED, ruled).await;
    for tags in FORMATS {
        for way in ClientKind::ALL {
            for method in [CALL, READ, GET] {
                let answer = way
                    .text(&harness, &features(tags), method, params(method))
                    .await;
                let served = served(method, SHAPED).unwrap();
                // What a revision requires is added.
                let text = &served[1..served.len() - 1];
                assert!(answer.contains(text), "{way:?} {method} {tags:?}: {answer}");
            }
        }
    }
    // The same, not said to be shaped, is.
    let harness = self::harness("{}", ruled).await;
    for tags in FORMATS {
        for method in [CALL, READ, GET] {
            let (declared, params) = (features(tags), params(method));
            let answer = ClientKind::HttpModern.text(&harness, &declared, method, params);
            let answer = answer.await;
            let served = served(method, "{}").unwrap();
            let is_untouched = answer.contains(&served[1..served.len() - 1]);
            assert!(!is_untouched, "{method} {tags:?}: {answer}");
        }
    }
}
