//! Server-sent events: how they are read and written.
//!
//! The grammar is that of the HTML standard, section 9.2.6, "Interpreting an event stream". Every byte sequence is a
//! valid stream, so the only error is an event that is too large. The streams themselves are where their connections
//! are.

mod event_id;
mod parser;
mod writer;

pub use self::event_id::{EventId, EventPosition};
pub use self::parser::{EventTooLarge, Parser, SseEvent, parse};
pub use self::writer::{
    KEEP_ALIVE, KEEP_ALIVE_WITH_IDS, OPENING_COMMENT, event, event_with_id, priming_event,
};
