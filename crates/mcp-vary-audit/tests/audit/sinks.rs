//! Files, streams and syslog daemons.

use std::fs;
use std::io::{self, Read as _, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::support::{SOON, call, config, lines_of, minimal, numbers, soon};
use mcp_vary_audit::{
    ArgumentsDetail, AuditLog, FileSink, MAX_SYSLOG_MESSAGE, OnFull, Sink, StreamSink,
    SyslogAddress, SyslogHeader, SyslogSink,
};

/// A path for one test, at which nothing is.
fn fresh(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("audit-{name}"));
    let _ = fs::remove_file(&path);
    path
}

fn start(sink: impl Sink) -> AuditLog {
    AuditLog::start(&config(), Box::new(sink)).unwrap()
}

fn header() -> SyslogHeader {
    SyslogHeader::new(Some("host.example.com"), "vary", 4711).unwrap()
}

#[test]
fn a_file_is_appended_to_by_each_run() {
    let path = fresh("append");
    for _ in 0..2 {
        let log = start(FileSink::open(&path).unwrap());
        log.submit(minimal()).unwrap();
        assert!(log.close(SOON));
    }
    let lines = lines_of(&fs::read_to_string(&path).unwrap());
    assert_eq!(numbers(&lines), [1, 2, 3, 1, 2, 3]);
    lines.iter().for_each(crate::support::validate);
}

#[cfg(unix)]
#[test]
fn a_new_file_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let path = fresh("mode");
    let sink = FileSink::open(&path).unwrap();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(sink.name(), format!("file {}", path.display()));
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_at_the_start() {
    let path = fresh("missing").join("folder").join("audit.jsonl");
    let error = FileSink::open(path).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn after_a_rotation_the_log_goes_on_in_a_new_file() {
    let (path, rotated) = (fresh("rotate"), fresh("rotate.1"));
    let log = start(FileSink::open(&path).unwrap());
    log.submit(minimal()).unwrap();
    soon(|| log.stats().written == 2);
    fs::rename(&path, &rotated).unwrap();
    log.submit(minimal()).unwrap();
    soon(|| log.stats().written == 3);
    log.reopen();
    soon(|| path.exists());
    log.submit(minimal()).unwrap();
    assert!(log.close(SOON));
    let numbers = |path| numbers(&lines_of(&fs::read_to_string(path).unwrap()));
    assert_eq!(numbers(&rotated), [1, 2, 3]);
    assert_eq!(numbers(&path), [4, 5]);
}

#[test]
fn a_rotation_that_fails_goes_on_in_the_old_file_and_is_tried_again() {
    let folder = fresh("rotate-folder");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    let path = folder.join("audit.jsonl");
    let rotated = fresh("rotate-folder.1");
    let log = start(FileSink::open(&path).unwrap());
    soon(|| log.stats().written == 1);
    fs::rename(&path, &rotated).unwrap();
    fs::remove_dir(&folder).unwrap();
    log.reopen();
    soon(|| log.stats().failures > 0);
    log.submit(minimal()).unwrap();
    soon(|| log.stats().written == 2);
    fs::create_dir(&folder).unwrap();
    log.submit(minimal()).unwrap();
    soon(|| path.exists());
    assert!(log.close(SOON));
    assert_eq!(log.stats().lost, 0);
    let both = fs::read_to_string(rotated).unwrap() + &fs::read_to_string(path).unwrap();
    assert_eq!(lines_of(&both).len(), 4);
}

#[test]
fn a_file_that_ends_inside_a_line_is_repaired() {
    let path = fresh("torn");
    fs::write(&path, "{\"v\":1,\"ru").unwrap();
    let log = start(FileSink::open(&path).unwrap());
    assert!(log.close(SOON));
    let text = fs::read_to_string(&path).unwrap();
    let (torn, rest) = text.split_once('\n').unwrap();
    assert_eq!(torn, "{\"v\":1,\"ru");
    assert_eq!(lines_of(rest).len(), 2);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_stops_no_request() {
    let log = start(FileSink::open("/dev/full").unwrap());
    for _ in 0..100 {
        log.submit(minimal()).unwrap();
    }
    soon(|| log.stats().lost == 100);
    assert!(log.stats().failures > 0);
    assert_eq!(log.stats().written, 0);
    assert!(log.close(SOON));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_stops_requests_where_nothing_may_be_lost() {
    let mut config = config();
    config.on_full = OnFull::Refuse;
    config.capacity = 3;
    let log = AuditLog::start(&config, Box::new(FileSink::open("/dev/full").unwrap())).unwrap();
    soon(|| log.submit(minimal()).is_err());
    // It does not wait for room on the disk for ever.
    assert!(log.close(SOON));
}

/// A stream with room for so many bytes.
#[derive(Clone)]
struct Bounded(Arc<Mutex<(Vec<u8>, usize)>>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = self.0.lock().unwrap();
        let room = inner.1.saturating_sub(inner.0.len()).min(bytes.len());
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        inner.0.extend_from_slice(&bytes[..room]);
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_line_that_was_written_in_part_damages_no_other() {
    let stream = Bounded(Arc::new(Mutex::new((Vec::new(), 150))));
    let log = start(StreamSink::new("bounded", Box::new(stream.clone())));
    soon(|| log.stats().written == 1);
    log.submit(minimal()).unwrap();
    soon(|| log.stats().lost == 1);
    stream.0.lock().unwrap().1 = usize::MAX;
    soon(|| log.stats().written == 2);
    assert!(log.close(SOON));
    let text = String::from_utf8(stream.0.lock().unwrap().0.clone()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(serde_json::from_str::<serde_json::Value>(lines[1]).is_err());
    let whole = lines_of(&[lines[0], lines[2], lines[3]].join("\n"));
    let events: Vec<_> = whole
        .iter()
        .map(|line| line["event"].as_str().unwrap())
        .collect();
    assert_eq!(events, ["audit.started", "audit.lost", "audit.stopped"]);
    assert_eq!(whole[1]["lost"], 1);
}

#[test]
fn standard_output_is_a_sink() {
    assert_eq!(StreamSink::stdout().name(), "standard output");
}

#[cfg(unix)]
fn receive(daemon: &std::os::unix::net::UnixDatagram) -> String {
    let mut buffer = vec![0; 65_536];
    daemon.set_read_timeout(Some(SOON)).unwrap();
    let length = daemon.recv(&mut buffer).unwrap();
    buffer.truncate(length);
    String::from_utf8(buffer).unwrap()
}

#[cfg(unix)]
#[test]
fn the_daemon_of_the_machine_gets_a_message_for_each_line() {
    use std::os::unix::net::UnixDatagram;
    let path = fresh("log");
    let daemon = UnixDatagram::bind(&path).unwrap();
    let log = start(SyslogSink::new(
        SyslogAddress::Socket(path.clone()),
        header(),
    ));
    let started = receive(&daemon);
    let (header, json) = started.split_at(started.find('{').unwrap());
    let expected = "<85>1 2026-11-21T06:12:00.123456Z host.example.com vary 4711 audit - ";
    assert_eq!(header, expected);
    crate::support::validate(&serde_json::from_str(json).unwrap());
    log.submit(call()).unwrap();
    assert!(receive(&daemon).starts_with("<86>1 "));
    // A daemon that was started again has a new socket.
    drop(daemon);
    fs::remove_file(&path).unwrap();
    let daemon = UnixDatagram::bind(&path).unwrap();
    log.submit(minimal()).unwrap();
    assert!(receive(&daemon).contains("auth.refused"));
    assert!(log.close(SOON));
    assert_eq!((log.stats().lost, log.stats().failures), (0, 0));
}

#[cfg(unix)]
#[test]
fn without_a_daemon_records_are_lost_and_counted() {
    let log = start(SyslogSink::new(
        SyslogAddress::Socket(fresh("none")),
        header(),
    ));
    log.submit(minimal()).unwrap();
    soon(|| log.stats().lost == 1);
    assert!(log.close(SOON));
}

#[test]
fn a_message_by_udp_has_at_most_the_length_that_daemons_take() {
    let daemon = UdpSocket::bind("127.0.0.1:0").unwrap();
    daemon.set_read_timeout(Some(SOON)).unwrap();
    let address = SyslogAddress::Udp(daemon.local_addr().unwrap());
    let mut config = config();
    config.arguments = ArgumentsDetail::Full { limit: 1 << 16 };
    let sink = SyslogSink::new(address, header());
    let log = AuditLog::start(&config, Box::new(sink)).unwrap();
    let mut record = call();
    let text = format!("{{\"text\":\"{}\"}}", "\u{1b}\"ü".repeat(10_000));
    record.arguments = Some(mcp_vary_audit::Arguments::new(text.into_bytes().into()));
    log.submit(record).unwrap();
    let mut buffer = vec![0; 65_536];
    daemon.recv(&mut buffer).unwrap();
    let length = daemon.recv(&mut buffer).unwrap();
    assert!((7000..=MAX_SYSLOG_MESSAGE).contains(&length), "{length}");
    let message = String::from_utf8(buffer[..length].to_vec()).unwrap();
    assert!(message.starts_with("<86>1 "), "{message}");
    let json = &message[message.find('{').unwrap()..];
    crate::support::validate(&serde_json::from_str(json).unwrap());
    assert!(log.close(SOON));
}

#[test]
fn a_message_by_tcp_begins_with_its_length() {
    let daemon = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = SyslogAddress::Tcp(daemon.local_addr().unwrap());
    let log = start(SyslogSink::new(address, header()));
    let (mut stream, _) = daemon.accept().unwrap();
    assert!(log.close(SOON));
    drop(log);
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let mut rest = &*text;
    let mut messages = Vec::new();
    while let Some((length, after)) = rest.split_once(' ') {
        let (message, next) = after.split_at(length.parse().unwrap());
        messages.push(message);
        rest = next;
    }
    assert_eq!(messages.len(), 2);
    assert!(messages[1].starts_with("<85>1 ") && messages[1].ends_with('}'));
}

#[test]
fn a_header_that_would_break_messages_is_refused_with_the_reason() {
    let error = |hostname, name| {
        SyslogHeader::new(hostname, name, 1)
            .unwrap_err()
            .to_string()
    };
    let expected = "the hostname must have 1 to 255 visible ASCII characters without spaces";
    assert_eq!(error(Some("a b"), "vary"), expected);
    let expected = "the program's name must have 1 to 48 visible ASCII characters without spaces";
    assert_eq!(error(None, "väry"), expected);
}
