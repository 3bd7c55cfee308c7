//! Lines that cannot be read, and the calls that they answer.
//!
//! Servers print logs to standard output, too. So a line counts as an answer only by its envelope, as far as that can be
//! seen in text that is not JSON, or not UTF-8.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_vary::json::Members;
use mcp_vary_base::tasks::try_spawn;
use mcp_vary_wire::server_message::{NOT_AN_OBJECT, ResponseOutcome};

use super::Shared;
use super::outline::Outline;
use crate::error::UpstreamError;
use crate::message::Answer;

impl Shared {
    /// Handles an answer without an id: an error is that of the only call in flight, unless it is about a notification.
    pub(super) fn receive_anonymous(&self, message: &Bytes, outcome: ResponseOutcome) {
        let only_call = self.in_flight().only_call();
        let answer = Answer::new(message.clone(), outcome);
        // A line of a JSON logger may have an `error`, too.
        if answer
            .outcome()
            .is_err_and(|error| !is_of_notification(error))
            && !lost_answers(&text_of(message)).is_empty()
            && let Some(id) = only_call
        {
            return self.receive_answer(id, || answer);
        }
        self.skip("it has no `id` of a call", message);
    }

    /// Handles a line that is not a message: fails the calls that it answers.
    pub(super) fn on_unreadable(self: &Arc<Self>, why: &str, line: &[u8]) {
        self.skip(why, line);
        let text = text_of(line);
        let spread = self.spread_object.lock().add(&text);
        let mut lost = lost_answers(&text);
        let is_spread = lost.is_empty();
        if is_spread {
            lost.extend(spread);
        }
        if lost.is_empty() {
            return;
        }
        let why = match why {
            _ if is_utf16(line) => "it is UTF-16, not UTF-8",
            _ if is_spread => "it goes over several lines, and a message is one line",
            NOT_AN_OBJECT => "its line is not JSON",
            why => why,
        };
        // With several answers in the line, its beginning may be for another client.
        let begin = match lost.len() {
            1 => format!(
                "; the line begins `{}`",
                self.secrets.excerpt(text.as_bytes(), QUOTED)
            ),
            _ => String::new(),
        };
        let error = UpstreamError::Unreadable {
            server: Arc::clone(&self.server),
            why: format!("{why}{begin}").into(),
        };
        for LostAnswer { id, is_certain } in lost {
            let Some(id) = id.or_else(|| self.in_flight().only_call()) else {
                continue;
            };
            if is_certain {
                self.fail(id, error.clone());
            } else if self.in_flight().doubt(id) {
                let shared = Arc::downgrade(self);
                let failure = error.clone();
                let _ = try_spawn(async move {
                    tokio::time::sleep(DOUBT).await;
                    if let Some(shared) = shared.upgrade() {
                        shared.fail(id, failure);
                    }
                });
            }
        }
    }
}

/// Whether an error without an id is about a notification, which some servers refuse by name.
fn is_of_notification(error: &str) -> bool {
    let members = Members::parse(error).unwrap_or_default();
    let message = members.get_str("message").unwrap_or_default();
    message.contains("notification")
}

/// How many characters of an unreadable line an error shows: an envelope, and little of what is in it.
const QUOTED: usize = 60;

/// How long an answer may follow a line that ends with what may be its log.
const DOUBT: Duration = Duration::from_millis(500);

/// An answer that cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct LostAnswer {
    /// The call; `None` for an error without an id.
    id: Option<u64>,
    /// Whether the line begins with it, and it has a `result` or an `error`. Others may be a log of the answer, which
    /// then follows.
    is_certain: bool,
}

/// The first lines of an object that goes on in the next ones.
#[derive(Debug, Default)]
pub(super) struct SpreadObject(String);

impl SpreadObject {
    /// Adds a line. Returns the answer that the object is, as soon as that can be seen; it may be the log of an answer.
    fn add(&mut self, line: &str) -> Option<LostAnswer> {
        let Self(text) = self;
        if line.trim_start_matches(is_blank).starts_with('{') {
            text.clear();
        } else if text.is_empty() {
            return None;
        }
        if text.len() + line.len() > SPREAD_BYTES {
            text.clear();
            return None;
        }
        text.push_str(line);
        let outline = Outline::read(text.trim_start_matches(is_blank));
        if !(outline.is_rpc && outline.has_outcome) {
            return None;
        }
        let id = outline.answered()?;
        text.clear();
        Some(LostAnswer {
            id,
            is_certain: false,
        })
    }
}

/// How much of an object over several lines is read; its envelope comes first.
const SPREAD_BYTES: usize = 1024;

fn is_blank(character: char) -> bool {
    character.is_whitespace() || matches!(character, '[' | '\u{feff}')
}

/// Whether a line is UTF-16: every other byte of an envelope is zero then.
fn is_utf16(line: &[u8]) -> bool {
    line.iter().take(4).any(|byte| *byte == 0)
}

/// The text of a line; of UTF-16 the ASCII characters, without the mark before them, whose bytes UTF-8 lacks.
fn text_of(line: &[u8]) -> Cow<'_, str> {
    if !is_utf16(line) {
        return String::from_utf8_lossy(line);
    }
    let bytes = line.iter().copied();
    let visible: Vec<u8> = bytes
        .filter(|byte| ![0, 0xfe, 0xff].contains(byte))
        .collect();
    Cow::Owned(String::from_utf8_lossy(&visible).into_owned())
}

/// The answers in `line`.
fn lost_answers(line: &str) -> Vec<LostAnswer> {
    let text = line.trim_end();
    let Some(start) = text.find('{') else {
        return Vec::new();
    };
    let is_first = text[..start].chars().all(is_blank);
    let mut lost = Vec::new();
    let mut at = start;
    while let Some(opened) = text[at..].find('{') {
        let outline = Outline::read(&text[at + opened..]);
        at += opened + outline.length;
        let is_last = at == text.len() && outline.has_outcome;
        if (is_first || is_last)
            && let Some(id) = outline.answered()
        {
            let is_certain = is_first && outline.has_outcome;
            lost.push(LostAnswer { id, is_certain });
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn finds(line: impl AsRef<[u8]>, expected: &[Option<u64>], is_certain: bool) {
        let line = line.as_ref();
        let expected: Vec<_> = expected
            .iter()
            .map(|id| LostAnswer {
                id: *id,
                is_certain,
            })
            .collect();
        let shown = String::from_utf8_lossy(line);
        assert_eq!(lost_answers(&text_of(line)), expected, "{shown}");
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_found_by_its_envelope() {
        for line in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"mean":NaN}}"#,
            r#"{"result":{"id":9,"mean":NaN,},"jsonrpc":"2.0","id":7}"#,
            r#"{"jsonrpc": "2.0", "id": "7", "error": {"code": 1,}}"#,
            "{\"id\":7,\"result\":\"a\tb\"}",
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"te"#,
            r#" [{"jsonrpc":"2.0","id":7,"result":undefined}]"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{}} and more"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{}}{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}} {"jsonrpc":"2.0","id":7,"result":{}}"#,
        ] {
            finds(line, &[Some(7)], true);
        }
        let two = r#"{"jsonrpc":"2.0","id":7,"result":{}}{"jsonrpc":"2.0","id":8,"result":{}}"#;
        finds(two, &[Some(7), Some(8)], true);
        let anonymous = r#"{"jsonrpc":"2.0","id":null,"error":{"code":NaN}}"#;
        finds(anonymous, &[None], true);
        finds(r#"{"jsonrpc":"2.0","error":{"code":1,}}"#, &[None], true);
        finds(r#"{"jsonrpc":"2.0","id":"","result":{}}"#, &[None], true);
        finds(r#"{"result":{},"id":" ","jsonrpc":"2.0"}"#, &[None], true);
    }

    #[track_caller]
    fn is_spread(lines: &[&str], expected: Option<Option<u64>>) {
        let mut object = SpreadObject::default();
        let found = lines.iter().find_map(|line| object.add(line));
        assert_eq!(found.map(|answer| answer.id), expected, "{lines:?}");
    }

    #[test]
    fn an_answer_over_several_lines_is_found_by_its_envelope() {
        let version = r#"  "jsonrpc": "2.0","#;
        let result = r#"  "result": {"#;
        is_spread(&["{", version, r#"  "id": 7,"#, result], Some(Some(7)));
        is_spread(
            &["noise", "\u{feff}{\r", version, r#"  "id": " 7","#, result],
            Some(Some(7)),
        );
        is_spread(&["{", version, r#"  "id": "","#, result], Some(None));
        is_spread(
            &[
                "{",
                r#"  "result": {"#,
                r#"    "id": 9"#,
                "  },",
                r#"  "id": 7,"#,
                r#"  "jsonrpc": "2.0""#,
                "}",
            ],
            Some(Some(7)),
        );
        for lines in [
            &[
                "{",
                version,
                r#"  "id": 7,"#,
                r#"  "method": "tools/call","#,
                r#"  "params": {"#,
                result,
            ][..],
            &["{", r#"  "level": "info","#, r#"  "id": 7,"#, result],
            &["{", "  jsonrpc: '2.0',", "  id: 7,", "  result: {"],
            &[version, r#"  "id": 7,"#, result],
            &["{ready}", version, r#"  "id": 7,"#, result],
            &[
                "{",
                &"x".repeat(SPREAD_BYTES),
                version,
                r#"  "id": 7,"#,
                result,
            ],
        ] {
            is_spread(lines, None);
        }
    }

    #[test]
    fn an_answer_in_another_encoding_is_found() {
        for text in [
            &b"caf\xe9"[..],
            b"\xb2\xe2\xca\xd4",
            b"caf\xc3",
            b"\\\"caf\xe9",
        ] {
            let id_first = [
                &br#"{"jsonrpc":"2.0","id":7,"result":{"t":""#[..],
                text,
                b"\"}}",
            ];
            finds(id_first.concat(), &[Some(7)], true);
            let id_last = [
                &br#"{"result":{"t":""#[..],
                text,
                br#""},"jsonrpc":"2.0","id":7}"#,
            ];
            finds(id_last.concat(), &[Some(7)], true);
        }
        for mark in ["", "\u{feff}"] {
            let text = mark.to_owned() + r#"{"jsonrpc":"2.0","id":7,"result":{"t":"€"}}"#;
            let units = || text.encode_utf16();
            finds(
                units().flat_map(u16::to_le_bytes).collect::<Vec<_>>(),
                &[Some(7)],
                true,
            );
            finds(
                units().flat_map(u16::to_be_bytes).collect::<Vec<_>>(),
                &[Some(7)],
                true,
            );
        }
        // The second byte of a character of GBK can be that of a backslash, which hides the quote.
        let hidden = b"{\"result\":{\"t\":\"\x95\x5c\"},\"id\":7}";
        finds(hidden, &[Some(7)], true);
    }

    #[test]
    fn an_answer_after_other_text_or_without_an_outcome_is_not_certain() {
        for line in [
            r#"{"jsonrpc":"2.0","id":7}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":null,"content":[]}"#,
            r#"{"jsonrpc":"2.0","id":7,"res"#,
            r#"Loading... {"jsonrpc":"2.0","id":7,"result":{}}"#,
            r#"[debug] sent {"jsonrpc":"2.0","id":7,"error":{"code":1}}"#,
        ] {
            finds(line, &[Some(7)], false);
        }
    }

    #[test]
    fn a_line_may_be_cut_anywhere() {
        let line = "[{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"result\":{\"a\\\"ä\u{1f600}\":[{}]}}, {\"id\":8}]";
        for end in 0..line.len() {
            for start in 0..end {
                assert!(lost_answers(&text_of(&line.as_bytes()[start..end])).len() < 3);
            }
        }
    }

    #[test]
    fn noise_answers_nothing() {
        for line in [
            "Server started",
            "{",
            "{ready}",
            r#"{"level":30,"id":7,"msg":"done"}"#,
            r#"{"level":30,"msg":"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}"}"#,
            r#"{"level":30,"error":{"code":1,}}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{NaN}}"#,
            r#"{"params":{"result":1,"id":7},"jsonrpc":"2.0","method":"notifications/x",}"#,
            r#"got {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}"#,
            r#"sent {"jsonrpc":"2.0","id":7,"result":{}} in 3 ms"#,
            r#"call {"jsonrpc":"2.0","id":7}"#,
            r#"{"jsonrpc":"2.0","id":"07","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"7x","result":{}}"#,
            r#"{"data":{"jsonrpc":"2.0","id":7,"result":{}},}"#,
            "{ jsonrpc: '2.0', id: 7, result: {} }",
            "{'jsonrpc': '2.0', 'id': 7, 'result': {}}",
        ] {
            finds(line, &[], true);
        }
    }
}
