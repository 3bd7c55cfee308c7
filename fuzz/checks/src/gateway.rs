//! What must hold of `mcp_vary_gateway` for every sequence of bytes.
//!
//! Each check is run by a fuzz target, and by `tests/corpora.rs`, which replays the corpora.

use mcp_vary::json::{Json, Members};
use mcp_vary_config::{Diagnostic, ImportSource, Source, import};
use mcp_vary_gateway::call_headers;
use mcp_vary_upstream::Answer;
use mcp_vary_view::derive;
use mcp_vary_wire::envelope::{self, Message};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::sse::{self, Parser};

pub use self::http_front::http_front;
pub use self::page::page;
pub use self::parsers::{challenge, event_id, frame, headers, lines, metadata, session_id, splice};
pub use self::readers::members;

mod http_front;
pub mod locations;
mod page;
pub mod parsers;
mod paths;
mod readers;
mod selected_resources;

/// A check, after the name of its target and corpus.
pub type Check = (&'static str, fn(&[u8]));

/// Every check.
pub const CHECKS: &[Check] = &[
    ("answer", answer),
    ("challenge", challenge),
    ("configuration", configuration),
    ("envelope", envelope),
    ("event_id", event_id),
    ("events", events),
    ("frame", frame),
    ("headers", headers),
    ("http_front", http_front),
    ("lines", lines),
    ("members", members),
    ("metadata", metadata),
    ("page", page),
    ("session_id", session_id),
    ("splice", splice),
    ("tool", tool),
];

/// An answer is kept as it came, and its payload is a part of it.
pub fn answer(data: &[u8]) {
    let Some(answer) = Answer::parse(data.to_vec().into()) else {
        return;
    };
    assert_eq!(&answer.message()[..], data);
    let (Ok(text) | Err(text)) = answer.outcome();
    let (Ok(bytes) | Err(bytes)) = answer.payload();
    assert_eq!(text.as_bytes(), &bytes[..]);
    assert!(serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok());
}

/// Whatever stands in a file, there is a value or a list of mistakes, each with a place in the file; nothing shows
/// what a variable stands for. What is made of other programs' files is YAML with keys of ours.
pub fn configuration(data: &[u8]) {
    const SECRET: &str = "http://s3cret-of-the-environment/";
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let variable = |name: &str| (name != "NONE").then(|| SECRET.to_owned());
    for name in ["x.yaml", "x.json", "x.toml"] {
        let read = Source::new(name, text).read(&variable);
        let reported = match read {
            Ok(file) => file.notes,
            Err(mistakes) => {
                assert!(!mistakes.all.is_empty());
                let has_fix = |mistake: &Diagnostic| mistake.fix.is_some();
                assert!(mistakes.all.iter().all(has_fix), "{mistakes}");
                mistakes.all
            }
        };
        for mistake in &reported {
            is_in(text, mistake);
            let shown = mistake.to_string();
            assert!(
                !shown.contains("s3cret-of-the") || text.contains("s3cret"),
                "{shown}"
            );
        }
        let Ok(imported) = import(&[ImportSource::new(name, text)]) else {
            continue;
        };
        imported
            .notes
            .iter()
            .for_each(|note| is_in(text, &note.note));
        if let Err(mistakes) = Source::new("y.yaml", &imported.yaml).read(&variable) {
            let is_of_a_value = |mistake: &Diagnostic| {
                mistake.key.starts_with("servers") && !mistake.what.starts_with("is given twice")
            };
            assert!(
                mistakes.all.iter().all(is_of_a_value),
                "{mistakes}\n{}",
                imported.yaml
            );
        }
    }
}

/// A place is in the text, or just behind its end. A carriage return alone ends a line, too (YAML 1.2, 5.4).
fn is_in(text: &str, mistake: &Diagnostic) {
    let lines = text.replace("\r\n", "\n").split(['\n', '\r']).count();
    assert!(
        (1..=lines + 1).contains(&mistake.at.line) && mistake.at.column > 0,
        "{mistake}"
    );
}

/// Both ways to read the params of a message agree, on errors too.
fn reads_params_alike(data: &[u8]) {
    let (message, with) = match (Message::read(data), Message::read_with_params(data)) {
        (Ok(message), Ok((same, params))) => {
            assert_eq!(message, same);
            (message, params)
        }
        (Err(one), Err(other)) => return assert_eq!(one, other),
        (one, other) => panic!("{one:?} is not {other:?}"),
    };
    if let Some(with) = with {
        let after = Params::read(message.params).expect("what one pass reads, two read");
        let members = |params: &Params<'_>| {
            let of = |members: &Members<'_>| -> Vec<(String, String)> {
                let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
                members.iter().map(owned).collect()
            };
            (of(&params.members), of(&params.meta))
        };
        assert_eq!(members(&with), members(&after));
    }
}

/// A message is of one kind, its parts are parts of the bytes, and its params are the same whether they are read with
/// it or after it.
pub fn envelope(data: &[u8]) {
    if let Some(Ok(messages)) = envelope::batch(data) {
        assert!(!messages.is_empty());
    }
    reads_params_alike(data);
    let message = match Message::read(data) {
        Ok(message) => message,
        Err(why) => {
            // The id that a bad message is answered with is its own, as written.
            let id = why.id.unwrap_or_default();
            assert!(id.is_empty() || data.windows(id.len()).any(|at| at == id.as_bytes()));
            return;
        }
    };
    let kinds = [
        message.method.is_some(),
        message.result.is_some(),
        message.error.is_some(),
    ];
    assert_eq!(kinds.iter().filter(|kind| **kind).count(), 1);
    for part in [message.id, message.params, message.result, message.error] {
        let part = part.unwrap_or_default();
        assert!(
            data.windows(part.len().max(1))
                .any(|at| at == part.as_bytes())
                || part.is_empty()
        );
    }
}

/// A stream gives the same events however it is cut, and never more than the limit at once.
pub fn events(data: &[u8]) {
    let whole = sse::parse(data, LIMIT);
    let mut parser = Parser::new(LIMIT);
    let mut pieces = Vec::new();
    for byte in data {
        match parser.feed(&[*byte]) {
            Ok(events) => pieces.extend(events),
            Err(_) => break,
        }
    }
    if let Ok(whole) = whole {
        assert_eq!(pieces, whole);
    }
    assert!(pieces.iter().all(|event| event.data.len() <= LIMIT));
}

/// What a server lists becomes smaller, stays JSON, and keeps its name and its annotations' meaning.
pub fn tool(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let _ = derive::first_sentence(text);
    let _ = call_headers(text, text);
    for compacted in [derive::compact_prompt(text), derive::compact_resource(text)] {
        assert!(compacted.is_ok_and(|json| Members::parse(&json).is_ok()) || !is_object(text));
    }
    let Ok(compact) = derive::compact_tool(text) else {
        assert!(!is_object(text));
        return;
    };
    let (before, after) = (Members::parse(text), Members::parse(&compact));
    if let (Ok(before), Ok(after)) = (before, after) {
        assert_eq!(before.get("name"), after.get("name"));
    }
    assert_eq!(derive::is_read_only(text), derive::is_read_only(&compact));
}

/// Whether it is an object of which nothing is in doubt, down to the last key.
fn is_object(text: &str) -> bool {
    Json::parse(text).is_ok_and(|value| value.as_object().is_some())
}

const LIMIT: usize = 256;
