//! Sets the log level of a legacy server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_vary_wire::log_level::level_params;
use mcp_vary_wire::method_names::SET_LEVEL;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use tokio::time::Instant;
use tracing::warn;

use crate::connection::UpstreamConnection;
use crate::error::without_server;
use crate::message::Request;
use crate::supervised::SupervisedConnection;

/// How long the server may take to answer.
const LIMIT: Duration = Duration::from_secs(10);
/// How long a server may take that may not have the method.
const UNDECLARED_LIMIT: Duration = Duration::from_secs(1);
/// How long calls do not retry after the server did not set its level.
const RETRY: Duration = Duration::from_secs(60);

impl SupervisedConnection {
    /// Makes a legacy server that declares `logging` send log messages from `level` on, unless it does so already.
    ///
    /// The server has one level for all clients of the gateway, so it gets the least severe one. The gateway filters the
    /// messages for each client.
    pub async fn set_log_level(&self, level: u8) -> Result<(), RpcError> {
        let upstream = self.ready().await?;
        let state = upstream.log_level();
        let is_confirmed = || state.confirmed.load(Ordering::Acquire) <= level;
        if is_confirmed() {
            return Ok(());
        }
        let handshake = upstream.handshake();
        let may_log = || {
            handshake.has_capability("logging")
                || self.server_facts().undeclared_methods().has(SET_LEVEL) == Some(true)
        };
        if handshake.era() == Era::Modern || !may_log() {
            return Ok(());
        }
        let mut failed = state.pending.lock().await;
        if is_confirmed() {
            return Ok(());
        }
        let limited = tokio::time::timeout(LIMIT, set_level(&upstream, level)).await;
        let set = limited.unwrap_or_else(|_| {
            let server = &self.config().name;
            Err(RpcError::internal(format!(
                "server `{server}` did not answer logging/setLevel"
            )))
        });
        *failed = set.is_err().then(Instant::now);
        set?;
        state.confirmed.store(level, Ordering::Release);
        Ok(())
    }

    /// Sends the level to a legacy server that does not declare `logging`, unless it is known whether it has the method.
    /// The result is recorded.
    pub async fn try_set_log_level(&self, level: u8) {
        let Some(upstream) = self.current() else {
            return;
        };
        let handshake = upstream.handshake();
        let learned = self.server_facts();
        let is_unasked = || learned.undeclared_methods().has(SET_LEVEL).is_none();
        if handshake.era() == Era::Modern || handshake.has_capability("logging") || !is_unasked() {
            return;
        }
        let _asking = upstream.log_level().pending.lock().await;
        if !is_unasked() {
            return;
        }
        let answer = tokio::time::timeout(UNDECLARED_LIMIT, set_level(&upstream, level)).await;
        let has = matches!(answer, Ok(Ok(())));
        if has {
            upstream
                .log_level()
                .confirmed
                .store(level, Ordering::Release);
        }
        learned.undeclared_methods().note(SET_LEVEL, has);
    }

    /// Like [`set_log_level`](Self::set_log_level) on behalf of a call: failures are logged only, and it does not wait for a
    /// pending request or retry one that has just failed.
    pub async fn set_log_level_if_supported(&self, level: u8) {
        let Some(upstream) = self.current() else {
            return;
        };
        match upstream.log_level().pending.try_lock().as_deref() {
            Ok(Some(failed)) if failed.elapsed() < RETRY => return,
            Ok(_) => {}
            Err(_) => return,
        }
        if let Err(failure) = self.set_log_level(level).await {
            let server = &self.config().name;
            let error = without_server(failure.message(), server);
            warn!(server, error, "the server's log level was not set");
        }
    }
}

async fn set_level(upstream: &UpstreamConnection, level: u8) -> Result<(), RpcError> {
    let request = Request::new(SET_LEVEL, Some(level_params(level)));
    let exchange = upstream.request(request).await?;
    match exchange.answer().await?.outcome() {
        Ok(_) => Ok(()),
        Err(error) => Err(RpcError::from_upstream_or_internal(error)),
    }
}
