//! Finds the call that an oversized line answers.

use mcp_vary_wire::server_message::own_number;

use super::outline::{Outline, id_at_end};

/// The two ends of an oversized line.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct LineEnds {
    /// Its start.
    pub(super) head: Vec<u8>,
    /// Its end; empty if the gateway did not wait for it.
    pub(super) tail: Vec<u8>,
}

/// The calls that a lost line may have answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LostMessage {
    /// The answer to this call.
    Answer(u64),
    /// None: it was not an answer.
    Nothing,
    /// Any call.
    Anything,
}

impl LineEnds {
    /// Reads the members at both ends, where writers of JSON put the short ones.
    pub(super) fn lost_message(&self) -> LostMessage {
        let head = String::from_utf8_lossy(&self.head);
        let outline = Outline::read(&head);
        if outline.has_method {
            return LostMessage::Nothing;
        }
        if let Some(id) = outline.id.and_then(own_number) {
            return LostMessage::Answer(id);
        }
        let tail = String::from_utf8_lossy(&self.tail);
        match id_at_end(&tail) {
            Some(id) => LostMessage::Answer(id),
            None => LostMessage::Anything,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn loses(head: &str, tail: &str, expected: LostMessage) {
        let ends = LineEnds {
            head: head.into(),
            tail: tail.into(),
        };
        assert_eq!(ends.lost_message(), expected);
    }

    #[test]
    fn the_id_is_found_at_either_end() {
        loses(
            r#"{"jsonrpc":"2.0","id":5,"result":{"#,
            "",
            LostMessage::Answer(5),
        );
        loses(r#"{"id" : 5 , "error": {"#, "", LostMessage::Answer(5));
        let text = r#"{"id":"5","result":"#;
        loses(text, r#""x"}"#, LostMessage::Answer(5));
        loses(
            r#"{"result":{"id":1,"#,
            r#"x"},"jsonrpc":"2.0","id":5}"#,
            LostMessage::Answer(5),
        );
        loses(
            r#"{"result":{"#,
            r#"x"}, "id": 5, "jsonrpc": "2.0"}"#,
            LostMessage::Answer(5),
        );
    }

    #[test]
    fn an_id_inside_is_none_of_the_message() {
        loses(
            r#"{"result":{"id":5,"#,
            r#"{"id":7}}"#,
            LostMessage::Anything,
        );
        loses(r#"{"result":{"id":5,"#, "", LostMessage::Anything);
        loses("xxxxxx", "xxxxxx", LostMessage::Anything);
        loses(r#"{"id":"05","result":"#, r#""x"}"#, LostMessage::Anything);
    }

    #[test]
    fn a_notification_or_a_request_answers_nobody() {
        let asked = r#"{"id":5,"method":"x","params":"#;
        loses(asked, "", LostMessage::Nothing);
        loses(
            r#"{"jsonrpc":"2.0","method":"x","params":"#,
            "",
            LostMessage::Nothing,
        );
    }
}
