//! Calls of legacy servers that wait for what they asked of modern clients, whose requests have ended meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_vary::json::{self, Members};
use mcp_vary_upstream::{Exchange, ServerRequest};
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::server_request_support;
use tracing::debug;

use super::required::without_elicitation_id;
use crate::pipeline::exchange::Leases;
use crate::pipeline::runtime::Services;
use crate::settings::limits::Limits;

/// The calls that wait.
///
/// # Properties
///
/// Each is taken out once: by the client that comes back, or when its time is over, which cancels it at the server.
#[derive(Debug, Default)]
pub(crate) struct SuspendedCalls {
    next: AtomicU64,
    all: Mutex<BTreeMap<u64, SuspendedEntry>>,
}

#[derive(Debug)]
struct SuspendedEntry {
    owner: QuotaKey,
    call: SuspendedCall,
}

/// Whose calls count together: those of a principal, and where nobody is told apart those of one connection, or all
/// that come without any.
pub(crate) type QuotaKey = (&'static str, Option<ClientId>);

/// A call that the server works on, and what it asks for it.
#[derive(Debug)]
pub(crate) struct SuspendedCall {
    pub(crate) exchange: Exchange,
    pub(crate) input: InputRequests,
    /// Given back after the exchange has ended.
    pub(crate) leases: Leases,
    /// The token that the server tells progress with.
    pub(crate) progress: Option<String>,
}

/// What a server asks of a modern client, each request under a key of the gateway's.
#[derive(Debug, Default)]
pub(crate) struct InputRequests {
    open: Vec<(String, ServerRequest)>,
    /// How many keys there were so far.
    keys: usize,
}

/// How many calls may wait.
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

impl SuspendedCalls {
    /// Lets `call` wait; the number by which it is found.
    ///
    /// # Errors
    ///
    /// When too many wait; the call is cancelled then.
    pub(crate) fn insert(
        &self,
        call: SuspendedCall,
        whose: QuotaKey,
        bounds: Quota,
        lasting: &Arc<Services>,
    ) -> Result<u64, RpcError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut all = self.lock();
        let of_one = all.values().filter(|it| it.owner == whose).count();
        if all.len() >= bounds.total || of_one >= bounds.per_principal {
            drop(all);
            call.cancel("too many calls wait for input");
            return Err(RpcError::internal(
                "the server asks for input, and too many calls wait for some already; try again later",
            ));
        }
        all.insert(id, SuspendedEntry { owner: whose, call });
        drop(all);
        let lasting_on = Arc::clone(lasting);
        let patience = lasting.pending_server_requests.timeout();
        lasting.background_tasks.spawn(async move {
            let time = tokio::time::sleep(patience);
            let reason = match lasting_on.shutdown.run_until_cancelled(time).await {
                Some(()) => "the client did not come back in time",
                None => "the gateway stops",
            };
            if let Some(call) = lasting_on.suspended_calls.take(id) {
                call.cancel(reason);
            }
        });
        Ok(id)
    }

    /// How many wait.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// The call that waits under `id`, which does so no longer.
    pub(crate) fn take(&self, id: u64) -> Option<SuspendedCall> {
        self.lock().remove(&id).map(|waiting| waiting.call)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, SuspendedEntry>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SuspendedCall {
    fn cancel(self, reason: &'static str) {
        debug!(reason, "call that waited for input cancelled");
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

    /// Passes on what the client says; what it leaves out is still asked.
    pub(crate) fn answer(&mut self, responses: &Members<'_>) {
        self.open.retain(|(key, request)| match responses.get(key) {
            Some(response) => {
                request.reply(Ok(response));
                false
            }
            // One that the server has withdrawn needs no answer.
            None => !request.is_settled(),
        });
    }

    /// Forgets what the server does not ask any more.
    pub(crate) fn forget_settled(&mut self) {
        self.open.retain(|(_, request)| !request.is_settled());
    }

    /// As the client gets them, with the name of the `asker` where that has to be said.
    pub(crate) fn to_json(&self, asker: Option<&str>) -> String {
        let mut requests = Members::default();
        for (key, request) in &self.open {
            let method = json::string(request.method());
            let params = without_elicitation_id(request.method(), request.params());
            let params = params.as_deref();
            let params = params.map(|params| {
                server_request_support::with_server_name(asker, request.method(), params)
            });
            let params = params.map(|params| format!(r#","params":{params}"#));
            let request = format!(r#"{{"method":{method}{}}}"#, params.unwrap_or_default());
            requests.set(key.clone(), request);
        }
        requests.to_json()
    }
}
