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

fn server(meta: &'static str) -> Script {
    let reply = move |seen: &ReceivedRequest| {
        seen.answer_text(&served(seen.method(), meta).expect("a result"))
    };
    Script::legacy("trips")
        .declares(places_server::capabilities())
        .tools(&["rows"])
        .lists(json!({
            "resources": [{"uri": "map://bern", "name": "bern"}],
            "prompts": [{"name": "plan"}],
        }))
        .reply(CALL, reply)
        .reply(READ, reply)
        .reply(GET, reply)
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
    let harness = Harness::with_server(server(r#"{"acme/own":1.0}"#), ruled).await;
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
    let harness = Harness::with_server(server("{}"), ruled).await;
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
    let harness = Harness::with_server(server(r#"{"acme/own":1.0}"#), adapt).await;
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

/// What a server can write about its own result, which got no tags of its client.
const MARKS: [&str; 3] = [
    r#"{"vary/applied": {"format":"text"} }"#,
    r#"{"vary\u002fapplied":{}}"#,
    r#"{"vary/applied":null}"#,
];

/// CN-19: it makes no difference to clients that declared something.
#[tokio::test]
async fn a_server_without_the_tags_reports_nothing() {
    let plain = Harness::with_server(server("{}"), ruled).await;
    for mark in MARKS {
        let marked = Harness::with_server(server(mark), ruled).await;
        for tags in FORMATS {
            for way in ClientKind::ALL {
                for method in [CALL, READ, GET] {
                    let declared = features(tags);
                    let expected = ask_as(&plain, way, &declared, method, params(method)).await;
                    let answer = ask_as(&marked, way, &declared, method, params(method)).await;
                    assert_eq!(answer, expected, "{way:?} {method} {tags:?} {mark}");
                    assert!(answer["result"]["_meta"]["vary/applied"]["variant"].is_string());
                }
            }
        }
    }
}

/// CN-19: what a projection removes stays removed, and what exceeds limits is cut, for every client.
#[tokio::test]
async fn a_server_shows_nothing_that_a_rule_removes() {
    for mark in MARKS {
        for (rule, secret) in [
            ("[{for: everyone, project: '{first: .rows[0].id}'}]", "none"),
            ("[{for: everyone, limits: {elements: 1}}]", "\"id\":2"),
        ] {
            let with_rule = |mut config: Config| {
                config.results = read_results(rule).unwrap();
                config
            };
            let harness = Harness::with_server(server(mark), with_rule).await;
            for way in ClientKind::ALL {
                for declared in [
                    json!({}),
                    features(&["agent", "format=json"]),
                    features(&["human"]),
                ] {
                    let answer = ask_as(&harness, way, &declared, CALL, params(CALL)).await;
                    assert!(answer["result"].is_object(), "{answer}");
                    let shown = answer.to_string().replace('\\', "");
                    assert!(!shown.contains(secret), "{way:?} {rule} {mark}: {shown}");
                }
            }
        }
    }
}

/// CN-19: rules for everyone apply, and what is not replaced by a report stays as the server wrote it.
#[tokio::test]
async fn a_server_switches_no_rule_off() {
    for mark in MARKS {
        let everyone = Harness::with_server(server(mark), |mut config| {
            config.results =
                read_results("[{for: everyone, project: '{first: .rows[0].id}'}]").unwrap();
            config.resource_results = read_resources("[{for: everyone, as: markdown}]").unwrap();
            config.prompt_results = read_prompts("[{for: everyone, text: Plan it well.}]").unwrap();
            config
        });
        let harness = everyone.await;
        for way in ClientKind::ALL {
            for (method, path, expected) in [
                (CALL, "/result/content/0/text", "{\"first\":1}"),
                (READ, "/result/contents/0/mimeType", "text/markdown"),
                (GET, "/result/messages/0/content/text", "Plan it well."),
            ] {
                let answer = harness.ask(way, method, params(method)).await;
                answer.has(path, expected);
                let meta: Value = serde_json::from_str(mark).unwrap();
                answer.has("/result/_meta", meta);
            }
        }
    }
}
