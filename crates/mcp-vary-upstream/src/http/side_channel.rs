//! Messages for a call that arrive outside its response.
//!
//! Servers that do not tie a message to a request send it on the standalone stream. The token of a progress notification
//! names its call. On a dedicated connection, requests and log messages there are for a call of its client.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use mcp_vary::json::Members;
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_wire::server_message::own_token;

use crate::config::Limits;
use crate::mailbox::{Budget, Mailbox};
use crate::message::NotificationSink;
use crate::server_requests::ServerRequest;

/// The side channels of the calls in flight.
#[derive(Debug)]
pub(super) struct SideChannels {
    open: ScopedLock<Open>,
    /// The bytes that one of them holds at most.
    limit: usize,
    /// The bytes that all of them hold together.
    budget: Arc<Budget>,
}

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
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            open: ScopedLock::default(),
            limit: limits.message,
            budget: Arc::new(Budget::new(limits.waiting)),
        }
    }

    /// Opens a side channel; `None` if it would accept nothing.
    pub(super) fn open(self: &Arc<Self>, accepts: Accepts<'_>) -> Option<SideChannel> {
        let request_id = accepts.server_requests;
        if accepts.progress_token.is_none() && request_id.is_none() && !accepts.out_of_band {
            return None;
        }
        let mailbox = Arc::new(Mailbox::new(self.limit, Arc::clone(&self.budget)));
        let token = accepts.progress_token.map(own_token);
        let mut open = self.open.lock();
        if let Some(token) = &token {
            open.by_token.insert(token.clone(), Arc::clone(&mailbox));
        }
        if let Some(id) = request_id {
            open.by_request.push((id, Arc::clone(&mailbox)));
        }
        Some(SideChannel {
            channels: Arc::clone(self),
            token,
            request_id,
            mailbox,
        })
    }

    /// Delivers a progress notification; `false` when its call is not in flight.
    pub(super) fn deliver_progress(&self, params: Option<&str>, message: &Bytes) -> bool {
        let members = Members::parse(params.unwrap_or("{}")).unwrap_or_default();
        let token = members.get("progressToken").map(own_token);
        let mailbox = token.and_then(|token| self.open.lock().by_token.get(&token).cloned());
        if let Some(mailbox) = &mailbox {
            mailbox.post(message);
        }
        mailbox.is_some()
    }

    /// Delivers a request of the server to the latest call that accepts it; returns the request if there is none.
    pub(super) fn deliver_request(&self, request: ServerRequest) -> Option<ServerRequest> {
        let open = self.open.lock();
        let Some((_, mailbox)) = open.by_request.last() else {
            return Some(request);
        };
        mailbox.post_request(request);
        None
    }

    /// Delivers a notification to the latest call that accepts server requests; `false` if there is none.
    pub(super) fn deliver_notification(&self, message: &Bytes) -> bool {
        let latest = self.open.lock().by_request.last().cloned();
        if let Some((_, mailbox)) = &latest {
            mailbox.post(message);
        }
        latest.is_some()
    }
}

impl Drop for SideChannel {
    fn drop(&mut self) {
        let mut open = self.channels.open.lock();
        if let Some(token) = &self.token {
            open.by_token.remove(token);
        }
        if let Some(id) = self.request_id {
            open.by_request.retain(|(other, _)| *other != id);
        }
    }
}
