//! The published schema, and the page about it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{MemorySink, config, docs, minimal, validate, write_all};
use mcp_vary_audit::{
    Actor, Arguments, ArgumentsDetail, AuditConfig, ClientInfo, Era, Event, IdentityDetail,
    LongText, ModelRanking, Outcome, Record, SCHEMA_VERSION, SessionId, Target, TargetKind, Text,
    Transport, VariantChoice,
};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

fn schema() -> Value {
    serde_json::from_str(&docs("audit.schema.json")).unwrap()
}

const EVENTS: [Event; 10] = [
    Event::ServerChanged,
    Event::Request,
    Event::AuthAccepted,
    Event::AuthRefused,
    Event::VariantSelected,
    Event::VariantRefused,
    Event::VariantsRanked,
    Event::LimitReached,
    Event::ConfigReloaded,
    Event::AdminRequest,
];

const OUTCOMES: [Outcome; 5] = [
    Outcome::Allowed,
    Outcome::Denied,
    Outcome::Error,
    Outcome::ToolError,
    Outcome::Cancelled,
];

const KINDS: [TargetKind; 6] = [
    TargetKind::Tool,
    TargetKind::Prompt,
    TargetKind::Resource,
    TargetKind::Task,
    TargetKind::Variant,
    TargetKind::Skill,
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_/]{0,20}",
        any::<String>(),
        "[\\x00-\\x1f\u{202e}\u{e0041}\"\\\\]{0,400}"
    ]
}

fn short() -> impl Strategy<Value = Text> {
    text().prop_map(Text::new)
}

fn some_short() -> impl Strategy<Value = Option<Text>> {
    option::of(short())
}

fn actors() -> impl Strategy<Value = Arc<Actor>> {
    let texts = (some_short(), some_short(), some_short(), some_short());
    (short(), some_short(), texts).prop_map(|(id, name, texts)| {
        let mut actor = Actor::new(id);
        actor.name = name;
        (actor.issuer, actor.subject, actor.client_id, actor.key) = texts;
        Arc::new(actor)
    })
}

fn targets() -> impl Strategy<Value = Target> {
    let kind = prop::sample::select(KINDS.to_vec());
    (kind, text(), some_short(), option::of(text())).prop_map(|(kind, name, server, upstream)| {
        let mut target = Target::new(kind, LongText::new(name));
        target.server = server;
        target.upstream_name = upstream.map(LongText::new);
        target
    })
}

prop_compose! {
    /// A record with anything in it.
    fn records()(
        event in prop::sample::select(EVENTS.to_vec()),
        outcome in prop::sample::select(OUTCOMES.to_vec()),
        actor in option::of(actors()),
        client in option::of((short(), short())),
        target in option::of(targets()),
        texts in (some_short(), some_short(), some_short(), some_short()),
        variant in option::of((short(), short())),
        ranking in option::of((short(), text(), option::of(text()), some_short())),
        numbers in option::of((any::<i64>(), 100..600_u16, any::<u64>(), any::<u128>())),
        address in option::of(any::<std::net::IpAddr>()),
        session in option::of(text()),
        arguments in option::of(prop::collection::vec(any::<u8>(), 0..2000)),
        connection in option::of((any::<bool>(), any::<bool>())),
    ) -> Record {
        let mut record = Record::new(event, outcome);
        record.actor = actor;
        record.client = client.map(|(name, version)| Arc::new(ClientInfo::new(name, version)));
        record.target = target;
        (record.method, record.request_id, record.rule, record.config) = texts;
        record.variant = variant.map(|(id, reason)| VariantChoice::new(id, reason));
        record.ranking = ranking.map(|(model, variants, order, failure)| {
            let mut ranking = ModelRanking::new(model, LongText::new(variants));
            (ranking.order, ranking.failure) = (order.map(LongText::new), failure);
            ranking
        });
        record.address = address;
        record.session = session.map(|id| SessionId::new(id.into()));
        record.arguments = arguments.map(|json| Arguments::new(json.into()));
        if let Some((code, status, bytes, trace)) = numbers {
            record.code = Some(code);
            record.status = Some(status);
            record.bytes_in = Some(bytes);
            record.bytes_out = Some(bytes);
            record.duration = Some(Duration::from_micros(bytes));
            record.trace_id = Some(trace.to_be_bytes());
        }
        if let Some((is_legacy, is_http)) = connection {
            record.era = Some(if is_legacy { Era::Legacy } else { Era::Modern });
            record.transport = Some(if is_http { Transport::Http } else { Transport::Stdio });
        }
        record
    }
}

fn configs() -> impl Strategy<Value = AuditConfig> {
    let identities = [
        IdentityDetail::Id,
        IdentityDetail::Name,
        IdentityDetail::Full,
    ];
    let identity = prop::sample::select(identities.to_vec());
    let arguments = prop_oneof![
        Just(ArgumentsDetail::Off),
        Just(ArgumentsDetail::Digest),
        (0..100_000_usize).prop_map(|limit| ArgumentsDetail::Full { limit }),
    ];
    (identity, arguments, some_short()).prop_map(|(identity, arguments, replica)| {
        let mut config = config();
        config.identity = identity;
        config.arguments = arguments;
        config.replica = replica;
        config
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_line_follows_the_schema_and_shows_all_that_it_has(
        config in configs(),
        records in prop::collection::vec(records(), 1..8),
    ) {
        let sink = MemorySink::default();
        let log = mcp_vary_audit::AuditLog::start(&config, Box::new(sink.clone())).unwrap();
        let expected = records.len() + 2;
        for record in records {
            log.submit(record).unwrap();
        }
        prop_assert!(log.close(crate::support::SOON));
        let text = sink.text();
        prop_assert_eq!(text.lines().count(), expected);
        for line in text.lines() {
            prop_assert!(!line.chars().any(mcp_vary::text::is_invisible));
            validate(&serde_json::from_str(line).unwrap());
        }
    }
}

#[test]
fn the_schema_is_one_and_has_the_version_of_the_code() {
    let schema = schema();
    assert!(jsonschema::meta::is_valid(&schema));
    assert_eq!(schema["properties"]["v"]["const"], SCHEMA_VERSION);
}

#[test]
fn the_schema_names_exactly_the_events_and_outcomes_that_there_are() {
    let records = EVENTS.map(|event| Record::new(event, Outcome::Allowed));
    let outcomes = OUTCOMES.map(|outcome| Record::new(Event::Request, outcome));
    let lines = write_all(&config(), records.into_iter().chain(outcomes));
    let values = |member: &str| -> BTreeSet<String> {
        let values = lines.iter().filter_map(|line| line[member].as_str());
        values.map(str::to_owned).collect()
    };
    let named = |member: &str| -> BTreeSet<String> {
        serde_json::from_value(schema()["properties"][member]["enum"].clone()).unwrap()
    };
    let mut events = values("event");
    events.insert("audit.lost".to_owned());
    assert_eq!(events, named("event"));
    assert_eq!(values("outcome"), named("outcome"));
}

#[test]
fn the_schema_refuses_what_is_not_a_record() {
    let line = write_all(&config(), [minimal()])[1].clone();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    assert!(validator.is_valid(&line));
    let changes = [
        ("v", json!(2)),
        ("seq", json!(0)),
        ("time", json!("2026-11-21 06:12:00")),
        ("event", json!("other")),
        ("outcome", json!("maybe")),
        ("session", json!("the id itself")),
        ("principal", json!({})),
        ("arguments", json!({"bytes": 1, "digest": "sha256:00"})),
        ("lost", json!(1)),
        ("unknown", json!(1)),
    ];
    for (member, value) in changes {
        let mut changed = line.clone();
        changed[member] = value;
        assert!(!validator.is_valid(&changed), "{member}");
    }
    let mut without_outcome = line;
    without_outcome.as_object_mut().unwrap().remove("outcome");
    assert!(!validator.is_valid(&without_outcome));
}

#[test]
fn the_page_names_every_member_and_shows_records_that_follow_the_schema() {
    let page = docs("reference/audit.md");
    let names = |it: String| assert!(page.contains(&it), "docs/reference/audit.md lacks {it}");
    let schema = schema();
    for (name, member) in schema["properties"].as_object().unwrap() {
        names(format!("`{name}`"));
        for inner in member["properties"].as_object().into_iter().flatten() {
            names(format!("`{name}.{}`", inner.0));
        }
    }
    for event in schema["properties"]["event"]["enum"].as_array().unwrap() {
        names(format!("`{}`", event.as_str().unwrap()));
    }
    let blocks = page.split("```json\n").skip(1);
    let examples = blocks.filter_map(|block| block.split("\n```").next());
    let records: Vec<Value> = examples
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert!(records.len() >= 2);
    records.iter().for_each(validate);
}
