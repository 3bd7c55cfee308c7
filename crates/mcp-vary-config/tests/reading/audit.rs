//! `audit`.

use mcp_vary_audit::{ArgumentsDetail, IdentityDetail, OnFull, SyslogAddress};
use mcp_vary_settings::audit::{AuditSettings, AuditTarget};

use super::*;

#[track_caller]
fn audit(table: &str) -> AuditSettings {
    config_of(&format!("audit: {table}")).audit.unwrap()
}

#[track_caller]
fn refuses_audit(table: &str, expected: &str) {
    refuses_lines(&format!("audit: {table}"), expected);
}

#[test]
fn without_audit_nothing_is_recorded() {
    let config = config_of("");
    assert!(config.audit.is_none() && config.audit_log.is_none());
}

#[test]
fn a_log_needs_no_more_than_a_target() {
    let target = AuditTarget::File("/var/log/a b.jsonl".into());
    assert_eq!(
        audit("{to: file /var/log/a b.jsonl}"),
        AuditSettings::new(target)
    );
    assert_eq!(audit("{to: stdout}").target, AuditTarget::Stdout);
}

#[test]
fn a_daemon_is_a_socket_or_an_address() {
    let udp = SyslogAddress::Udp("10.0.0.5:514".parse().unwrap());
    let tcp = SyslogAddress::Tcp("[::1]:601".parse().unwrap());
    for (written, expected) in [
        ("/dev/log", SyslogAddress::Socket("/dev/log".into())),
        ("udp://10.0.0.5:514", udp),
        ("tcp://[::1]:601", tcp),
    ] {
        let found = audit(&format!("{{to: 'syslog {written}'}}"));
        assert_eq!(found.target, AuditTarget::Syslog(expected), "{written}");
    }
}

#[test]
fn every_setting_changes_what_it_says() {
    let found = audit(
        "{to: stdout, identities: full, arguments: full, on-full: refuse, replica: a-1, key: '01234567890123456789012345678901'}",
    );
    assert_eq!(found.identities, IdentityDetail::Full);
    assert_eq!(found.arguments, ArgumentsDetail::Full { limit: 16_384 });
    assert_eq!(found.on_full, OnFull::Refuse);
    assert_eq!(found.replica.as_deref(), Some("a-1"));
    assert!(found.key.is_some());
    let wait = OnFull::Wait(Duration::from_secs(1));
    assert_eq!(audit("{to: stdout, on-full: wait}").on_full, wait);
    let off = audit("{to: stdout, arguments: off}").arguments;
    assert_eq!(off, ArgumentsDetail::Off);
    // The key is not the secret itself, and is shown by nothing.
    assert!(!format!("{found:?}").contains("0123"));
}

#[test]
fn a_mistake_is_reported_at_its_place_with_the_fix() {
    for case in [
        "{identities: id} => 2:8: `audit` has no `to`; add `to: file PATH`, `to: stdout` or `to: syslog ADDRESS`",
        "{to: audit.jsonl} => 2:13: `audit.to` cannot be used: write `to: file audit.jsonl`",
        "{to: log} => 2:13: `audit.to` cannot be used: write `file PATH`, `stdout` or `syslog ADDRESS`",
        "{to: file} => \
         2:13: `audit.to` cannot be used: the file has no name; write `file PATH`, such as `file /var/log/vary/audit.jsonl`",
        "{to: 'syslog logs.example:514'} => \
         2:13: `audit.to` cannot be used: the address is not one of a syslog daemon; write a socket such as `/dev/log`, or `udp://IP:PORT` or `tcp://IP:PORT`",
        "{to: stdout, arguments: redacted} => \
         2:32: `audit.arguments` is `redacted`; there are `off`, `digest`, `full`",
        "{to: stdout, on-full: block} => 2:30: `audit.on-full` is `block`; there are `drop`, `wait`, `refuse`",
        "{to: stdout, key: short} => \
         2:26: `audit.key` has less than 32 characters; set it to what `openssl rand -base64 32` prints, best in a variable",
        "{to: stdout, argument: off} => 2:21: `audit.argument` is not a known key; did you mean `arguments`?",
    ] {
        let (table, expected) = case.split_once(" => ").unwrap();
        refuses_audit(table, expected);
    }
}
