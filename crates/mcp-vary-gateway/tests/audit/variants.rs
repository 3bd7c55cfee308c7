//! SV-22: selections and refusals of variants.

use mcp_vary_audit::ArgumentsDetail;
use mcp_vary_config::Source;
use mcp_vary_gateway::settings::model_ranking::ModelRankingConfig;

use super::recorded::{Recorded, settings};
use crate::support::*;

/// The variants that clients got, with the reasons.
fn selections(records: &[Value]) -> String {
    let selections = records.iter().map(|record| &record["variant"]);
    let texts = selections.map(|it| format!("{} {}", it["id"], it["reason"]).replace('"', ""));
    texts.collect::<Vec<_>>().join(", ")
}

/// SV-22: a session's variant is recorded when the session begins, and again whenever it is another one.
#[tokio::test]
async fn a_session_is_recorded_when_its_variant_changes() {
    let recorded = Recorded::start().await;
    let mut client = LegacyClient::open(&recorded.harness, "2025-11-25", &json!({})).await;
    let compact = under("compact", json!({}));
    for params in [json!({}), json!({}), compact.clone(), compact, json!({})] {
        client.ask("tools/list", params).await;
    }
    let records = recorded.sink.wait_for("variant.selected", 3).await;
    let expected = "standard ranking, compact selector, standard ranking";
    assert_eq!(selections(&records), expected);
    records[0].has("/method", "initialize");
    assert!(records.iter().all(|record| record["session"].is_string()));
    // Another session is another client.
    let mut other = LegacyClient::open(&recorded.harness, "2025-11-25", &json!({})).await;
    other.ask("tools/list", json!({})).await;
    recorded.sink.wait_for("variant.selected", 4).await;
}

/// A gateway with these lines in its file.
async fn with_lines(lines: &str) -> Recorded {
    let text = format!("servers: {{a: {{command: x}}}}\n{lines}");
    let file = Source::new("vary.yaml", &text).read(&|_| None);
    let file = file.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let environment = Environment::new(|| 0, |bytes| bytes.fill(7));
    let file = file.into_config(environment);
    let adapt = edited(|config| {
        (config.access, config.selection) = (file.access, file.selection);
        config.experiments = file.experiments;
    });
    Recorded::with(settings(), adapt).await
}

/// The records of one client that lists the tools of a gateway with these lines in its file.
async fn records_of(kind: ClientKind, lines: &str, hints: &Value) -> (Recorded, Value) {
    let recorded = with_lines(lines).await;
    let hints = json!({"variantHints": {"hints": hints}});
    let declared = json!({"extensions": {"io.modelcontextprotocol/server-variants": hints}});
    let harness = &recorded.harness;
    kind.ask(harness, &declared, "tools/list", json!({})).await;
    let listed = recorded.sink.request("tools/list").await["variant"].clone();
    (recorded, listed)
}

const RANKED: &str = "compact=60 standard=20 directory=20 read-only=20";
const UNRANKED: &str = "standard=20 compact=20 directory=20 read-only=20";
const COMPACT_FIRST: &str = "compact=20 standard=20 directory=20 read-only=20";

/// SV-22: who, hints, ranking with scores, chosen, why: in each era, for each kind of rule.
#[tokio::test]
async fn the_first_reason_of_a_variant_is_recorded_in_each_era() {
    let access = "access: [{when: {anyone: on}, allow: [\"*\"], variant: compact";
    let compact = json!({"contextSize": "compact"});
    let hints = Some("contextSize=compact");
    let clients = "clients: [{name: nix, variant: standard}, {variant: compact}]";
    let (team, pin) = (
        format!("{access}, name: team}}]"),
        format!("{access}, pin: on}}]"),
    );
    let ranked = ("compact", "ranking", None, hints, RANKED);
    let by_rule = |rule: &'static str| ("compact", "rule", Some(rule), None, COMPACT_FIRST);
    let pinned = ("compact", "pin", Some("access[0]"), None, "compact=20");
    for (lines, declared, expected) in [
        ("", json!({}), ("standard", "ranking", None, None, UNRANKED)),
        ("", compact, ranked),
        (clients, json!({}), by_rule("clients[1]")),
        ("variant: compact", json!({}), by_rule("variant")),
        (&*team, json!({}), by_rule("team")),
        (&*pin, json!({}), pinned),
    ] {
        for kind in ClientKind::ALL {
            let (recorded, listed) = records_of(kind, lines, &declared).await;
            let (id, reason, rule, hints, order) = expected;
            let mut choice = json!({"id": id, "reason": reason});
            if let Some(rule) = rule {
                choice["rule"] = json!(rule);
            }
            assert_eq!(listed, choice, "{kind:?} {lines}");
            choice["order"] = json!(order);
            if let Some(hints) = hints {
                choice["hints"] = json!(hints);
            }
            let selected = recorded.sink.wait_for("variant.selected", 1).await;
            assert_eq!(selected[0]["variant"], choice, "{kind:?} {lines}");
            if !kind.is_modern() {
                let opened = recorded.sink.request("initialize").await;
                assert_eq!(opened["variant"], choice, "{kind:?} {lines}");
                selected[0].has("/method", "initialize");
            }
        }
    }
}

/// SV-22, SV-24: a session knows its experiment, and the address or header of its `initialize`.
#[tokio::test]
async fn a_session_is_recorded_with_its_experiment() {
    let lines = "experiments: [{name: two words, arms: {standard: 0, compact: 1}, salt: x}]";
    for kind in [ClientKind::HttpLegacy, ClientKind::StdioLegacy] {
        let (_recorded, listed) = records_of(kind, lines, &json!({})).await;
        let expected = json!({"id": "compact", "reason": "experiment", "rule": "two words"});
        assert_eq!(listed, expected, "{kind:?}");
    }
    for (post, reason) in [
        ("POST /mcp/v/compact HTTP/1.1", "address"),
        ("POST /mcp HTTP/1.1", "header"),
    ] {
        let recorded = Recorded::start().await;
        let mut http = recorded.harness.connect().await;
        let mut open = HttpRequest::initialize(&json!({}));
        open = open.line(post);
        if reason == "header" {
            open = open.with("MCP-Server-Variant", "compact");
        }
        let session = http.open_session(&open).await;
        let list = request(json!(2), "tools/list", json!({})).to_string();
        http.ask(&HttpRequest::of(&session, list)).await;
        let listed = recorded.sink.request("tools/list").await;
        let expected = json!({"id": "compact", "reason": reason});
        listed.has("/variant", expected);
    }
}

/// SV-22: modern clients are told apart by their address and name.
#[tokio::test]
async fn a_client_without_a_session_is_recorded_when_its_variant_changes() {
    let recorded = Recorded::start().await;
    let mut http = recorded.harness.connect().await;
    let list = |name: &str, params: Value| {
        let mut list = modern(json!(1), "tools/list", params, &json!({}));
        list["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] =
            json!({"name": name, "version": "1"});
        list
    };
    for message in [
        list("a", json!({})),
        list("a", json!({})),
        list("b", json!({})),
        list("a", under("compact", json!({}))),
        list("b", json!({})),
    ] {
        http.ask(&HttpRequest::modern(&message)).await;
    }
    let records = recorded.sink.wait_for("variant.selected", 3).await;
    let names: Vec<_> = records.iter().map(|it| &it["client"]["name"]).collect();
    assert_eq!(names, ["a", "b", "a"]);
    let expected = "standard ranking, standard ranking, compact selector";
    assert_eq!(selections(&records), expected);
}

/// SV-22: by a selector in `_meta`, for every kind of client.
#[tokio::test]
async fn a_refused_selector_is_recorded() {
    for kind in ClientKind::ALL {
        for (selector, name) in [(json!("gone\u{1b}[2J"), "gone\u{1b}[2J"), (json!(7), "7")] {
            let recorded = Recorded::start().await;
            let params = under(selector, json!({}));
            let answer = recorded.harness.ask(kind, "tools/list", params).await;
            answer.has("/error/code", -32602);
            let refused = recorded.sink.wait_for("variant.refused", 1).await;
            let target = json!({"kind": "variant", "name": name});
            assert_eq!(refused[0]["target"], target, "{kind:?}");
            refused[0].has("/outcome", "denied");
            let record = recorded.sink.request("tools/list").await;
            let found = (&record["outcome"], &record["code"], &record["variant"]);
            let expected = (&json!("denied"), &json!(-32602), &Value::Null);
            assert_eq!(found, expected, "{kind:?}");
        }
    }
}

/// SV-9, SV-22: a client whose rules leave it no variant is refused by these rules.
#[tokio::test]
async fn a_client_without_a_variant_is_recorded_with_its_rules() {
    let lines = "access: [{when: {anyone: on}, allow: [\"*\"], variant: compact, pin: on}, \
        {name: two, when: {anyone: on}, variant: read-only, pin: on}]";
    for (kind, method) in [
        (ClientKind::HttpModern, "tools/list"),
        (ClientKind::StdioModern, "tools/list"),
        (ClientKind::StdioLegacy, "initialize"),
    ] {
        let recorded = with_lines(lines).await;
        let answer = match method {
            "initialize" => {
                let open = initialize("2025-11-25", &json!({}));
                recorded.harness.open_pipe().ask(&open).await
            }
            _ => recorded.harness.ask(kind, method, json!({})).await,
        };
        let message = "this server has no variant for this client; ask its operator for access";
        assert_eq!(answer["error"]["message"], message, "{kind:?}");
        let record = recorded.sink.request(method).await;
        let found = (&record["outcome"], &record["rule"], &record["code"]);
        let expected = (&json!("denied"), &json!("access[0], two"), &json!(-32602));
        assert_eq!(found, expected, "{kind:?}");
        assert_eq!(recorded.sink.of("variant.refused").len(), 0, "{kind:?}");
    }
}

/// SV-22: by the address and by the header, in both eras.
#[tokio::test]
async fn a_refused_address_or_header_is_recorded() {
    let post = |is_modern: bool| {
        if is_modern {
            HttpRequest::modern_request("tools/list", json!({}))
        } else {
            HttpRequest::initialize(&json!({}))
        }
    };
    for is_modern in [false, true] {
        for by_address in [false, true] {
            let recorded = Recorded::start().await;
            let post = if by_address {
                post(is_modern).line("POST /mcp/v/gone HTTP/1.1")
            } else {
                post(is_modern).with("MCP-Server-Variant", "gone")
            };
            let mut http = recorded.harness.connect().await;
            let answer = http.ask(&post).await.json();
            answer.has("/error/code", -32602);
            let refused = recorded.sink.wait_for("variant.refused", 1).await;
            refused[0].has("/target/name", "gone");
            let record = recorded.sink.wait_for("request", 1).await;
            record[0].has("/outcome", "denied");
        }
    }
}

/// A variant by the address is recorded with that reason.
#[tokio::test]
async fn the_reason_of_a_selection_is_recorded() {
    let recorded = Recorded::start().await;
    let mut http = recorded.harness.connect().await;
    let list = modern(json!(1), "tools/list", json!({}), &json!({}));
    let post = HttpRequest::modern(&list).line("POST /mcp/v/compact HTTP/1.1");
    http.ask(&post).await;
    let record = recorded.sink.request("tools/list").await;
    record.has("/variant", json!({"id": "compact", "reason": "address"}));
}

/// Where variants are off, no record has one.
#[tokio::test]
async fn without_variants_there_is_nothing_to_select() {
    let log = settings();
    let recorded = Recorded::with(log, |config| config.with_variants(false)).await;
    let mut pipe = recorded.harness.open_pipe();
    pipe = pipe.initialize("2025-11-25", &json!({})).await;
    pipe.ask(&request(json!(1), "tools/list", json!({}))).await;
    let record = recorded.sink.request("tools/list").await;
    assert_eq!(record.get("variant"), None);
    assert_eq!(recorded.sink.of("variant.selected").len(), 0);
}

/// Has a model rank the variants of anonymous clients, too.
fn ranked_by(model: &ModelServer) -> impl FnOnce(&mut Config) + use<> {
    let mut ranking = ModelRankingConfig::new(&model.url(), "small").unwrap();
    ranking.anonymous = true;
    |config| config.model_ranking = Some(ranking)
}

/// SV-6, SV-22: what a model was asked to rank, its answer and its duration are recorded once for a question. The question is
/// written as arguments are.
#[tokio::test]
async fn a_ranking_by_a_model_is_recorded() {
    let answer = r#"{"ranking":["compact","read-only","directory","standard"]}"#;
    let description = "a client that plans trips";
    let hints = json!({"variantHints": {"description": description}});
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/server-variants": hints}});
    let order = json!("compact read-only directory standard");
    for (says, outcome, order, failure) in [
        (answer, "allowed", order, Value::Null),
        ("[]", "error", Value::Null, json!("wrong-shape")),
    ] {
        let model = ModelServer::start(ModelBehavior::Says(says.to_owned())).await;
        let mut log = settings();
        log.arguments = ArgumentsDetail::Full { limit: 10_000 };
        let recorded = Recorded::with(log, edited(ranked_by(&model))).await;
        for _ in 0..2 {
            let harness = &recorded.harness;
            ask_modern_as(harness, &capabilities, "server/discover", json!({})).await;
        }
        let records = recorded.sink.wait_for("variants.ranked", 1).await;
        let record = &records[0];
        record.has("/outcome", outcome);
        assert!(record["duration_ms"].as_f64().unwrap() > 0.0, "{record}");
        let ranking = &record["ranking"];
        ranking.has("/model", "small");
        ranking.has("/variants", "standard compact directory read-only");
        assert_eq!(ranking["order"], order, "{record}");
        assert_eq!(ranking["failure"], failure, "{record}");
        record.contains("/arguments/text", description);
    }
}

/// SV-22: a session that begins with the order of a model is recorded so. The session before it was ranked by the rules.
#[tokio::test]
async fn a_session_whose_first_variant_a_model_chose_is_recorded_with_that_reason() {
    let answer = r#"{"ranking":["compact","read-only","directory","standard"]}"#;
    let model = ModelServer::start(ModelBehavior::Says(answer.to_owned())).await;
    let hints = json!({"variantHints": {"description": "a client that plans trips"}});
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/server-variants": hints}});
    let recorded = Recorded::with(settings(), edited(ranked_by(&model))).await;
    LegacyClient::open(&recorded.harness, "2025-11-25", &capabilities).await;
    let ranking = || recorded.harness.gateway.status().model_ranking.unwrap();
    until(async || ranking().used != 0).await;
    let mut client = LegacyClient::open(&recorded.harness, "2025-11-25", &capabilities).await;
    client.ask("tools/list", json!({})).await;
    // To clients of 2026-07-28 the model never gives their first variant.
    ask_modern_as(&recorded.harness, &capabilities, "prompts/list", json!({})).await;
    let selected = recorded.sink.wait_for("variant.selected", 3).await;
    let expected = "standard ranking, compact model, standard ranking";
    assert_eq!(selections(&selected), expected);
    selected[1].has("/method", "initialize");
    let listed = recorded.sink.request("tools/list").await;
    listed.has("/variant", json!({"id": "compact", "reason": "model"}));
}
