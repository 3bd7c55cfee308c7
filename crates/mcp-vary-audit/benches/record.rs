//! What a record costs the request: `cargo bench -p mcp-vary-audit`. The limit is 1.0 µs.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use mcp_vary_audit::{
    Actor, Arguments, AuditConfig, AuditKey, AuditLog, ClientInfo, Era, Event, LongText, OnFull,
    Outcome, Record, SessionId, StreamSink, Target, TargetKind, Text, Transport, VariantChoice,
};

/// What the gateway has at hand for each request of a client.
struct Known {
    actor: Arc<Actor>,
    client: Arc<ClientInfo>,
    session: Arc<str>,
    variant: Arc<str>,
    reason: Arc<str>,
    server: Arc<str>,
    config: Arc<str>,
    arguments: Bytes,
}

fn known() -> Known {
    Known {
        actor: Arc::new(Actor::new(Text::new("Xk3vYl0pQ2m8r5t7u9w1zA"))),
        client: Arc::new(ClientInfo::new(Text::new("claude-code"), Text::new("3.1"))),
        session: "s".repeat(300).into(),
        variant: "standard".into(),
        reason: "rule 2".into(),
        server: "git".into(),
        config: "sha256:ab12".into(),
        arguments: Bytes::from(vec![b'x'; 312]),
    }
}

/// The record of an ordinary call.
fn record(known: &Known) -> Record {
    let mut record = Record::new(Event::Request, Outcome::Allowed);
    record.actor = Some(Arc::clone(&known.actor));
    record.client = Some(Arc::clone(&known.client));
    record.address = Some([10, 1, 2, 3].into());
    record.session = Some(SessionId::new(Arc::clone(&known.session)));
    record.era = Some(Era::Legacy);
    record.transport = Some(Transport::Http);
    record.method = Some(Text::from_static("tools/call"));
    record.request_id = Some(Text::new(black_box("7")));
    let mut target = Target::new(TargetKind::Tool, LongText::new(black_box("git_push")));
    target.server = Some(Text::shared(&known.server));
    target.upstream_name = Some(LongText::new(black_box("push")));
    record.target = Some(target);
    record.variant = Some(VariantChoice::new(
        Text::shared(&known.variant),
        Text::shared(&known.reason),
    ));
    record.arguments = Some(Arguments::new(known.arguments.clone()));
    record.bytes_in = Some(498);
    record.bytes_out = Some(2048);
    record.duration = Some(Duration::from_micros(41_250));
    record.trace_id = Some([7; 16]);
    record.config = Some(Text::shared(&known.config));
    record
}

fn log(on_full: OnFull) -> AuditLog {
    let mut config = AuditConfig::new(now, AuditKey::new([1; 32]), "5d0f");
    config.on_full = on_full;
    let sink = StreamSink::new("nowhere", Box::new(std::io::sink()));
    AuditLog::start(&config, Box::new(sink)).unwrap()
}

/// The clock that a gateway would have.
#[expect(clippy::disallowed_methods, reason = "a measurement of the real clock")]
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap().as_micros()).unwrap()
}

fn submit(criterion: &mut Criterion) {
    let known = known();
    criterion.bench_function("fill a record", |bencher| {
        bencher.iter(|| record(black_box(&known)));
    });
    // In batches with pauses, as requests arrive: the writer's time is not the request's.
    criterion.bench_function("fill a record and hand it over", |bencher| {
        bencher.iter_custom(|count| {
            let log = log(OnFull::Drop);
            let mut spent = Duration::ZERO;
            let mut left = count;
            while left > 0 {
                let batch = left.min(1000);
                let start = Instant::now();
                for _ in 0..batch {
                    log.submit(record(black_box(&known))).unwrap();
                }
                spent += start.elapsed();
                left -= batch;
                while log.stats().queued > 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            assert_eq!(log.stats().lost, 0);
            assert!(log.close(Duration::from_secs(5)));
            spent
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30);
    targets = submit
}
criterion_main!(benches);
