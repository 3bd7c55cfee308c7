//! Every vector of `spec/vectors/lossless.json`, on every route, compared as bytes.

use std::path::Path;

use mcp_vary_wire::revision::Era;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::support::{Behind, Front, Harness, Heard, Said, Seen, error, members, result};
use mcp_vary_testkit::prelude::*;

#[derive(Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    requirement: String,
    name: String,
    input: Input,
    expected: Expected,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    method: String,
    params: Value,
    era: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expected {
    Result(String),
    Error(String),
}

impl Case {
    /// The cases that servers and clients of `era` know.
    fn of(era: Era) -> Vec<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/vectors/lossless.json");
        let Vectors { cases } =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(cases.len() >= 100, "{} cases", cases.len());
        let cases = cases.into_iter();
        cases
            .filter(|case| case.input.era.is_none() || era == Era::Modern)
            .collect()
    }

    fn is_list(&self) -> bool {
        self.input.method.ends_with("/list")
    }

    /// What the server says: the text of the case, with the `resultType` of its revision.
    fn said(&self, era: Era) -> Said {
        match &self.expected {
            Expected::Result(text) if era == Era::Modern => result(complete(text)),
            Expected::Result(text) => result(text.clone()),
            Expected::Error(text) => error(text.clone()),
        }
        .unwrap()
    }

    /// What the client must get.
    fn expected(&self, era: Era) -> String {
        let (Ok(mut text) | Err(mut text)) = self.said(era).outcome;
        // Whatever the server says (SV-17).
        let method = self.input.method.as_str();
        if era == Era::Modern && (self.is_list() || method == "resources/read") {
            text = with(&text, "ttlMs", "0");
            text = with(&text, "cacheScope", r#""private""#);
        }
        text
    }

    #[track_caller]
    fn arrived(&self, received: &Heard, era: Era, route: &str) {
        let text = match &self.expected {
            Expected::Result(_) => received.result(),
            Expected::Error(_) => received.error(),
        };
        let Self {
            requirement, name, ..
        } = self;
        assert_eq!(text, self.expected(era), "{requirement} {name}, {route}");
        let has_status = era == Era::Modern || received.status == 200;
        assert!(has_status, "{name}, {route}");
    }
}

fn complete(result: &str) -> String {
    let remaining = result.strip_prefix('{').unwrap();
    let comma = if remaining == "}" { "" } else { "," };
    format!(r#"{{"resultType":"complete"{comma}{remaining}"#)
}

/// The object with the value of `key` in place of the one that is there, or at its end.
fn with(object: &str, key: &str, value: &str) -> String {
    if let Some(old) = members(object).get(key) {
        let at = old.as_ptr() as usize - object.as_ptr() as usize;
        return format!("{}{value}{}", &object[..at], &object[at + old.len()..]);
    }
    format!(r#"{},"{key}":{value}}}"#, object.strip_suffix('}').unwrap())
}

/// What a request asks for, whatever else its `_meta` says.
fn question(method: &str, params: &str) -> (String, Value) {
    let mut params: Value = serde_json::from_str(params).unwrap();
    params.as_object_mut().unwrap().remove("_meta");
    (method.to_owned(), params)
}

/// A script that answers each case of `cases`.
fn table(cases: &[Case], era: Era) -> impl Fn(&Seen) -> Option<Said> + Send + Sync + 'static {
    let cases: Arc<[Case]> = cases.into();
    move |seen| {
        let (method, params) = question(&seen.method, &seen.params);
        let case = cases
            .iter()
            .find(|case| case.input.method == method && case.input.params == params);
        case.map(|case| case.said(era))
    }
}

async fn arrive(fronts: &[Front], behind: Behind, era: Era) {
    let (lists, remaining): (Vec<Case>, Vec<Case>) =
        Case::of(era).into_iter().partition(Case::is_list);
    for round in rounds(lists).iter().chain([&remaining]) {
        let harness = Harness::build(behind, era, table(round, era)).await;
        for front in fronts {
            let route = format!("{front:?} to {behind:?}, {era:?}");
            let mut client = harness.client(*front, era).await;
            for case in round {
                let params = case.input.params.to_string();
                let received = client.ask(&case.input.method, &params).await;
                case.arrived(&received, era, &route);
            }
        }
    }
}

/// Lists are read when the gateway starts, so that each gateway can have one of each kind.
fn rounds(lists: Vec<Case>) -> Vec<Vec<Case>> {
    let mut rounds: Vec<Vec<Case>> = Vec::new();
    for case in lists {
        let same = |other: &Case| other.input.method == case.input.method;
        match rounds.iter_mut().find(|round| !round.iter().any(same)) {
            Some(round) => round.push(case),
            None => rounds.push(vec![case]),
        }
    }
    rounds
}

/// CN-7: on every route, in the era that both sides speak.
#[tokio::test]
async fn every_result_arrives_as_sent_from_a_legacy_endpoint() {
    arrive(&BOTH, Behind::Json, Era::Legacy).await;
    arrive(&BOTH, Behind::Events, Era::Legacy).await;
}

/// CN-7, SV-17
#[tokio::test]
async fn every_result_arrives_as_sent_from_a_modern_endpoint() {
    arrive(&BOTH, Behind::Json, Era::Modern).await;
    arrive(&BOTH, Behind::Events, Era::Modern).await;
}

/// CN-7
#[tokio::test]
async fn every_result_arrives_as_sent_from_a_legacy_process() {
    arrive(&BOTH, Behind::Stdio, Era::Legacy).await;
}

/// CN-7, SV-17
#[tokio::test]
async fn every_result_arrives_as_sent_from_a_modern_process() {
    arrive(&BOTH, Behind::Stdio, Era::Modern).await;
}

const BOTH: [Front; 2] = [Front::Http, Front::Stdio];

/// A server that answers calls so.
fn called(text: &'static str) -> impl Fn(&Seen) -> Option<Said> + Send + Sync + 'static {
    move |seen| match seen.method.as_str() {
        "tools/call" => result(text),
        _ => None,
    }
}

/// CN-7: a line break cannot be part of a line; between the tokens of JSON a space says the same.
#[tokio::test]
async fn line_breaks_arrive_where_they_can() {
    let text = "{\n  \"content\": [\r\n  ],\n  \"x\": 1.0\n}\n";
    let text = text.trim_end();
    for (behind, front, expected) in [
        (Behind::Json, Front::Http, text.to_owned()),
        (Behind::Json, Front::Stdio, text.replace(['\n', '\r'], " ")),
    ] {
        let harness = Harness::build(behind, Era::Legacy, called(text)).await;
        let mut client = harness.client(front, Era::Legacy).await;
        let received = client.ask("tools/call", r#"{"name":"odd"}"#).await;
        assert_eq!(received.result(), expected);
    }
}

/// CN-7: older revisions know fewer members; who does not know one carries it, or passes over it.
#[tokio::test]
async fn every_revision_before_sessions_ended_gets_the_same() {
    const ODD: &str =
        r#"{"content":[{"type":"hologram","x":1.0}],"structuredContent":{"b":1e2,"a":[ ]}}"#;
    let harness = Harness::build(Behind::Json, Era::Legacy, called(ODD)).await;
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        for front in BOTH {
            let mut client = harness.legacy_client(front, revision).await;
            let received = client.ask("tools/call", r#"{"name":"odd"}"#).await;
            assert_eq!(received.result(), ODD, "{revision}");
        }
    }
}

/// CN-7: a notification that nobody here knows belongs to its call all the same.
#[tokio::test]
async fn unknown_notifications_arrive_as_sent() {
    const ODD: &str = r#"{ "method":"notifications/x/odd", "jsonrpc":"2.0","params":{"b":1.0,"a":"\ud800"},"y":[ ]}"#;
    for era in [Era::Legacy, Era::Modern] {
        let script = |seen: &Seen| Some(called("{}")(seen)?.after(ODD));
        let harness = Harness::build(Behind::Json, era, script).await;
        for front in BOTH {
            let mut client = harness.client(front, era).await;
            let received = client.ask("tools/call", r#"{"name":"odd"}"#).await;
            received.result();
            assert_eq!(received.before, [ODD]);
        }
    }
}

/// CN-7: what a client says to a tool arrives as said, too.
#[tokio::test]
async fn arguments_arrive_as_sent() {
    for (front, behind, era) in [
        (Front::Http, Behind::Json, Era::Legacy),
        (Front::Http, Behind::Stdio, Era::Modern),
        (Front::Stdio, Behind::Json, Era::Modern),
        (Front::Stdio, Behind::Stdio, Era::Legacy),
    ] {
        let harness = Harness::build(behind, era, called(r#"{"content":[]}"#)).await;
        let mut client = harness.client(front, era).await;
        let mut calls = Case::of(era);
        calls.retain(|case| case.input.method == "tools/call");
        for case in calls {
            let (Expected::Result(odd) | Expected::Error(odd)) = &case.expected;
            let params = format!(r#"{{"arguments":{odd},"new":[1.0],"name":"odd"}}"#);
            client.ask("tools/call", &params).await.result();
            let seen = harness.last("tools/call");
            assert_eq!(seen.param("arguments"), Some(odd.as_str()), "{}", case.name);
            assert_eq!(seen.param("new"), Some("[1.0]"));
        }
    }
}

/// CN-7, EXT-9: members of `_meta` travel on, but for what is said to the gateway alone.
#[tokio::test]
async fn meta_travels_on_and_the_extensions_do_not() {
    for (front, behind, client_era, server_era) in every_pair() {
        let harness = Harness::build(behind, server_era, called(r#"{"content":[]}"#)).await;
        let mut client = harness.client(front, client_era).await;
        client.capabilities = DECLARED.to_owned();
        client.ask("tools/call", ODD_META).await.result();
        let seen = harness.last("tools/call");
        assert_eq!(seen.meta("traceparent"), Some(r#""00-\u0030""#));
        assert_eq!(seen.meta("com.example/x"), Some(r#"{"b":1.0,"a":[ ]}"#));
        assert_eq!(seen.meta("io.modelcontextprotocol/server-variant"), None);
        for ours in ["server-variant", "content-negotiation", "agent"] {
            assert!(!seen.params.contains(ours), "{}", seen.params);
        }
    }
}

const DECLARED: &str = r#"{"extensions":{"io.modelcontextprotocol/content-negotiation":{"features":["agent"]},"io.modelcontextprotocol/server-variants":{}}}"#;
const ODD_META: &str = r#"{"name":"odd","_meta":{"traceparent":"00-\u0030","io.modelcontextprotocol/server-variant":"standard","com.example/x":{"b":1.0,"a":[ ]}}}"#;

/// Client and server of each era, in different places.
pub(crate) fn every_pair() -> [(Front, Behind, Era, Era); 4] {
    [
        (Front::Http, Behind::Json, Era::Legacy, Era::Legacy),
        (Front::Stdio, Behind::Json, Era::Legacy, Era::Modern),
        (Front::Http, Behind::Stdio, Era::Modern, Era::Legacy),
        (Front::Stdio, Behind::Events, Era::Modern, Era::Modern),
    ]
}

/// A vector must be JSON, or a server could not send it.
#[test]
fn every_vector_is_json() {
    for case in Case::of(Era::Modern) {
        let (Expected::Result(text) | Expected::Error(text)) = &case.expected;
        let read: Result<&RawValue, _> = serde_json::from_str(text);
        assert!(read.is_ok(), "{}", case.name);
    }
}
