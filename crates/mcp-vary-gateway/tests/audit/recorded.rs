//! A gateway with an audit log in memory.

use std::fmt;
use std::sync::Condvar;

use mcp_vary_audit::{AuditConfig, AuditKey, AuditLog, Line, Sink, Written};

use crate::support::*;

/// 2026-11-21T06:12:00.123456Z.
const NOW: u64 = 1_795_241_520_123_456;

/// Lines in memory. It can be blocked, as a full disk or a slow network blocks.
#[derive(Clone, Default)]
pub(super) struct MemorySink(Arc<Shared>);

#[derive(Default)]
struct Shared {
    text: Mutex<Vec<u8>>,
    is_blocked: Mutex<bool>,
    changed: Condvar,
}

impl fmt::Debug for MemorySink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemorySink")
    }
}

impl Sink for MemorySink {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn write(&mut self, lines: &[Line]) -> Written {
        let mut is_blocked = self.0.is_blocked.lock().unwrap();
        while *is_blocked {
            is_blocked = self.0.changed.wait(is_blocked).unwrap();
        }
        let mut text = self.0.text.lock().unwrap();
        for line in lines {
            text.extend_from_slice(&line.text);
            text.push(b'\n');
        }
        Written::all(lines)
    }
}

impl MemorySink {
    pub(super) fn block(&self, blocks: bool) {
        *self.0.is_blocked.lock().unwrap() = blocks;
        self.0.changed.notify_all();
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.text.lock().unwrap().clone()).unwrap()
    }

    /// The lines so far. Each follows the schema.
    pub(super) fn lines(&self) -> Vec<Value> {
        let schema = include_str!("../../../../docs/audit.schema.json");
        let schema: Value = serde_json::from_str(schema).unwrap();
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        let text = self.text();
        let lines = text.lines().map(|line| {
            let record: Value = serde_json::from_str(line).unwrap();
            if let Err(error) = validator.validate(&record) {
                panic!("{error} at {}\n{record:#}", error.instance_path());
            }
            record
        });
        lines.collect()
    }

    /// The records of one event so far.
    pub(super) fn of(&self, event: &str) -> Vec<Value> {
        let mut lines = self.lines();
        lines.retain(|line| line["event"] == event);
        lines
    }

    /// The records of `event` as soon as there are `count`. More of them are an error.
    #[track_caller]
    pub(super) fn wait_for(&self, event: &str, count: usize) -> impl Future<Output = Vec<Value>> {
        let (sink, event) = (self.clone(), event.to_owned());
        async move {
            until(async || sink.of(&event).len() >= count).await;
            let found = sink.of(&event);
            assert_eq!(found.len(), count, "{event}: {found:#?}");
            found
        }
    }

    /// The only record of a request with this method, as soon as it is there.
    pub(super) async fn request(&self, method: &str) -> Value {
        let find = || {
            let mut found = self.of("request");
            found.retain(|line| line["method"] == method);
            found
        };
        until(async || !find().is_empty()).await;
        let found = find();
        assert_eq!(found.len(), 1, "{found:#?}");
        found[0].clone()
    }
}

/// The settings of a log of these tests.
pub(super) fn settings() -> AuditConfig {
    AuditConfig::new(|| NOW, AuditKey::new([1; 32]), "5d0f")
}

/// A gateway whose audit log is in memory.
pub(super) struct Recorded {
    pub(super) harness: Harness,
    pub(super) sink: MemorySink,
}

impl Recorded {
    /// In front of a legacy server.
    pub(super) async fn start() -> Self {
        Self::with(settings(), |config| config).await
    }

    /// In front of a legacy server, with another log and configuration.
    pub(super) async fn with(log: AuditConfig, adapt: impl FnOnce(Config) -> Config) -> Self {
        Self::before(Era::Legacy, log, adapt).await
    }

    /// In front of a server of `era`.
    pub(super) async fn before(
        era: Era,
        log: AuditConfig,
        adapt: impl FnOnce(Config) -> Config,
    ) -> Self {
        let sink = MemorySink::default();
        let log = AuditLog::start(&log, Box::new(sink.clone())).unwrap();
        let harness = Harness::before(era, |mut config| {
            config.audit_log = Some(log);
            config.digest = Some("sha256:0123456789abcdef".into());
            adapt(config)
        });
        Self {
            harness: harness.await,
            sink,
        }
    }
}

/// A record without the members that differ from one run to the next: `seq` and the times, of which no part is longer than
/// the whole.
pub(super) fn stable(mut record: Value) -> Value {
    let members = record.as_object_mut().unwrap();
    members.remove("seq").unwrap();
    let duration = members.remove("duration_ms").unwrap().as_f64().unwrap();
    let parts = ["waited_ms", "upstream_ms"].map(|name| members.remove(name));
    let parts = parts.iter().flatten().filter_map(Value::as_f64);
    assert!((0.0..=duration).contains(&parts.sum::<f64>()), "{record}");
    record
}
