//! Progress that comes beside the stream of its request.
//!
//! Servers that do not tie a notification to a request send it on the standalone stream; the token
//! still says which call it is about.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mcp_vary::json::Members;

use crate::upstream::frame::canonical;
use crate::upstream::mailbox::{Budget, Mailbox};

/// The calls in flight that have a progress token.
#[derive(Debug, Default)]
pub(super) struct Asides(Mutex<BTreeMap<String, Arc<Mailbox>>>);

/// One of them; it is forgotten when this is dropped.
#[derive(Debug)]
pub(super) struct Aside {
    asides: Arc<Asides>,
    token: String,
    pub(super) mailbox: Arc<Mailbox>,
}

impl Asides {
    /// Collects what comes for `token`, at most `limit` bytes at a time and what `budget` allows.
    pub(super) fn open(self: &Arc<Self>, token: &str, limit: usize, budget: &Arc<Budget>) -> Aside {
        let mailbox = Arc::new(Mailbox::new(limit, Arc::clone(budget)));
        let token = canonical(token);
        self.lock().insert(token.clone(), Arc::clone(&mailbox));
        Aside {
            asides: Arc::clone(self),
            token,
            mailbox,
        }
    }

    /// Delivers a progress notification; `false` when its call is not in flight.
    pub(super) fn deliver(&self, params: Option<&str>, message: &Bytes) -> bool {
        let members = Members::parse(params.unwrap_or("{}")).unwrap_or_default();
        let token = members.get("progressToken").map(canonical);
        let mailbox = token.and_then(|token| self.lock().get(&token).cloned());
        if let Some(mailbox) = &mailbox {
            mailbox.post(message);
        }
        mailbox.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Mailbox>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.asides.lock().remove(&self.token);
    }
}
