//! Server requests that legacy clients have not answered yet.
//!
//! A server's request is forwarded with an id of the gateway, since ids of several servers may be the same. The
//! client's response is matched by session and id, on whatever connection it arrives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use mcp_vary::json;
use mcp_vary::json::edit;
use mcp_vary_base::environment::Environment;
use mcp_vary_base::lock::Lock;
use mcp_vary_base::log_backoff::LogBackoff;
use mcp_vary_store::Store;
use mcp_vary_upstream::ServerRequest;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::era::PROGRESS_TOKEN;
use mcp_vary_wire::extension_methods::declares_extension_of;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::server_message::{self, own_number};
use mcp_vary_wire::server_request_support::{self, ServerRequestSupport};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::Session;
use mcp_vary_wire::task_dialect::rename_related_task;

/// The pending requests.
#[derive(Debug)]
pub struct PendingServerRequests {
    ids: RequestIds,
    open: Lock<BTreeMap<(ClientId, u64), OpenRequest>>,
    limit: usize,
    timeout: Duration,
    environment: Environment,
    /// Responses to requests that this gateway did not send.
    unmatched: LogBackoff,
    /// Whether there are several servers, so that each request must name its own.
    names_servers: AtomicBool,
    /// What shows which replica serves a session, and gets its responses.
    store: Option<Arc<Store>>,
}

/// A request that waits for the client.
#[derive(Debug)]
struct OpenRequest {
    origin: RequestOrigin,
    /// The server's progress token, JSON text; the client gets the request's id in its place.
    progress: Option<String>,
}

/// The sender of a request.
#[derive(Debug)]
enum RequestOrigin {
    Server(ServerRequest),
    Gateway(oneshot::Sender<ClientResponse>),
}

/// The JSON text of a client's `result`, or of its `error`.
pub type ClientResponse = Result<String, String>;

/// A request to a client. Dropping it discards the response.
#[derive(Debug)]
pub struct ForwardedServerRequest {
    pending: Arc<PendingServerRequests>,
    client: ClientId,
    id: u64,
    deadline: Instant,
    request: Option<ServerRequest>,
}

impl PendingServerRequests {
    /// At most `limit` requests at once; `patience` is the time for a response. `gateway` distinguishes this gateway
    /// from others that share its sessions.
    pub fn new(limit: usize, timeout: Duration, environment: Environment, gateway: u64) -> Self {
        Self {
            ids: RequestIds::of(gateway),
            open: Lock::default(),
            limit,
            timeout,
            environment,
            unmatched: LogBackoff::default(),
            names_servers: AtomicBool::new(false),
            store: None,
        }
    }

    /// The same for one of several replicas.
    #[must_use]
    pub fn with_store(self, store: Option<Arc<Store>>) -> Self {
        Self { store, ..self }
    }

    /// Whether the responses of a session's client arrive here.
    fn is_at_home(&self, session: &Session) -> bool {
        let home = self.store.as_ref().zip(session.home());
        home.is_none_or(|(store, home)| store.home(home) == store.tag())
    }

    /// The number of pending requests.
    pub fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// Sets whether requests name their server.
    pub fn name_servers(&self, are_named: bool) {
        self.names_servers.store(are_named, Ordering::Relaxed);
    }

    /// The name of `server`, if requests must name it.
    pub fn server_name<'a>(&self, server: &'a str) -> Option<&'a str> {
        self.names_servers.load(Ordering::Relaxed).then_some(server)
    }

    /// The time that a client has to respond.
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Prepares a server's request for the client of `session`. Returns the message to send.
    ///
    /// `None` if the client does not accept it; the server got an error. `names` translates the server's task ids into
    /// the client's.
    pub fn forward(
        self: &Arc<Self>,
        session: &Session,
        (server, request): (&str, &ServerRequest),
        names: &dyn Fn(&str) -> Option<String>,
    ) -> Option<(ForwardedServerRequest, Bytes)> {
        let class = &*session.negotiated.class;
        let method = request.method();
        let supported = if declares_extension_of(class, method) {
            Ok(())
        } else {
            let params = request.params().unwrap_or("{}");
            ServerRequestSupport::from_capabilities(class).ensure_supported(method, params)
        };
        let passed = supported.and_then(|()| self.note(session, (server, request), names));
        match passed {
            Ok(passed) => Some(passed),
            Err(why) => {
                refuse(request, &why);
                None
            }
        }
    }

    fn note(
        self: &Arc<Self>,
        session: &Session,
        (server, request): (&str, &ServerRequest),
        names: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(ForwardedServerRequest, Bytes), RpcError> {
        let id = self.ids.next();
        let token = request.params().and_then(progress_token);
        let params = request.params().map(|params| {
            let params = server_request_support::with_server_name(
                self.server_name(server),
                request.method(),
                params,
            );
            // The gateway does not declare to servers that clients create tasks, so no server may expect one.
            //
            // > Receivers that do not declare the task capability for a request type MUST process requests of that type
            // > normally, ignoring any task-augmentation metadata if present.
            // > (MCP 2025-11-25, basic/utilities/tasks, "Task Support and Handling")
            let params = edit::remove(&params, "task");
            let params = rename_related_task(&params, names);
            match token {
                Some(_) => with_token(&params, id),
                None => params.into_owned(),
            }
        });
        let open = OpenRequest {
            progress: token.map(str::to_owned),
            origin: RequestOrigin::Server(request.clone()),
        };
        self.insert(session, id, open)?;
        let message = message(id, request.method(), params.as_deref());
        Ok((
            self.new_request(session, id, Some(request.clone())),
            message,
        ))
    }

    /// Prepares a request of the gateway itself. Returns the message to send, and the receiver of the response.
    ///
    /// # Errors
    ///
    /// If too many requests are pending, or the client is gone.
    pub fn send(
        self: &Arc<Self>,
        session: &Session,
        (method, params): (&str, Option<&str>),
    ) -> Result<
        (
            ForwardedServerRequest,
            Bytes,
            oneshot::Receiver<ClientResponse>,
        ),
        RpcError,
    > {
        let id = self.ids.next();
        let (sender, answer) = oneshot::channel();
        let open = OpenRequest {
            progress: None,
            origin: RequestOrigin::Gateway(sender),
        };
        self.insert(session, id, open)?;
        let pending = self.new_request(session, id, None);
        Ok((pending, message(id, method, params), answer))
    }

    /// After the session has expired no response can arrive, so the wait is not longer.
    fn new_request(
        self: &Arc<Self>,
        session: &Session,
        id: u64,
        request: Option<ServerRequest>,
    ) -> ForwardedServerRequest {
        let left = session.remaining((self.environment.now)());
        ForwardedServerRequest {
            pending: Arc::clone(self),
            client: session.client,
            id,
            deadline: Instant::now() + self.timeout.min(left),
            request,
        }
    }

    fn insert(&self, session: &Session, id: u64, pending: OpenRequest) -> Result<(), RpcError> {
        if !self.is_at_home(session) {
            let why =
                "the client cannot be asked: the replica that gets its responses cannot be reached";
            return Err(RpcError::internal(why));
        }
        let mut open = self.open.lock();
        // `close_input` is followed by `forget`, which removes pending requests.
        if session.is_input_closed() {
            return Err(cancelled_error());
        }
        if open.len() >= self.limit {
            let why = "too many server requests are waiting for clients; try again later";
            return Err(RpcError::internal(why));
        }
        open.insert((session.client, id), pending);
        Ok(())
    }

    /// Answers the pending requests of a client that has closed its input.
    pub fn forget(&self, client: ClientId) {
        let mut open = self.open.lock();
        let mut later = open.split_off(&(client, 0));
        let others = client
            .checked_add(1)
            .map(|next| later.split_off(&(next, 0)));
        open.extend(others.unwrap_or_default());
        drop(open);
        for pending in later.into_values() {
            match pending.origin {
                RequestOrigin::Server(request) => refuse(&request, &cancelled_error()),
                RequestOrigin::Gateway(sender) => drop(sender.send(Err(error(&cancelled_error())))),
            }
        }
    }

    /// Handles a client's response. Returns `false` if it answers a request of another gateway.
    ///
    /// Late responses are ignored: the request may have been cancelled meanwhile. `names` translates the client's task
    /// ids into the server's.
    pub fn answer(
        &self,
        client: ClientId,
        id: &str,
        outcome: Result<&str, &str>,
        names: &dyn Fn(&str) -> Option<String>,
    ) -> bool {
        let id = own_number(id);
        let open = id.and_then(|id| self.open.lock().remove(&(client, id)));
        let Some(open) = open else {
            return self.is_own(id);
        };
        match (open.origin, checked(outcome)) {
            (RequestOrigin::Server(request), Ok(outcome)) => {
                let result = outcome.map(|result| rename_related_task(result, names));
                request.reply(result.as_deref().map_err(|error| *error));
            }
            (RequestOrigin::Server(request), Err(why)) => refuse(&request, &why),
            (RequestOrigin::Gateway(sender), Ok(outcome)) => {
                // The receiver may be gone.
                let _ = sender.send(outcome.map(str::to_owned).map_err(str::to_owned));
            }
            (RequestOrigin::Gateway(sender), Err(why)) => drop(sender.send(Err(error(&why)))),
        }
        true
    }

    /// Whether a response without a pending request has an id of this gateway: it is late, then. Otherwise it is most
    /// likely meant for another gateway that shares the session.
    ///
    /// Whether the request was one to another client makes no difference.
    fn is_own(&self, id: Option<u64>) -> bool {
        let is_own = id.is_some_and(|id| self.ids.contains(id));
        if is_own {
            debug!(id, "late response of a client ignored");
        } else if let Some(count) = self.unmatched.next() {
            warn!(
                id,
                count, "response to a request that this gateway did not send refused"
            );
        }
        is_own
    }

    /// Forwards progress of the client to the server. Returns whether there is a pending request for it.
    pub fn progress(
        &self,
        client: ClientId,
        params: &str,
        names: &dyn Fn(&str) -> Option<String>,
    ) -> bool {
        let id = edit::get(params, PROGRESS_TOKEN).and_then(own_number);
        let passed = id.and_then(|id| {
            let open = self.open.lock();
            let pending = open.get(&(client, id))?;
            let RequestOrigin::Server(request) = &pending.origin else {
                return None;
            };
            Some((request.clone(), pending.progress.clone()?))
        });
        let Some((request, theirs)) = passed else {
            return false;
        };
        let params = rename_related_task(params, names);
        let params = edit::set(&params, PROGRESS_TOKEN, &theirs);
        request.notify("notifications/progress", &params);
        true
    }

    fn take(&self, client: ClientId, id: u64) -> bool {
        self.open.lock().remove(&(client, id)).is_some()
    }
}

impl ForwardedServerRequest {
    /// Waits until a server's request was answered or cancelled, or the client has taken too long.
    pub async fn over(&self) {
        let settled = async {
            match &self.request {
                Some(request) => request.settled().await,
                None => std::future::pending().await,
            }
        };
        // Both end the request.
        let _ = tokio::time::timeout_at(self.deadline, settled).await;
    }

    /// Ends the request. Returns the cancellation to send, if the client has not responded.
    pub fn cancel(self) -> Option<Bytes> {
        if !self.pending.take(self.client, self.id) {
            return None;
        }
        if let Some(request) = &self.request {
            // If the server cancelled it, the response is dropped.
            refuse(
                request,
                &RpcError::internal("the client did not answer in time"),
            );
        }
        let reason = "the response is no longer needed";
        let params = json!({"requestId": self.id, "reason": reason}).to_string();
        let method = "notifications/cancelled";
        Some(server_message::write_request(None, method, Some(&params)))
    }
}

impl Drop for ForwardedServerRequest {
    fn drop(&mut self) {
        self.pending.take(self.client, self.id);
    }
}

/// The ids of requests.
///
/// # Properties
///
/// None is 0, which some clients treat as missing, and all are smaller than 2³¹. Two gateways rarely use the same ids.
#[derive(Debug)]
struct RequestIds {
    first: u64,
    count: AtomicU64,
}

impl RequestIds {
    /// The ids of one gateway, before they repeat.
    const MOST: u64 = 1 << 20;

    fn of(gateway: u64) -> Self {
        Self {
            first: (1 + gateway % 2047) * Self::MOST,
            count: AtomicU64::new(0),
        }
    }

    fn next(&self) -> u64 {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        self.first + count % Self::MOST
    }

    /// Whether `id` is one of this gateway, issued or not: which ones were issued to others no client learns.
    fn contains(&self, id: u64) -> bool {
        (self.first..self.first + Self::MOST).contains(&id)
    }
}

/// The client's response, if it is valid.
fn checked<'a>(outcome: Result<&'a str, &'a str>) -> Result<Result<&'a str, &'a str>, RpcError> {
    let (Ok(text) | Err(text)) = outcome;
    if text.starts_with('{') {
        return Ok(outcome);
    }
    let why = "the client's response holds neither a `result` nor an `error` that is an object";
    Err(RpcError::internal(why))
}

fn cancelled_error() -> RpcError {
    RpcError::internal("the client is gone")
}

/// Answers a server's request with an error.
pub fn refuse(request: &ServerRequest, why: &RpcError) {
    debug!(
        method = request.method(),
        why = why.message(),
        "request of a server refused"
    );
    request.reply(Err(&error(why)));
}

/// The JSON text of an error.
fn error(failure: &RpcError) -> String {
    server_message::error_json(failure.code(), failure.message())
}

fn progress_token(params: &str) -> Option<&str> {
    edit::get(edit::get(params, "_meta")?, PROGRESS_TOKEN)
}

/// `params` with the gateway's progress token: those of several servers may be the same.
fn with_token(params: &str, id: u64) -> String {
    let meta = edit::get(params, "_meta").unwrap_or("{}");
    let meta = edit::set(meta, PROGRESS_TOKEN, &id.to_string());
    edit::set(params, "_meta", &meta).into_owned()
}

fn message(number: u64, name: &str, params: Option<&str>) -> Bytes {
    let id = number.to_string();
    let method = json::string(name);
    let mut members = vec![("jsonrpc", r#""2.0""#), ("id", &*id), ("method", &*method)];
    members.extend(params.map(|params| ("params", params)));
    json::object(&members).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_whether_it_is_of_this_gateway() {
        let (here, there) = (RequestIds::of(7), RequestIds::of(8));
        let ids = [here.next(), here.next()];
        assert!(
            ids.iter()
                .all(|id| here.contains(*id) && !there.contains(*id))
        );
        assert!(here.contains(ids[1] + 1), "issued or not");
        assert!(!here.contains(ids[0] - 1) && !here.contains(0));
        assert!(RequestIds::of(u64::MAX).next() > 0);
        here.count.store(RequestIds::MOST, Ordering::Relaxed);
        assert_eq!(here.next(), ids[0], "they come again");
        assert!(
            here.contains(ids[0] + RequestIds::MOST - 1) && ids[0] + RequestIds::MOST < 1 << 31
        );
        assert!(
            (0..u64::from(u16::MAX)).all(|n| RequestIds::of(n).first + RequestIds::MOST <= 1 << 31)
        );
    }
}
