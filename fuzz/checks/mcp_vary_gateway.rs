//! What must hold of `mcp_vary_gateway` for every sequence of bytes.
//!
//! Included by the fuzz targets, and by `crates/mcp-vary-gateway/tests/corpora.rs`, which replays the
//! corpora.

use mcp_vary::json::{Json, Members};
use mcp_vary::view::derive;
use mcp_vary_gateway::call_headers;
use mcp_vary_gateway::upstream::Answer;
use mcp_vary_gateway::upstream::sse::{self, Parser};
use mcp_vary_gateway::wire::{self, Message};

/// A check, after the name of its target and corpus.
type Check = (&'static str, fn(&[u8]));

/// Every check.
pub(crate) const CHECKS: &[Check] = &[
    ("answer", answer),
    ("envelope", envelope),
    ("events", events),
    ("tool", tool),
];

/// An answer is kept as it came, and its payload is a part of it.
pub(crate) fn answer(data: &[u8]) {
    let Some(answer) = Answer::parse(data.to_vec().into()) else {
        return;
    };
    assert_eq!(&answer.message()[..], data);
    let (Ok(text) | Err(text)) = answer.outcome();
    let (Ok(bytes) | Err(bytes)) = answer.payload();
    assert_eq!(text.as_bytes(), &bytes[..]);
    assert!(serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok());
}

/// A message is of one kind, and its parts are parts of the bytes.
pub(crate) fn envelope(data: &[u8]) {
    if let Some(Ok(messages)) = wire::batch(data) {
        assert!(!messages.is_empty());
    }
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
pub(crate) fn events(data: &[u8]) {
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
pub(crate) fn tool(data: &[u8]) {
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
