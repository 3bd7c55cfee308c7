//! Messages for a call that arrive outside its response.
//!
//! Servers that do not tie a message to a request send it on the standalone stream. The token of a progress notification
//! names its call. On a dedicated connection, requests and log messages there are for a call of its client.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, Weak};

use bytes::Bytes;
use mcp_vary::json::Members;
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_wire::server_message::canonical_token;

use crate::mailbox::{Budget, Mailbox};
use crate::message::NotificationSink;
use crate::server_requests::ServerRequest;

/// The side channels of the calls in flight.
#[derive(Debug, Default)]
pub(super) struct SideChannels(ScopedLock<Open>);

#[derive(Debug, Default)]
struct Open {
    by_token: BTreeMap<String, Arc<Mailbox>>,
    /// The calls whose client accepts server requests, by request id, the latest last; usually there is one.
    by_request: Vec<(u64, Arc<Mailbox>)>,
}

/// The side channel of one call. Dropping it removes it.
#[derive(Debug)]
pub(super) struct SideChannel {
    channels: Arc<SideChannels>,
    token: Option<String>,
    request_id: Option<u64>,
    pub(super) mailbox: Arc<Mailbox>,
}

/// The messages that a side channel accepts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepts<'a> {
    /// Progress with this token.
    pub(super) progress_token: Option<&'a str>,
    /// Requests of the server, for the call with this id.
    pub(super) server_requests: Option<u64>,
    /// Messages that name no call.
    pub(super) out_of_band: bool,
}

impl SideChannel {
    /// A sink that delivers to this call.
    pub(super) fn sink(&self) -> Weak<dyn NotificationSink> {
        let mailbox: Weak<Mailbox> = Arc::downgrade(&self.mailbox);
        mailbox
    }
}

impl SideChannels {
    /// Opens a side channel that holds at most `limit` bytes and what `budget` allows; `None` if it would accept nothing.
    pub(super) fn open(
        self: &Arc<Self>,
        expected: Accepts<'_>,
        (limit, budget): (usize, &Arc<Budget>),
    ) -> Option<SideChannel> {
        let Accepts {
            progress_token: token,
            server_requests: asked,
            out_of_band: more,
        } = expected;
        if token.is_none() && asked.is_none() && !more {
            return None;
        }
        let mailbox = Arc::new(Mailbox::new(limit, Arc::clone(budget)));
        let token = token.map(canonical_token);
        let mut open = self.lock();
        if let Some(token) = &token {
            open.by_token.insert(token.clone(), Arc::clone(&mailbox));
        }
        if let Some(asked) = asked {
            open.by_request.push((asked, Arc::clone(&mailbox)));
        }
        Some(SideChannel {
            channels: Arc::clone(self),
            token,
            request_id: asked,
            mailbox,
        })
    }

    /// Delivers a progress notification; `false` when its call is not in flight.
    pub(super) fn deliver_progress(&self, params: Option<&str>, message: &Bytes) -> bool {
        let members = Members::parse(params.unwrap_or("{}")).unwrap_or_default();
        let token = members.get("progressToken").map(canonical_token);
        let mailbox = token.and_then(|token| self.lock().by_token.get(&token).cloned());
        if let Some(mailbox) = &mailbox {
            mailbox.post(message);
        }
        mailbox.is_some()
    }

    /// Delivers a request of the server to the latest call that accepts it; returns the request if there is none.
    pub(super) fn deliver_request(&self, request: ServerRequest) -> Option<ServerRequest> {
        let open = self.lock();
        let Some((_, mailbox)) = open.by_request.last() else {
            return Some(request);
        };
        mailbox.post_request(request);
        None
    }

    /// Delivers a notification to the latest call that accepts server requests; `false` if there is none.
    pub(super) fn deliver_notification(&self, message: &Bytes) -> bool {
        let latest = self.lock().by_request.last().cloned();
        if let Some((_, mailbox)) = &latest {
            mailbox.post(message);
        }
        latest.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock()
    }
}

impl Drop for SideChannel {
    fn drop(&mut self) {
        let mut open = self.channels.lock();
        if let Some(token) = &self.token {
            open.by_token.remove(token);
        }
        if let Some(asked) = self.request_id {
            open.by_request.retain(|(number, _)| *number != asked);
        }
    }
}
