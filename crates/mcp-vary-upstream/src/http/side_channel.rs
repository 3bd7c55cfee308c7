//! What comes beside the stream of its request.
//!
//! Servers that do not tie a message to a request send it on the standalone stream. Of progress the token says which
//! call it is about; what is asked or logged there on a connection that one client has alone is for a call of that client.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use mcp_vary::json::Members;
use mcp_vary_wire::server_message::canonical;

use crate::mailbox::{Budget, Mailbox};
use crate::message::NotificationSink;
use crate::server_requests::ServerRequest;

/// The calls in flight that something may come for.
#[derive(Debug, Default)]
pub(super) struct Asides(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    by_token: BTreeMap<String, Arc<Mailbox>>,
    /// Those that can be asked something with the numbers of their requests, the latest last; mostly there is one.
    asked: Vec<(u64, Arc<Mailbox>)>,
}

/// One of them; it is forgotten when this is dropped.
#[derive(Debug)]
pub(super) struct Aside {
    asides: Arc<Asides>,
    token: Option<String>,
    asked: Option<u64>,
    pub(super) mailbox: Arc<Mailbox>,
}

/// What may come for a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected<'a> {
    /// Progress with this token.
    pub(super) progress: Option<&'a str>,
    /// Requests, of the call with this number.
    pub(super) asked: Option<u64>,
    /// What somebody else says is for it.
    pub(super) more: bool,
}

impl Aside {
    /// Puts what it hears among what belongs to the call.
    pub(super) fn hears(&self) -> Weak<dyn NotificationSink> {
        let mailbox: Weak<Mailbox> = Arc::downgrade(&self.mailbox);
        mailbox
    }
}

impl Asides {
    /// Collects what is `expected`: at most `limit` bytes at a time and what `budget` allows. `None` where that is
    /// nothing.
    pub(super) fn open(
        self: &Arc<Self>,
        expected: Expected<'_>,
        (limit, budget): (usize, &Arc<Budget>),
    ) -> Option<Aside> {
        let Expected {
            progress: token,
            asked,
            more,
        } = expected;
        if token.is_none() && asked.is_none() && !more {
            return None;
        }
        let mailbox = Arc::new(Mailbox::new(limit, Arc::clone(budget)));
        let token = token.map(canonical);
        let mut open = self.lock();
        if let Some(token) = &token {
            open.by_token.insert(token.clone(), Arc::clone(&mailbox));
        }
        if let Some(asked) = asked {
            open.asked.push((asked, Arc::clone(&mailbox)));
        }
        Some(Aside {
            asides: Arc::clone(self),
            token,
            asked,
            mailbox,
        })
    }

    /// Delivers a progress notification; `false` when its call is not in flight.
    pub(super) fn deliver(&self, params: Option<&str>, message: &Bytes) -> bool {
        let members = Members::parse(params.unwrap_or("{}")).unwrap_or_default();
        let token = members.get("progressToken").map(canonical);
        let mailbox = token.and_then(|token| self.lock().by_token.get(&token).cloned());
        if let Some(mailbox) = &mailbox {
            mailbox.post(message);
        }
        mailbox.is_some()
    }

    /// Gives what the server asks to the latest call that can be asked; back, when there is none.
    pub(super) fn ask(&self, request: ServerRequest) -> Option<ServerRequest> {
        let open = self.lock();
        let Some((_, mailbox)) = open.asked.last() else {
            return Some(request);
        };
        mailbox.ask(request);
        None
    }

    /// Tells something to the latest call that can be asked; `false` when there is none.
    pub(super) fn tell(&self, message: &Bytes) -> bool {
        let latest = self.lock().asked.last().cloned();
        if let Some((_, mailbox)) = &latest {
            mailbox.post(message);
        }
        latest.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let mut open = self.asides.lock();
        if let Some(token) = &self.token {
            open.by_token.remove(token);
        }
        if let Some(asked) = self.asked {
            open.asked.retain(|(number, _)| *number != asked);
        }
    }
}
