//! Records, and a sink that fails on command.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcp_vary_audit::{
    Actor, Arguments, AuditConfig, AuditKey, AuditLog, ClientInfo, Era, Event, Line, LongText,
    Outcome, Record, SessionId, Sink, Target, TargetKind, Text, Transport, VariantChoice, Written,
};
use serde_json::Value;

/// The limit of every wait.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Waits until `holds`.
#[track_caller]
pub(crate) fn soon(holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < SOON, "it did not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// 2026-11-21T06:12:00.123456Z, always; a slow machine is not taken for a sink that hangs.
pub(crate) fn config() -> AuditConfig {
    let mut config = AuditConfig::new(|| 1_795_241_520_123_456, AuditKey::new([1; 32]), "5d0f");
    config.write_timeout = Duration::from_secs(3600);
    config
}

pub(crate) fn arguments(json: &'static str) -> Arguments {
    Arguments::new(json.as_bytes().into())
}

/// A record with as little as possible.
pub(crate) fn minimal() -> Record {
    Record::new(Event::AuthRefused, Outcome::Denied)
}

/// A record with everything.
pub(crate) fn call() -> Record {
    let mut record = hostile_record("");
    let mut actor = Actor::new(Text::new("Xk3vYl0pQ2m8r5t7u9w1zA"));
    actor.name = Some(Text::new("ann"));
    actor.issuer = Some(Text::new("https://idp.example.com"));
    actor.subject = Some(Text::new("alice"));
    actor.client_id = Some(Text::new("ide"));
    actor.key = Some(Text::new("ci"));
    record.event = Event::Request;
    record.outcome = Outcome::Allowed;
    record.code = None;
    record.status = None;
    record.actor = Some(Arc::new(actor));
    record.client = Some(Arc::new(ClientInfo::new(
        Text::new("claude-code"),
        Text::new("3.1"),
    )));
    record.address = Some([10, 1, 2, 3].into());
    record.session = Some(SessionId::new("abc".into()));
    record.method = Some(Text::from_static("tools/call"));
    record.request_id = Some(Text::new("7"));
    let mut target = Target::new(TargetKind::Tool, LongText::new("git_push"));
    target.server = Some(Text::new("git"));
    target.upstream_name = Some(LongText::new("push"));
    record.target = Some(target);
    record.variant = Some(VariantChoice::new(
        Text::new("standard"),
        Text::new("rule 2"),
    ));
    record.rule = Some(Text::new("access[1]"));
    record.arguments = Some(arguments(r#"{"branch":"main"}"#));
    record.bytes_in = Some(312);
    record.bytes_out = Some(2048);
    record.duration = Some(Duration::from_micros(41_250));
    record.trace_id = Some(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes());
    record.config = Some(Text::new("sha256:ab12"));
    record
}

/// A record with `text` wherever a peer can write, and the longest numbers.
pub(crate) fn hostile_record(text: &str) -> Record {
    let short = || Text::new(text);
    let long = || LongText::new(text);
    let mut actor = Actor::new(short());
    actor.name = Some(short());
    actor.issuer = Some(short());
    actor.subject = Some(short());
    actor.client_id = Some(short());
    actor.key = Some(short());
    let mut target = Target::new(TargetKind::Resource, long());
    target.server = Some(short());
    target.upstream_name = Some(long());
    let mut record = Record::new(Event::VariantSelected, Outcome::ToolError);
    record.code = Some(i64::MIN);
    record.status = Some(599);
    record.actor = Some(Arc::new(actor));
    record.client = Some(Arc::new(ClientInfo::new(short(), short())));
    record.address = Some([0xffff_u16; 8].into());
    record.session = Some(SessionId::new(text.into()));
    record.era = Some(Era::Legacy);
    record.transport = Some(Transport::Http);
    record.method = Some(short());
    record.request_id = Some(short());
    record.target = Some(target);
    record.variant = Some(VariantChoice::new(short(), short()));
    record.rule = Some(short());
    record.arguments = Some(Arguments::new(text.to_owned().into_bytes().into()));
    record.bytes_in = Some(u64::MAX);
    record.bytes_out = Some(u64::MAX);
    record.duration = Some(Duration::MAX);
    record.trace_id = Some([255; 16]);
    record.config = Some(short());
    record
}

impl Default for MemorySink {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Memory {
            text: Vec::new(),
            hangs: false,
            is_hanging: false,
            fails: false,
            fails_to_reopen: false,
        })))
    }
}

/// A sink that stores lines, hangs and fails on command.
#[derive(Clone, Debug)]
pub(crate) struct MemorySink(Arc<Mutex<Memory>>);

#[derive(Debug)]
struct Memory {
    text: Vec<u8>,
    hangs: bool,
    is_hanging: bool,
    fails: bool,
    fails_to_reopen: bool,
}

impl MemorySink {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().text.clone()).unwrap()
    }

    /// Lets the next writes hang, or go on.
    pub(crate) fn hang(&self, hangs: bool) {
        self.0.lock().unwrap().hangs = hangs;
    }

    pub(crate) fn is_hanging(&self) -> bool {
        self.0.lock().unwrap().is_hanging
    }

    /// Lets the next writes fail, or succeed.
    pub(crate) fn fail(&self, fails: bool) {
        self.0.lock().unwrap().fails = fails;
    }

    pub(crate) fn fail_to_reopen(&self, fails: bool) {
        self.0.lock().unwrap().fails_to_reopen = fails;
    }
}

impl Sink for MemorySink {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn write(&mut self, lines: &[Line]) -> Written {
        while self.0.lock().unwrap().hangs {
            self.0.lock().unwrap().is_hanging = true;
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut memory = self.0.lock().unwrap();
        if memory.fails {
            return Written::failed(0, std::io::ErrorKind::StorageFull.into());
        }
        for line in lines {
            memory.text.extend_from_slice(&line.text);
            memory.text.push(b'\n');
        }
        Written::all(lines)
    }

    fn reopen(&mut self) -> std::io::Result<()> {
        if self.0.lock().unwrap().fails_to_reopen {
            Err(std::io::ErrorKind::PermissionDenied.into())
        } else {
            Ok(())
        }
    }
}

/// The lines that a log with these records writes. All of them follow the schema.
#[track_caller]
pub(crate) fn write_all(
    config: &AuditConfig,
    records: impl IntoIterator<Item = Record>,
) -> Vec<Value> {
    let sink = MemorySink::default();
    let log = AuditLog::start(config, Box::new(sink.clone())).unwrap();
    for record in records {
        log.submit(record).unwrap();
    }
    assert!(log.close(SOON));
    let lines = lines_of(&sink.text());
    lines.iter().for_each(validate);
    lines
}

/// The numbers of `lines`.
pub(crate) fn numbers(lines: &[Value]) -> Vec<u64> {
    let numbers = lines.iter().map(|line| line["seq"].as_u64());
    numbers.collect::<Option<_>>().unwrap()
}

pub(crate) fn lines_of(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The text of a page in `docs`.
pub(crate) fn docs(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    std::fs::read_to_string(docs.join(name)).unwrap()
}

thread_local! {
    static VALIDATOR: jsonschema::Validator = {
        let schema: Value = serde_json::from_str(&docs("audit.schema.json")).unwrap();
        jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
    };
}

/// Checks a line against the published schema.
#[track_caller]
pub(crate) fn validate(line: &Value) {
    VALIDATOR.with(|validator| {
        let errors: Vec<String> = validator
            .iter_errors(line)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{line}: {errors:?}");
    });
}
