//! The client of a pair of streams: the session that `initialize` opened, or each request by itself.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::{self, Reply, RpcError};
use mcp_vary_wire::revision::{Era, Revision};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::StdioConnection;
use crate::frontend::recording::{ReceivedRequest, recorded};
use crate::pipeline::clients::{legacy_client, modern_client, wait_for_servers};
use crate::pipeline::methods::initialize::initialize;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::Session;
use crate::session::caller::Caller;
use crate::session::client::Client;

/// The session that `initialize` opened.
pub(super) struct LegacySession {
    pub(super) session: Arc<Session>,
    /// The params of `initialize`, to initialize again when a variant of the session was removed.
    params: String,
    /// Stops the writer of the session's messages.
    pub(super) is_input_closed: Option<DropGuard>,
}

impl StdioConnection {
    pub(super) async fn initialize(
        &mut self,
        setup: &ConfigSnapshot,
        caller: &Caller,
        id: &str,
        (params, written): (&Params<'_>, &str),
    ) {
        if self.legacy.is_some() {
            let why = "`initialize` was sent before; one connection is one session";
            let failure = RpcError::invalid_request(why);
            return self.refuse(caller, id, &failure).await;
        }
        match initialize(setup, caller, params).await {
            Ok((fixed, result)) => {
                let session = setup.services.sessions.open_stdio(fixed);
                let reply = response::result(id, result.as_bytes());
                if let Some(record) = &caller.record {
                    record.use_variant(Some(session.client), || None);
                    record.finish(&reply);
                }
                self.write_response(reply.body).await;
                session.remember_principal(setup.config.stdio_principal.as_ref());
                setup.notify_session(&session).await;
                self.legacy = Some(LegacySession {
                    is_input_closed: self.forward_session_messages(&session),
                    session,
                    params: written.to_owned(),
                });
            }
            Err(failure) => self.refuse(caller, id, &failure).await,
        }
    }

    /// Answers a request with an error, which is its recorded outcome.
    pub(super) async fn refuse(&self, caller: &Caller, id: &str, failure: &RpcError) {
        // The era decides on the HTTP status alone.
        let reply = failure.reply(Some(id), Era::Modern);
        if let Some(record) = &caller.record {
            record.finish(&reply);
        }
        self.write_response(reply.body).await;
    }

    /// The client at the other end of the streams.
    #[expect(clippy::unused_self, reason = "it is the caller of this connection")]
    pub(super) fn caller(&self, setup: &ConfigSnapshot) -> Caller {
        Caller::of_stdio(setup.config.stdio_principal.as_ref())
    }

    /// The client at the other end of the streams, with the record of its request if there is an audit log.
    ///
    /// # Errors
    ///
    /// The response to a request that cannot be recorded.
    pub(super) async fn recorded(
        &self,
        setup: &ConfigSnapshot,
        message: &Message<'_>,
        params: &Params<'_>,
        length: usize,
    ) -> Result<Caller, Reply> {
        let caller = self.caller(setup);
        let received = ReceivedRequest {
            era: match params.is_modern() {
                true => Era::Modern,
                false => Era::Legacy,
            },
            message,
            params,
            bytes: None,
            length,
        };
        Ok(match recorded(setup, &caller, &received).await? {
            Cow::Owned(recorded) => recorded,
            Cow::Borrowed(_) => caller,
        })
    }

    /// The client of a request: the session, or what the request declares.
    pub(super) async fn client(
        &mut self,
        setup: &ConfigSnapshot,
        caller: &Caller,
        method: &str,
        params: &Params<'_>,
    ) -> Result<(Client, Arc<Session>), RpcError> {
        if params.is_modern() {
            wait_for_servers(setup, method, caller, params).await;
            let mut client = modern_client(setup, method, caller, params)?;
            client.id = self.modern.client;
            client.connection = Some(client.id);
            return Ok((client, Arc::clone(&self.modern)));
        }
        if let Some(session) = self.session(setup).await? {
            let client = legacy_client(setup, &session, caller, params)?;
            return Ok((client, session));
        }
        if method == "ping" {
            let mut client = legacy_client(setup, &self.modern, caller, params)?;
            client.revision = Revision::LATEST_LEGACY;
            return Ok((client, Arc::clone(&self.modern)));
        }
        Err(RpcError::invalid_params(
            "send `initialize` first, or name the protocol version and the client's capabilities in `_meta`",
        ))
    }

    /// The session that `initialize` opened; `None` before that.
    ///
    /// # Errors
    ///
    /// When one of its variants was removed. Over HTTP the client would open a new session. Here it cannot, so it gets
    /// one error and is then served as if it had.
    pub(super) async fn session(
        &mut self,
        setup: &ConfigSnapshot,
    ) -> Result<Option<Arc<Session>>, RpcError> {
        let Some(legacy) = &self.legacy else {
            return Ok(None);
        };
        if setup.placements.order_of(&legacy.session).is_some() {
            return Ok(Some(Arc::clone(&legacy.session)));
        }
        let params = Params::read(Some(&legacy.params))?;
        let (fixed, _) = initialize(setup, &self.caller(setup), &params).await?;
        let session = legacy.session.renegotiated(fixed);
        session.remember_principal(setup.config.stdio_principal.as_ref());
        setup.notify_session(&session).await;
        let anew = LegacySession {
            params: legacy.params.clone(),
            is_input_closed: self.forward_session_messages(&session),
            session,
        };
        self.former_session
            .retain(|session| Arc::strong_count(session) > 1);
        let former = self.legacy.replace(anew);
        self.former_session
            .extend(former.map(|former| former.session));
        Err(RpcError::invalid_request(REINITIALIZED))
    }

    /// Writes the messages of `session` that belong to no request, until the guard is dropped.
    fn forward_session_messages(&self, session: &Arc<Session>) -> Option<DropGuard> {
        let messages = session.open_stream(1)?;
        let (silent, gone) = (CancellationToken::new(), self.client_gone.clone());
        let (lines, guard) = (self.lines.clone(), silent.clone().drop_guard());
        let next = async move || {
            tokio::select! {
                biased;
                message = messages.next() => message,
                () = silent.cancelled() => None,
            }
        };
        self.tasks.spawn(async move {
            while let Some(message) = next().await {
                tokio::select! {
                    _ = lines.send(message) => {}
                    () = gone.cancelled() => return,
                }
            }
        });
        Some(guard)
    }
}

/// The error for the first request after a variant of its session was removed from the configuration.
const REINITIALIZED: &str = "the variants of this session are no longer offered; it continues as if `initialize` had just been \
     sent: list what there is now, then ask again";
