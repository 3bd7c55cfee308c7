//! The audit log: what is recorded of requests, by the schema of the gateway's audit log.

use std::io::{self, Write};

use crate::desk::Desk;
use crate::prelude::*;
use crate::variants::variant;
use mcp_vary_rmcp::audit::{
    AuditConfig, AuditKey, AuditLog, IdentityDetail, Line, OnFull, Sink, StreamSink, Written,
};
use mcp_vary_rmcp::rates::{
    Counted, DEFAULT_CAPACITY, FakeRelativeClock, Limit, Per, RateLimiter, SharedClock,
};

/// What a log wrote.
#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn config() -> AuditConfig {
    let mut config = AuditConfig::new(|| 1_763_705_520_123_456, AuditKey::new([7; 32]), "run");
    config.identity = IdentityDetail::Full;
    config
}

/// The server, its log, and what it writes.
fn recorded(builder: Builder) -> (VaryServer, AuditLog, Text) {
    let text = Text::default();
    let sink = StreamSink::new("memory", Box::new(text.clone()));
    let log = AuditLog::start(&config(), Box::new(sink)).unwrap();
    let builder = builder.with_audit_log(log.clone());
    (builder.build().unwrap(), log, text)
}

/// The records, which the schema allows, without those of the log about itself.
fn records(log: &AuditLog, text: &Text) -> Vec<Value> {
    assert!(log.close(Duration::from_secs(10)));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit.schema.json");
    let schema = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let text = String::from_utf8(text.0.lock().unwrap().clone()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut lines: Vec<Value> = lines.collect();
    for line in &lines {
        let error = schema.validate(line).err().map(|error| error.to_string());
        assert_eq!(error, None, "{line}");
    }
    lines.retain(|line| !line["event"].as_str().unwrap().starts_with("audit."));
    lines
}

fn event<'r>(records: &'r [Value], event: &str) -> Vec<&'r Value> {
    let records = records.iter();
    records.filter(|record| record["event"] == event).collect()
}

/// The record of the only request with this method.
#[track_caller]
fn request<'r>(records: &'r [Value], method: &str) -> &'r Value {
    let requests = event(records, "request").into_iter();
    let found: Vec<_> = requests.filter(|it| it["method"] == method).collect();
    assert_eq!(found.len(), 1, "{method}: {records:?}");
    found[0]
}

fn desks() -> Builder {
    let rule = serde_json::from_str(r#"{"readOnlyHint": true}"#).unwrap();
    let reads = AccessRule::new(When::anyone()).with_allow([ItemPattern::tools(rule)]);
    let policy = AccessPolicy::new([reads.with_name("reads")]).unwrap();
    VaryServer::builder()
        .with_variant(variant("all"), Desk::whole())
        .with_variant(variant("other"), Desk::whole())
        .with_access(policy)
        .with_principal(|_| Some(member("ada")))
}

/// SV-22: a call is recorded with who, what, variant, rule, arguments and outcome.
#[tokio::test]
async fn a_call_is_recorded_with_its_outcome() {
    for (era, wire) in WAYS {
        let (server, log, text) = recorded(desks());
        let client = connect(&server, (era, wire)).await;
        client.call("all", "search", json!({"q": "secret"})).await;
        let records = records(&log, &text);
        let record = request(&records, "tools/call");
        let about = format!("{era:?} {wire:?} {record}");
        assert_eq!(record["outcome"], "allowed", "{about}");
        assert_eq!(record["principal"]["key"], "ada", "{about}");
        let expected = json!({"name": "client", "version": "1.0.0"});
        assert_eq!(record["client"], expected);
        let target = json!({"kind": "tool", "name": "search"});
        assert_eq!(record["target"], target, "{about}");
        let expected = json!({"id": "all", "reason": "selector"});
        assert_eq!(record["variant"], expected);
        assert_eq!(record["rule"], "reads", "{about}");
        assert_eq!(record["arguments"]["bytes"], 14, "{about}");
        let digest = record["arguments"]["digest"].as_str().unwrap();
        assert!(digest.starts_with("hmac-sha256:"), "{about}");
        let transport = if wire == Wire::Http { "http" } else { "stdio" };
        assert_eq!(record["transport"], transport, "{about}");
        let has_session = era == Era::Legacy && wire == Wire::Http;
        assert_eq!(record.get("session").is_some(), has_session, "{about}");
        assert!(record["duration_ms"].is_number() && record.get("code").is_none());
        let (era, handshake) = match era {
            Era::Modern => ("modern", "server/discover"),
            Era::Legacy => ("legacy", "initialize"),
        };
        assert_eq!(record["era"], era);
        let handshake = request(&records, handshake);
        assert_eq!(handshake["client"]["name"], "client", "{handshake}");
        assert!(!text.to_text().contains("secret"));
    }
}

impl Text {
    fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

/// SV-22: refusals by rules, variants and limits are recorded.
#[tokio::test]
async fn refusals_are_recorded() {
    for era in each([Era::Legacy, Era::Modern]) {
        let rate = "1/h".parse().unwrap();
        let limit = Limit::new("calls", Per::Principal, Counted::Calls, rate);
        let clock = SharedClock::of(FakeRelativeClock::default());
        let limiter = RateLimiter::new(vec![limit.unwrap()], DEFAULT_CAPACITY, clock).unwrap();
        let (server, log, text) = recorded(desks().with_rate_limits(limiter));
        let client = connect(&server, (era, Wire::Pipe)).await;
        let call = async |variant: &str, name: &str| {
            let call = json!({"name": name});
            client.under(variant, "tools/call", call).await
        };
        call("all", "wipe").await.unwrap_err();
        call("nothing", "search").await.unwrap_err();
        call("all", "search").await.unwrap();
        call("all", "search").await.unwrap_err();
        let records = records(&log, &text);
        let calls = event(&records, "request").into_iter();
        let calls = calls.filter(|it| it["method"] == "tools/call");
        let calls = calls.map(|it| json!([it["outcome"], it["code"], it["rule"]]));
        let expected = json!([
            ["denied", -32602, "access: default"],
            ["denied", -32602, null],
            ["allowed", null, "reads"],
            ["denied", -32005, "calls"],
        ]);
        assert_eq!(calls.collect::<Value>(), expected);
        let refused = event(&records, "variant.refused");
        let target = json!({"kind": "variant", "name": "nothing"});
        assert_eq!(refused[0]["target"], target);
        let reached = event(&records, "limit.reached");
        assert_eq!((reached.len(), &reached[0]["rule"]), (1, &json!("calls")));
        assert_eq!(reached[0]["target"]["name"], "search");
    }
}

/// SV-22: a selection is recorded when a client's variant changes.
#[tokio::test]
async fn selections_are_recorded_when_they_change() {
    for era in each([Era::Legacy, Era::Modern]) {
        let (server, log, text) = recorded(desks());
        let client: Client = connect(&server, (era, Wire::Pipe)).await;
        for variant in ["", "all", "other", "other", "all"] {
            client.result(variant, "tools/list", json!({})).await;
        }
        let records = records(&log, &text);
        let selected = event(&records, "variant.selected").into_iter();
        let selected: Vec<&Value> = selected.map(|it| &it["variant"]).collect();
        let by = |id: &str, reason: &str| json!({"id": id, "reason": reason});
        let (first, second) = (by("all", "ranking"), by("other", "selector"));
        assert_eq!(selected, [&first, &second, &by("all", "selector")]);
    }
}

/// A sink that is never done.
#[derive(Debug)]
struct Stuck;

impl Sink for Stuck {
    fn name(&self) -> String {
        "stuck".to_owned()
    }

    fn write(&mut self, _lines: &[Line]) -> Written {
        std::thread::sleep(Duration::from_millis(200));
        Written::failed(0, io::Error::other("stuck"))
    }
}

/// SV-22: with `OnFull::Refuse`, a request that cannot be recorded reaches no handler.
#[tokio::test]
async fn a_request_that_cannot_be_recorded_is_refused() {
    let mut config = config();
    config.on_full = OnFull::Refuse;
    config.capacity = 2;
    let log = AuditLog::start(&config, Box::new(Stuck)).unwrap();
    let server = desks().with_audit_log(log.clone()).build().unwrap();
    let client = connect(&server, (Era::Modern, Wire::Pipe)).await;
    let error = loop {
        match client.under("all", "tools/list", json!({})).await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    let message = "the request cannot be recorded in the audit log at the moment";
    data_of(error, -32603, message);
    assert!(log.stats().refused > 0);
}
