//! The members of a message that can be seen in a line that cannot be read.

use mcp_vary_wire::server_message::own_number;

/// The members of a JSON-RPC message, as far as they can be seen.
#[derive(Debug, Default)]
pub(super) struct Outline<'t> {
    text: &'t str,
    pub(super) length: usize,
    pub(super) id: Option<&'t str>,
    pub(super) is_rpc: bool,
    pub(super) has_outcome: bool,
    has_error: bool,
    /// Whether it has members of a request or a notification.
    pub(super) has_method: bool,
}

impl<'t> Outline<'t> {
    /// Reads the object at the start of `text`, which ends where its braces do.
    pub(super) fn read(text: &'t str) -> Self {
        let mut outline = Self {
            text,
            length: text.len(),
            ..Self::default()
        };
        let mut depth = 0_usize;
        let mut at = 0;
        while let Some(found) = text[at..].find(['"', '{', '}']) {
            at += found + 1;
            match text.as_bytes()[at - 1] {
                b'"' => {
                    let string = string_at(&text[at..]);
                    at = text.len().min(at + string.len() + 1);
                    let value = text[at..].trim_start().strip_prefix(':');
                    if depth == 1
                        && let Some(value) = value
                    {
                        outline.note(string, value.trim_start());
                    }
                }
                b'{' => depth += 1,
                _ => depth = depth.saturating_sub(1),
            }
            if depth == 0 {
                outline.length = at;
                break;
            }
        }
        outline
    }

    fn note(&mut self, key: &str, value: &'t str) {
        match key {
            "jsonrpc" => self.is_rpc = true,
            // A number that is cut would be another.
            "id" if self.id.is_none() => {
                self.id = value.split_once([',', '}']).map(|(id, _)| id.trim_end());
            }
            "result" => self.has_outcome = true,
            "error" => (self.has_outcome, self.has_error) = (true, true),
            "method" | "params" => self.has_method |= !value.starts_with("null"),
            _ => {}
        }
    }

    /// The id of the call that it answers, if it is an answer; `None` inside for an error without an id, and for an empty id.
    pub(super) fn answered(&self) -> Option<Option<u64>> {
        if self.has_method || !(self.is_rpc || self.has_outcome) {
            return None;
        }
        if self.is_rpc && self.has_outcome && self.id.is_some_and(is_empty_text) {
            return Some(None);
        }
        if let Some(id) = self.id.filter(|id| *id != "null") {
            return own_number(id).map(Some);
        }
        // A byte of another encoding may have hidden the end of a string, and so the id.
        let id = id_at_end(&self.text[..self.length]);
        let is_anonymous = self.is_rpc && self.has_error;
        (id.is_some() || is_anonymous).then_some(id)
    }
}

/// Whether an id is a text without a character, but for white space.
fn is_empty_text(id: &str) -> bool {
    id.trim_matches('"').trim().is_empty()
}

/// The string at the start of `text`, without its closing quote.
fn string_at(text: &str) -> &str {
    let mut is_escaped = false;
    let end = text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    &text[..end.unwrap_or(text.len())]
}

/// `5` from `…},"jsonrpc":"2.0","id":5}`: a member of the outermost object, since one brace follows.
pub(super) fn id_at_end(text: &str) -> Option<u64> {
    let inner = text.trim_end().strip_suffix('}')?.trim_end();
    let with_id = inner.strip_suffix("\"2.0\"").map_or(inner, |before| {
        let key = before.trim_end().trim_end_matches(':').trim_end();
        let member = key.trim_end_matches("\"jsonrpc\"").trim_end();
        member.trim_end_matches(',').trim_end()
    });
    let (before, number) = with_id.rsplit_once(':')?;
    let is_id = before.trim_end().ends_with("\"id\"");
    is_id.then(|| own_number(number.trim())).flatten()
}
