//! Calls of legacy servers that wait for input of modern clients, whose requests have ended meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_vary::json::{self, Members};
use mcp_vary_base::lock::Lock;
use mcp_vary_base::tasks::TaskTracker;
use mcp_vary_upstream::{Exchange, ServerRequest};
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::server_request_support;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::required::without_elicitation_id;
use mcp_vary_session::client::QuotaKey;
use mcp_vary_settings::limits::Limits;

/// The suspended calls. `L` is what a call leases until its exchange has ended.
///
/// # Properties
///
/// Each is taken out once: by the client's retry, or at its timeout, which cancels it at the server.
#[derive(Debug)]
pub(crate) struct SuspendedCalls<L> {
    next: AtomicU64,
    entries: Lock<BTreeMap<u64, SuspendedEntry<L>>>,
    background_tasks: TaskTracker,
    /// Cancelled when the gateway stops.
    shutdown: CancellationToken,
}

#[derive(Debug)]
struct SuspendedEntry<L> {
    owner: QuotaKey,
    suspended: SuspendedCall<L>,
}

/// A call whose server waits for input.
#[derive(Debug)]
pub(crate) struct SuspendedCall<L> {
    pub(crate) exchange: Exchange,
    pub(crate) input: InputRequests,
    /// Returned after the exchange has ended.
    pub(crate) leases: L,
    /// The server's progress token.
    pub(crate) progress: Option<String>,
}

/// The requests of a server to a modern client, each under a key that the gateway chose.
#[derive(Debug, Default)]
pub(crate) struct InputRequests {
    open: Vec<(String, ServerRequest)>,
    /// How many keys were used so far.
    keys: usize,
}

/// How many calls may be suspended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    pub(crate) total: usize,
    pub(crate) per_principal: usize,
}

impl Quota {
    pub(crate) const fn of(limits: &Limits) -> Self {
        Self {
            total: limits.suspended_calls,
            per_principal: limits.suspended_calls_per_principal,
        }
    }
}

impl<L: Send + 'static> SuspendedCalls<L> {
    pub(crate) fn new(background_tasks: TaskTracker, shutdown: CancellationToken) -> Self {
        Self {
            next: AtomicU64::default(),
            entries: Lock::default(),
            background_tasks,
            shutdown,
        }
    }

    /// Suspends `call` for at most `timeout`. Returns the number by which a retry finds it.
    ///
    /// # Errors
    ///
    /// When too many calls are suspended; `call` is cancelled then.
    pub(super) fn insert(
        self: &Arc<Self>,
        call: SuspendedCall<L>,
        owner: QuotaKey,
        quota: Quota,
        timeout: Duration,
    ) -> Result<u64, RpcError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.entries.lock();
        let of_owner = entries.values().filter(|it| it.owner == owner).count();
        if entries.len() >= quota.total || of_owner >= quota.per_principal {
            drop(entries);
            call.cancel("too many calls wait for input");
            return Err(RpcError::internal(
                "the server asks for input, and too many calls wait for some already; try again later",
            ));
        }
        entries.insert(
            id,
            SuspendedEntry {
                owner,
                suspended: call,
            },
        );
        drop(entries);
        let calls = Arc::clone(self);
        self.background_tasks.spawn(async move {
            let time = tokio::time::sleep(timeout);
            let reason = match calls.shutdown.run_until_cancelled(time).await {
                Some(()) => "the client did not come back in time",
                None => "the gateway stops",
            };
            if let Some(call) = calls.take(id) {
                call.cancel(reason);
            }
        });
        Ok(id)
    }

    pub(crate) fn count(&self) -> usize {
        self.entries.lock().len()
    }

    /// Takes the call with the number `id` out.
    pub(crate) fn take(&self, id: u64) -> Option<SuspendedCall<L>> {
        self.entries.lock().remove(&id).map(|entry| entry.suspended)
    }
}

impl<L> SuspendedCall<L> {
    fn cancel(self, reason: &'static str) {
        debug!(reason, "suspended call cancelled");
        self.exchange.cancel(Some(reason));
    }
}

impl InputRequests {
    pub(crate) const fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn add(&mut self, request: ServerRequest) {
        self.keys += 1;
        self.open.push((self.keys.to_string(), request));
    }

    /// Forwards the client's responses. Requests without a response stay open.
    pub(crate) fn answer(&mut self, responses: &Members<'_>) {
        self.open.retain(|(key, request)| match responses.get(key) {
            Some(response) => {
                request.reply(Ok(response));
                false
            }
            // A request that the server cancelled needs no response.
            None => !request.is_settled(),
        });
    }

    /// Removes the requests that the server cancelled.
    pub(crate) fn forget_settled(&mut self) {
        self.open.retain(|(_, request)| !request.is_settled());
    }

    /// As the client gets them, with the name of the server if `server` gives one.
    pub(crate) fn to_json(&self, server: Option<&str>) -> String {
        let mut requests = Members::default();
        for (key, request) in &self.open {
            let method = json::string(request.method());
            let written = without_elicitation_id(request.method(), request.params());
            let params = written.as_deref().map(|params| {
                server_request_support::with_server_name(server, request.method(), params)
            });
            let mut members = vec![("method", method.as_str())];
            members.extend(params.as_deref().map(|params| ("params", params)));
            requests.set(key.clone(), json::object(&members));
        }
        requests.to_json()
    }
}

/// The error for a retry of a call that is no longer suspended.
pub(crate) fn unknown_suspended_call() -> RpcError {
    RpcError::invalid_params(
        "the call no longer waits for input: it went on, or was cancelled because the client did not retry in time; \
         send the request without `requestState`",
    )
}
