//! The operator's rules for the results of tools.

use tokio::task::JoinSet;

use crate::support::*;

/// A server with stations, one tool of which is bound to a schema.
fn server() -> Script {
    let stations = json!({"stations": [
        {"id": 1, "name": "Bern", "log": "long"}, {"id": 2, "name": "Thun|See", "log": "longer"},
    ], "took": 1.50});
    let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
    let schema = json!({"type": "object", "required": ["stations", "took"]});
    Script::legacy("rail")
        .lists(json!({"tools": [
            {"name": "list", "inputSchema": {"type": "object"}},
            {"name": "bound", "inputSchema": {"type": "object"}, "outputSchema": schema},
            {"name": "many", "inputSchema": {"type": "object"}, "outputSchema": schema},
            {"name": "prose", "inputSchema": {"type": "object"}},
            {"name": "fail", "inputSchema": {"type": "object"}},
        ]}))
        .on_call(move |params| match params["name"].as_str().unwrap() {
            "prose" => json!({"content": [image, {"type": "text", "text": "all is well"}]}),
            "many" => {
                let station = |id| json!({"id": id, "name": format!("Stop {id}"), "log": "long"});
                let all: Vec<_> = (1..=200).map(station).collect();
                let value = json!({"stations": all, "took": 1.50});
                json!({
                    "content": [{"type": "text", "text": value.to_string()}],
                    "structuredContent": value,
                })
            }
            "fail" => json!({"content": [{"type": "text", "text": "no"}], "isError": true}),
            _ => json!({
                "content": [image, {"type": "text", "text": stations.to_string()}],
                "structuredContent": stations, "x-own": 1.0,
            }),
        })
}

async fn result(harness: &Harness, tags: &[&str], name: &str) -> Value {
    let params = json!({"name": name, "arguments": {"line": "S1"}});
    harness
        .result_of(ClientKind::HttpModern, tags, "tools/call", params)
        .await
}

const PROJECTED: &str = r#"
- tools: [list, bound]
  project: '.stations | map({id, name}) | {stations: .}'
  markdown: |
    Stations of {{ arguments.line }}:
    {% for station in stations %}
    - {{ station.name | cell }} ({{ station.id }})
    {% endfor %}
  hints: ["{{ stations | length }} stations{% if text %}, all of them{% endif %}", "{% if false %}never{% endif %}"]
"#;

/// CN-20, TR-3: the operator's value and words reach clients that negotiate, each in its form.
#[tokio::test]
async fn a_result_is_told_as_the_operator_says() {
    let harness = Harness::ruled(server(), PROJECTED).await;
    let few = json!({"stations": [{"id": 1, "name": "Bern"}, {"id": 2, "name": "Thun|See"}]});

    let json = result(&harness, &["agent", "format=json"], "list").await;
    assert_eq!(json["structuredContent"], few);
    assert_eq!(texts(&json), [""; 0]);
    let found = &json["content"][0]["type"];
    assert_eq!(*found, "image", "what is not text stays");
    assert_eq!(json["x-own"].to_string(), "1.0");
    assert_eq!(json["_meta"]["vary/applied"]["format"], "json");

    let both = result(&harness, &["format=json"], "list").await;
    assert_eq!(both["structuredContent"], few);
    assert_eq!(texts(&both), [few.to_string()]);

    let words = "Stations of S1:\n- Bern (1)\n- Thun\\|See (2)";
    let markdown = result(&harness, &["human", "format=markdown"], "list").await;
    assert_eq!(texts(&markdown), [words]);
    assert_eq!(markdown.get("structuredContent"), None);
    // In the place of what it replaces.
    markdown.has("/content/0/type", "image");
    markdown.has("/content/1/type", "text");
    markdown.has("/content/2", Value::Null);
}

/// CN-19: the report names the verbosity of the condition that chose a rule, and `standard` where none asks for one.
#[tokio::test]
async fn the_report_names_the_verbosity_that_chose_the_rule() {
    let rules = r#"
- {when: human, markdown: "a page"}
- {when: human & verbosity=verbose, markdown: "a long page"}
- {when: agent & verbosity=compact, project: '{took: .took}'}
"#;
    let harness = Harness::ruled(server(), rules).await;
    for (tags, verbosity) in [
        (&["human", "verbosity=standard"][..], "standard"),
        (&["human", "verbosity=verbose"], "verbose"),
        (&["agent", "format=json", "verbosity=compact"], "compact"),
    ] {
        let result = result(&harness, tags, "list").await;
        let applied = &result["_meta"]["vary/applied"];
        assert_eq!(applied["verbosity"], verbosity, "{tags:?} {result}");
    }
}

/// CN-14: hints are for clients that sample; one that has nothing to say is none.
#[tokio::test]
async fn hints_reach_clients_that_sample() {
    let harness = Harness::ruled(server(), PROJECTED).await;
    let markdown = result(&harness, &["human", "format=markdown", "sampling"], "list").await;
    assert_eq!(texts(&markdown)[1], "- 2 stations, all of them");
    let json = result(&harness, &["agent", "format=json", "sampling"], "list").await;
    let expected = json!(["2 stations, all of them"]);
    json.has("/structuredContent/hints", expected);
    let bound = result(&harness, &["agent", "format=json", "sampling"], "bound").await;
    // No property that the schema does not declare.
    assert_eq!(bound["structuredContent"].get("hints"), None);
}

/// TR-4: a value that the listed schema does not take is told in the text alone.
#[tokio::test]
async fn a_schema_keeps_its_value() {
    let harness = Harness::ruled(server(), PROJECTED).await;
    for tags in ["agent format=json", "format=json", "human", "format=text"] {
        let declared: Vec<_> = tags.split(' ').collect();
        let bound = result(&harness, &declared, "bound").await;
        let found = bound["structuredContent"]["took"].to_string();
        assert_eq!(found, "1.5", "{tags:?}");
        let found = &bound["structuredContent"]["stations"][0]["log"];
        assert!(found.is_string(), "{tags:?}");
    }
    let text = result(&harness, &["format=json"], "bound").await;
    assert!(!texts(&text)[0].contains("log"));
    let accepted =
        Harness::ruled(server(), "- {tools: [bound], project: '{stations, took}'}").await;
    let bound = result(&accepted, &["agent", "format=json"], "bound").await;
    assert_eq!(bound["structuredContent"]["took"].to_string(), "1.5");
}

/// CN-7: who declares nothing gets what the server said, unless the operator says for everyone.
#[tokio::test]
async fn who_declares_nothing_is_told_so_only_when_the_operator_says_everyone() {
    let negotiating = Harness::ruled(server(), PROJECTED).await;
    let own = result(&negotiating, &[], "list").await;
    assert!(own["structuredContent"]["stations"][0]["log"].is_string());
    assert_eq!(own.get("_meta"), None);

    let everyone = Harness::ruled(
        server(),
        "- {tools: [list], for: everyone, project: '.stations | map(.name) | {names: .}'}",
    )
    .await;
    let told = result(&everyone, &[], "list").await;
    told.has("/structuredContent", json!({"names": ["Bern", "Thun|See"]}));
    assert_eq!(texts(&told), [r#"{"names":["Bern","Thun|See"]}"#]);
    // They are told nothing of what was applied.
    assert_eq!(told.get("_meta"), None);
}

/// CN-20: the most specific condition decides, then the order.
#[tokio::test]
async fn the_most_specific_condition_decides() {
    let harness = Harness::ruled(
        server(),
        r#"
- {markdown: "anyone"}
- {markdown: "second"}
- {when: human, markdown: "a person"}
- {when: human & interactive, markdown: "a person who is there"}
- {when: "human & x-max-tokens=[-100]", markdown: "few"}
"#,
    )
    .await;
    for (tags, words) in [
        (&["format=markdown"][..], "anyone"),
        (&["human"], "a person"),
        (&["human", "interactive"], "a person who is there"),
        (&["human", "x-max-tokens=50"], "few"),
        (&["human", "!interactive"], "a person"),
    ] {
        let told = result(&harness, tags, "list").await;
        assert_eq!(texts(&told), [words], "{tags:?}");
    }
}

/// CN-8: errors are what they are; prose is told otherwise only by a template.
#[tokio::test]
async fn errors_stay_and_prose_is_told_by_templates_alone() {
    let projected = Harness::ruled(server(), "- {project: '.a', hints: ['look twice']}").await;
    let error = result(&projected, &["human"], "fail").await;
    assert_eq!(texts(&error), ["no"]);
    error.has("/isError", true);
    let prose = result(&projected, &["human"], "prose").await;
    assert_eq!(texts(&prose), ["all is well"]);
    let hinted = result(&projected, &["human", "sampling"], "prose").await;
    assert_eq!(texts(&hinted), ["all is well", "look twice"]);
    let told = Harness::ruled(server(), "- {markdown: '**{{ text }}**'}").await;
    let prose = result(&told, &["human"], "prose").await;
    assert_eq!(texts(&prose), ["**all is well**"]);
}

/// The operator's slip takes nothing away from the client: it gets what the server said, shaped as without
/// the rule.
#[tokio::test]
async fn what_fails_leaves_the_result_and_is_counted() {
    for rules in [
        "- {markdown: '{{ nothing.at.all }}'}",
        "- {project: '.stations[0].name.x'}",
        "- {project: 'def f: f; f'}",
        "- {project: 'empty'}",
    ] {
        let harness = Harness::ruled(server(), rules).await;
        for (count, tags) in [(1, &["human"][..]), (2, &["human", "verbosity=compact"])] {
            let told = result(&harness, tags, "list").await;
            assert!(texts(&told)[0].contains("longer"), "{rules}: {told}");
            assert_eq!(harness.gateway.failed_results(), count, "{rules} {tags:?}");
        }
    }
}

/// CN-20: a template or filter that runs for too long, or makes too much, is stopped; the client gets what the
/// server said, and the operator hears of it without a word of the result.
#[tokio::test]
async fn what_takes_too_much_is_stopped() {
    let long = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
    let large = "{{ range(99999) | join(text) }}";
    let endless = "[limit(1000000000; repeat(1))] | length";
    let many = "[range(300000) | \"0123456789012345678901234567890123456789\"]";
    for (part, rule) in [
        ("markdown", json!({"markdown": long})),
        ("markdown", json!({"markdown": large})),
        ("text", json!({"text": long})),
        ("hints", json!({"hints": [long]})),
        ("project", json!({"project": endless})),
        ("project", json!({"project": many})),
    ] {
        let (log, _guard) = CapturedLog::listen("mcp_vary", Level::WARN);
        let harness = Harness::ruled(server(), &json!([rule]).to_string()).await;
        let told = result(&harness, &["human", "sampling"], "list").await;
        assert!(texts(&told)[0].contains("longer"), "{rule}: {told}");
        let expected = "markdown";
        assert_eq!(told["_meta"]["vary/applied"]["format"], expected, "{rule}");
        assert_eq!(harness.gateway.failed_results(), 1, "{rule}");
        let lines = log.take();
        let said = lines
            .iter()
            .filter(|line| line.contains("result not rewritten"));
        let said: Vec<_> = said.collect();
        assert_eq!(said.len(), 1, "{rule}: {lines:?}");
        assert!(said[0].contains(&format!("part=\"{part}\"")), "{}", said[0]);
        assert!(!said[0].contains("longer"), "{}", said[0]);
    }
}

/// CN-20: filters that run for long are the matter of those whose results they make. The gateway has two threads here, so six
/// such filters would keep both busy.
#[test]
fn what_takes_long_delays_nobody_else() {
    let serving = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let rule = json!({"project": "[limit(1000000000; repeat(1))] | length"});
    let harness = serving.block_on(Harness::ruled(server(), &json!([rule]).to_string()));
    let clients = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    clients.block_on(async {
        let mut other = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        let call = modern(json!(1), "tools/call", tool("list"), &features(&["human"]));
        let mut answers = JoinSet::new();
        for _ in 0..6 {
            let (mut http, call) = (harness.connect().await, HttpRequest::modern(&call));
            answers.spawn(async move { soon(http.ask(&call)).await.json() });
        }
        soon(harness.peer.wait_for("tools/call", 6)).await;
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let pong = other.answer("ping", json!({})).await;
            pong.has("/result", json!({}));
            let first = answers.try_join_next();
            assert!(first.is_none(), "a call was answered before the ping");
        }
        for answer in answers.join_all().await {
            let told = &answer["result"];
            assert!(texts(told)[0].contains("longer"), "{told}");
        }
        assert_eq!(harness.gateway.failed_results(), 6);
    });
}

/// A result that does not get shorter in few words is told once, like any other.
#[tokio::test]
async fn what_fails_fails_once() {
    let harness = Harness::ruled(server(), "- {markdown: '{{ nothing.at.all }}'}").await;
    let tags = &["human", "verbosity=compact"];
    let prose = result(&harness, tags, "prose").await;
    assert_eq!(texts(&prose), ["all is well"]);
    assert_eq!(harness.gateway.failed_results(), 1);
}

/// CN-13, TR-4: a result that few words make no shorter keeps the operator's, beside a value that is bound to a
/// schema.
#[tokio::test]
async fn few_words_leave_the_operators_where_they_save_nothing() {
    let harness = Harness::ruled(
        server(),
        "- {tools: [bound], project: '{ids: [.stations[].id]}', hints: ['Look twice.']}",
    )
    .await;
    for tags in [
        &["format=json", "sampling"][..],
        &["format=json", "sampling", "verbosity=compact"],
    ] {
        let told = result(&harness, tags, "bound").await;
        let expected = [r#"{"ids":[1,2]}"#, "- Look twice."];
        assert_eq!(texts(&told), expected, "{tags:?}");
        let found = &told["structuredContent"]["stations"][0]["log"];
        assert!(found.is_string(), "{tags:?}");
    }
}

/// CN-13, TR-4: in few words, too, the text says the operator's value beside one that is bound to a schema.
#[tokio::test]
async fn few_words_are_the_operators() {
    let harness = Harness::ruled(
        server(),
        "- {tools: [many], project: '{ids: [.stations[].id]}', markdown: '{{ ids | length }} stations'}",
    )
    .await;
    for (tags, words) in [
        (&["format=json", "verbosity=compact"][..], "{\"ids\":[1,2,"),
        (&["human", "verbosity=compact"], "200 stations"),
    ] {
        let told = result(&harness, tags, "many").await;
        let texts = texts(&told);
        assert!(texts[0].starts_with(words), "{tags:?}: {texts:?}");
        assert!(
            !texts.iter().any(|text| text.contains("Stop")),
            "{tags:?}: {texts:?}"
        );
        let bound = &told["structuredContent"];
        assert_eq!(bound["took"].to_string(), "1.5", "{tags:?}");
        assert_eq!(bound["stations"][0]["name"], "Stop 1", "{tags:?}");
    }
}
