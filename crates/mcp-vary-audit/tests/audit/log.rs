//! What an audit log writes, and what it does when it cannot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{
    MemorySink, SOON, arguments, call, config, hostile_record, lines_of, minimal, numbers, soon,
    validate, write_all,
};
use mcp_vary_audit::{
    ArgumentsDetail, AuditConfig, AuditLog, Event, IdentityDetail, MAX_LINE, OnFull, Outcome,
    QueueFull, Record, Text,
};
use serde_json::{Value, json};

fn with(change: impl FnOnce(&mut AuditConfig)) -> AuditConfig {
    let mut config = config();
    change(&mut config);
    config
}

fn start(config: &AuditConfig, sink: &MemorySink) -> AuditLog {
    AuditLog::start(config, Box::new(sink.clone())).unwrap()
}

/// A log with a sink that hangs with the first line.
fn hanging(config: &AuditConfig) -> (MemorySink, AuditLog) {
    let sink = MemorySink::default();
    sink.hang(true);
    let log = start(config, &sink);
    soon(|| sink.is_hanging());
    (sink, log)
}

#[track_caller]
fn written(config: &AuditConfig, record: Record) -> Value {
    let lines = write_all(config, [record]);
    assert_eq!(lines.len(), 3, "{lines:?}");
    lines[1].clone()
}

/// [`call`] with other arguments.
fn call_with(json: &'static str) -> Record {
    let mut record = call();
    record.arguments = Some(arguments(json));
    record
}

#[test]
fn an_ordinary_call_is_written_with_all_that_is_known() {
    assert_eq!(
        written(&config(), call()),
        json!({
            "v": 1, "run": "5d0f", "seq": 2, "time": "2026-11-21T06:12:00.123456Z",
            "event": "request", "outcome": "allowed",
            "principal": {"id": "Xk3vYl0pQ2m8r5t7u9w1zA"},
            "client": {"name": "claude-code", "version": "3.1", "address": "10.1.2.3"},
            "session": "hmac-sha256:2b352c7898603fd419eb2a888045e3f2",
            "era": "legacy", "transport": "http", "method": "tools/call", "request_id": "7",
            "target": {"kind": "tool", "name": "git_push", "server": "git", "upstream_name": "push"},
            "variant": {"id": "standard", "reason": "rule 2"},
            "rule": "access[1]",
            "arguments": {"bytes": 17, "digest": "hmac-sha256:63aae69424f215851128e5966e9a6e8d"},
            "bytes_in": 312, "bytes_out": 2048, "duration_ms": 41.25,
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "config": "sha256:ab12",
        })
    );
}

#[test]
fn what_is_not_known_is_left_out() {
    assert_eq!(
        written(&config(), minimal()),
        json!({
            "v": 1, "run": "5d0f", "seq": 2, "time": "2026-11-21T06:12:00.123456Z",
            "event": "auth.refused", "outcome": "denied",
        })
    );
}

#[test]
fn names_of_people_are_written_only_if_the_operator_chooses_so() {
    let principal = |identity| {
        let line = written(&with(|it| it.identity = identity), call());
        line["principal"].clone()
    };
    let id = "Xk3vYl0pQ2m8r5t7u9w1zA";
    assert_eq!(principal(IdentityDetail::Id), json!({"id": id}));
    let named = json!({"id": id, "name": "ann"});
    assert_eq!(principal(IdentityDetail::Name), named);
    let full = json!({
        "id": id, "name": "ann", "iss": "https://idp.example.com", "sub": "alice", "client_id": "ide", "key": "ci",
    });
    assert_eq!(principal(IdentityDetail::Full), full);
}

#[test]
fn arguments_are_written_as_the_operator_chooses() {
    let detailed = |arguments, record| {
        let config = with(|it| it.arguments = arguments);
        written(&config, record)["arguments"].clone()
    };
    let off = detailed(ArgumentsDetail::Off, call());
    assert_eq!(off, json!({"bytes": 17}));
    let full = detailed(ArgumentsDetail::Full { limit: 1000 }, call());
    assert_eq!(full["text"], r#"{"branch":"main"}"#);
    let long = call_with(r#"{"text":"a text with \"quotes\" that is long"}"#);
    let shortened = detailed(ArgumentsDetail::Full { limit: 32 }, long);
    assert_eq!(shortened["text"], "{\"text\":\"a text…[+31]");
}

#[test]
fn an_excerpt_of_arguments_is_what_the_lines_show_of_them() {
    let excerpt = |detail| {
        let log = start(&with(|it| it.arguments = detail), &MemorySink::default());
        log.excerpt(&arguments(r#"{"text":"a text that is long"}"#))
    };
    assert_eq!(excerpt(ArgumentsDetail::Off), None);
    assert_eq!(excerpt(ArgumentsDetail::Digest), None);
    let cut = excerpt(ArgumentsDetail::Full { limit: 24 }).unwrap();
    assert!(cut.starts_with("{") && cut.contains("…[+"), "{cut}");
    let whole = excerpt(ArgumentsDetail::Full { limit: 1000 });
    assert_eq!(whole.as_deref(), Some(r#"{"text":"a text that is long"}"#));
}

#[test]
fn equal_arguments_have_equal_digests_and_others_have_not() {
    let records = [call(), call(), call_with(r#"{"branch":"next"}"#)];
    let lines = write_all(&config(), records);
    let digest = |line: &Value| line["arguments"]["digest"].as_str().unwrap().to_owned();
    assert_eq!(digest(&lines[1]), digest(&lines[2]));
    assert_ne!(digest(&lines[1]), digest(&lines[3]));
}

#[test]
fn no_session_and_no_argument_is_in_any_line() {
    let sink = MemorySink::default();
    let log = start(&config(), &sink);
    log.submit(call()).unwrap();
    assert!(log.close(SOON));
    let text = sink.text();
    for secret in ["branch", "main", "alice", "idp.example.com", "\"abc\""] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    let shown = format!("{:?} {:?}", call(), config());
    for secret in ["branch", "alice", "abc", "idp.example.com"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[test]
fn a_hostile_peer_gets_one_bounded_visible_line() {
    for filler in [
        '\n',
        '\u{1b}',
        '"',
        '\u{202e}',
        '\u{e0041}',
        '世',
        'a',
        '\u{7f}',
    ] {
        let filler = filler.to_string();
        let sink = MemorySink::default();
        let config = with(|it| {
            it.identity = IdentityDetail::Full;
            it.replica = Some(Text::new(filler.repeat(10_000)));
        });
        let log = start(&config, &sink);
        log.submit(hostile_record(&filler.repeat(10_000))).unwrap();
        assert!(log.close(SOON));
        let text = sink.text();
        assert_eq!(text.lines().count(), 3, "{filler:?}");
        for line in text.lines() {
            assert!(line.len() <= MAX_LINE, "{filler:?}: {}", line.len());
            assert!(!line.chars().any(mcp_vary::text::is_invisible), "{line}");
            validate(&serde_json::from_str(line).unwrap());
        }
    }
}

#[test]
fn lines_are_numbered_from_the_start_to_the_stop() {
    let lines = write_all(&config(), (0..1000).map(|_| minimal()));
    assert_eq!(numbers(&lines), (1..=1002).collect::<Vec<u64>>());
    assert_eq!(lines[0]["event"], "audit.started");
    assert_eq!(lines[1001]["event"], "audit.stopped");
}

#[test]
fn records_of_one_thread_stay_in_order_and_none_is_missing() {
    let sink = MemorySink::default();
    let log = start(&config(), &sink);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let log = &log;
            scope.spawn(move || {
                for number in 0..500_i64 {
                    let mut record = minimal();
                    record.status = Some(thread);
                    record.code = Some(number);
                    log.submit(record).unwrap();
                }
            });
        }
    });
    assert!(log.close(SOON));
    let lines = lines_of(&sink.text());
    for thread in 0..4 {
        let of_thread = lines.iter().filter(|line| line["status"] == thread);
        let codes: Vec<_> = of_thread.map(|line| line["code"].as_i64()).collect();
        assert_eq!(codes, (0..500).map(Some).collect::<Vec<_>>());
    }
    assert_eq!(log.stats().lost, 0);
}

#[test]
fn a_sink_that_hangs_delays_no_request_and_the_stream_counts_what_was_lost() {
    let (sink, log) = hanging(&with(|it| it.capacity = 10));
    for _ in 0..100 {
        log.submit(minimal()).unwrap();
    }
    assert_eq!((log.stats().lost, log.stats().queued), (90, 10));
    sink.hang(false);
    assert!(log.close(SOON));
    let lines = lines_of(&sink.text());
    let mut lost = lines.iter().filter(|line| line["event"] == "audit.lost");
    let lost = lost.next().unwrap();
    assert_eq!((&lost["lost"], &lost["refused"]), (&json!(90), &json!(0)));
    assert_eq!(lines.len(), 1 + 10 + 1 + 1);
    lines.iter().for_each(validate);
}

#[test]
fn where_nothing_may_be_lost_a_request_is_refused_before_it_does_anything() {
    let (sink, log) = hanging(&with(|it| {
        it.capacity = 2;
        it.on_full = OnFull::Refuse;
    }));
    let first = log.reserve().unwrap();
    let second = log.reserve().unwrap();
    assert_eq!(log.reserve().unwrap_err(), QueueFull);
    assert_eq!(log.submit(minimal()), Err(QueueFull));
    // A permit that is not used gives its room back.
    drop(second);
    let third = log.reserve().unwrap();
    first.submit(minimal());
    third.submit(minimal());
    sink.hang(false);
    assert!(log.close(SOON));
    let lines = lines_of(&sink.text());
    let events: Vec<_> = lines.iter().map(|line| &line["event"]).collect();
    let expected = "audit.started auth.refused auth.refused audit.lost audit.stopped";
    assert_eq!(events, expected.split(' ').collect::<Vec<_>>());
    let found = (&lines[3]["lost"], &lines[3]["refused"]);
    assert_eq!(found, (&json!(0), &json!(2)));
    assert_eq!(log.stats().lost, 0);
}

#[test]
fn a_request_waits_for_room_as_long_as_it_may() {
    let on_full = |limit| {
        with(|it| {
            it.capacity = 1;
            it.on_full = OnFull::Wait(limit);
        })
    };
    let (sink, short) = hanging(&on_full(Duration::from_millis(1)));
    short.submit(minimal()).unwrap();
    assert_eq!(short.submit(minimal()), Err(QueueFull));

    let (patient, long) = hanging(&on_full(SOON));
    long.submit(minimal()).unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let waiting = std::thread::spawn({
        let (log, is_done) = (long.clone(), Arc::clone(&is_done));
        move || {
            log.submit(minimal()).unwrap();
            is_done.store(true, Ordering::SeqCst);
        }
    });
    std::thread::sleep(Duration::from_millis(50));
    assert!(!is_done.load(Ordering::SeqCst));
    patient.hang(false);
    waiting.join().unwrap();
    assert!(long.close(SOON));
    assert_eq!((long.stats().written, long.stats().lost), (4, 0));
    sink.hang(false);
    assert!(short.close(SOON));
}

#[test]
fn a_sink_that_fails_loses_records_and_the_stream_says_how_many() {
    let sink = MemorySink::default();
    let log = start(&config(), &sink);
    soon(|| log.stats().written == 1);
    sink.fail(true);
    for _ in 0..5 {
        log.submit(minimal()).unwrap();
    }
    soon(|| log.stats().lost == 5);
    sink.fail(false);
    soon(|| sink.text().contains("audit.lost"));
    log.submit(minimal()).unwrap();
    assert!(log.close(SOON));
    let lines = lines_of(&sink.text());
    assert_eq!(numbers(&lines), [1, 2, 3, 4]);
    assert_eq!(lines[1]["lost"], 5);
    assert!(log.stats().failures > 0);
}

#[test]
fn where_nothing_may_be_lost_a_failing_sink_is_tried_again() {
    let sink = MemorySink::default();
    let log = start(&with(|it| it.on_full = OnFull::Refuse), &sink);
    soon(|| log.stats().written == 1);
    let permits: Vec<_> = (0..5).map(|_| log.reserve().unwrap()).collect();
    sink.fail(true);
    for permit in permits {
        permit.submit(minimal());
    }
    soon(|| log.stats().failures >= 2);
    sink.fail(false);
    soon(|| log.stats().written == 6);
    assert!(log.close(SOON));
    assert_eq!(log.stats().lost, 0);
}

/// All of these fail or hang with the first line, so there is room for 8,192 records that nobody may ever read.
#[test]
fn where_nothing_may_be_lost_a_request_is_refused_as_soon_as_the_sink_fails_or_hangs() {
    let break_by: [fn(&MemorySink); 2] = [|sink| sink.fail(true), |sink| sink.hang(true)];
    for on_full in [OnFull::Refuse, OnFull::Wait(Duration::from_millis(1))] {
        for break_sink in break_by {
            let sink = MemorySink::default();
            break_sink(&sink);
            let config = with(|it| {
                it.on_full = on_full;
                it.write_timeout = Duration::ZERO;
            });
            let log = start(&config, &sink);
            soon(|| log.stats().error.is_some());
            assert_eq!(log.reserve().unwrap_err(), QueueFull);
            assert_eq!(log.submit(minimal()), Err(QueueFull));
            assert!(log.try_reserve().is_none());
            assert_eq!(log.stats().queued, 0);
            // What happened in any case waits for the sink.
            log.submit_or_lose(minimal());
            sink.fail(false);
            sink.hang(false);
            soon(|| log.stats().error.is_none() && log.stats().written >= 2);
            soon(|| log.try_reserve().is_some());
            assert!(log.close(SOON));
            assert_eq!((log.stats().lost, log.stats().error), (0, None));
        }
    }
}

#[test]
fn a_file_that_cannot_be_opened_again_stops_no_request() {
    let sink = MemorySink::default();
    let log = start(&with(|it| it.on_full = OnFull::Refuse), &sink);
    soon(|| log.stats().written == 1);
    sink.fail_to_reopen(true);
    log.reopen();
    soon(|| log.stats().error.is_some());
    log.submit(minimal()).unwrap();
    assert!(log.close(SOON));
    assert_eq!((log.stats().written, log.stats().lost), (3, 0));
}

#[test]
fn large_arguments_cost_their_digest_and_not_the_record() {
    let (sink, log) = hanging(&with(|it| it.arguments_capacity = 20));
    log.submit(call()).unwrap();
    log.submit(call()).unwrap();
    sink.hang(false);
    soon(|| log.stats().written == 3);
    log.submit(call()).unwrap();
    assert!(log.close(SOON));
    let lines = lines_of(&sink.text());
    let has_digest = |line: &Value| line["arguments"].get("digest").is_some();
    let digests: Vec<_> = lines[1..4].iter().map(has_digest).collect();
    assert_eq!(digests, [true, false, true]);
    assert_eq!(lines[2]["arguments"], json!({"bytes": 17}));
    lines.iter().for_each(validate);
}

#[test]
fn a_closed_log_counts_what_came_too_late() {
    let sink = MemorySink::default();
    let log = start(&config(), &sink);
    assert!(log.close(SOON));
    log.submit(minimal()).unwrap();
    assert_eq!((log.stats().lost, log.stats().queued), (1, 0));
    assert!(log.close(Duration::ZERO));
}

#[test]
fn closing_does_not_wait_for_a_sink_that_hangs() {
    let (sink, log) = hanging(&config());
    assert!(!log.close(Duration::from_millis(10)));
    sink.hang(false);
    assert!(log.close(SOON));
}

#[test]
fn a_log_that_nobody_uses_any_more_ends_after_its_last_record() {
    let sink = MemorySink::default();
    let log = start(&config(), &sink);
    let record = Record::new(Event::ConfigReloaded, Outcome::Allowed);
    log.submit(record).unwrap();
    drop(log);
    soon(|| sink.text().contains("audit.stopped"));
    assert!(sink.text().contains("config.reloaded"));
}
