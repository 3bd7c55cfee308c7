//! `traces`.

use mcp_vary_traces::{Follow, Ratio, TracesSettings};

use super::*;

#[track_caller]
fn traces(table: &str) -> TracesSettings {
    config_of(&format!("traces: {table}")).traces.unwrap()
}

#[track_caller]
fn refuses_traces(table: &str, expected: &str) {
    refuses_lines(&format!("traces: {table}"), expected);
}

#[test]
fn without_traces_nothing_is_recorded_and_an_empty_table_has_the_defaults() {
    assert!(config_of("").traces.is_none());
    assert_eq!(traces("{}"), TracesSettings::default());
}

#[test]
fn every_setting_of_traces_changes_what_it_says() {
    let found = traces(
        "{endpoint: 'http://c:4318', headers: {X-Key: abc}, sample: 5 %, follow: nobody, service-name: edge}",
    );
    assert_eq!(found.endpoint.as_deref(), Some("http://c:4318"));
    assert_eq!(found.headers["x-key"], "abc");
    assert!(!format!("{found:?}").contains("abc"));
    assert_eq!(found.sample, "0.05".parse::<Ratio>().unwrap());
    assert_eq!(found.follow, Follow::Nobody);
    assert_eq!(found.service_name.as_deref(), Some("edge"));
    assert_eq!(traces("{sample: 1}").sample, Ratio::ALL);
}

#[test]
fn what_cannot_be_exported_to_is_refused() {
    refuses_traces(
        "{endpoint: 'collector:4318'}",
        "2:20: `traces.endpoint` cannot be used: it is not the address of a collector; write it as `http://host:4318`",
    );
    refuses_traces(
        "{sample: 5}",
        "2:18: `traces.sample` cannot be used: it is not a part of all requests; write `5%`, or a number from 0 to 1",
    );
    refuses_traces(
        "{headers: {'a b': c}}",
        "2:27: `traces.headers.a b` is not a header name; write it like `Authorization`",
    );
}
