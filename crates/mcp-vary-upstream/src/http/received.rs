//! The messages that one request has received and its caller has not fetched.

use std::collections::VecDeque;

use crate::message::Message;

/// Received messages in order. Usually that is the answer alone, which needs no allocation.
#[derive(Debug, Default)]
pub(super) struct Received {
    first: Option<Message>,
    more: VecDeque<Message>,
}

impl Received {
    pub(super) fn push(&mut self, message: Message) {
        if self.first.is_none() && self.more.is_empty() {
            self.first = Some(message);
        } else {
            self.more.push_back(message);
        }
    }

    pub(super) fn take(&mut self) -> Option<Message> {
        self.first.take().or_else(|| self.more.pop_front())
    }

    pub(super) fn last(&self) -> Option<&Message> {
        self.more.back().or(self.first.as_ref())
    }
}
