//! `log`.

use mcp_vary_config::{LogFormat, LogSettings};

use super::*;

#[track_caller]
fn log(table: &str) -> LogSettings {
    read_lines(&format!("log: {table}")).program.log
}

#[test]
fn without_log_the_program_decides() {
    assert_eq!(read_lines("").program.log, LogSettings::default());
}

#[test]
fn a_level_and_a_format_are_read() {
    let found = log("{level: debug, format: json}");
    assert_eq!(found.level.unwrap().as_str(), "debug");
    assert_eq!(found.format, Some(LogFormat::Json));
    let found = log("{level: 'warn,mcp_vary_gateway::requests=info'}");
    let level = found.level.unwrap();
    assert_eq!(level.as_str(), "warn,mcp_vary_gateway::requests=info");
    assert_eq!(log("{level: off}").level.unwrap().as_str(), "off");
}

#[test]
fn a_word_that_is_not_a_level_is_refused_at_its_place() {
    refuses_lines(
        "log: {level: wran, format: xml}",
        "2:14: `log.level` cannot be used: `wran` is not a log level; write error, warn, info, debug, trace, off, or TARGET=LEVEL\n\
         2:28: `log.format` is `xml`; there are `plain`, `json`",
    );
}
