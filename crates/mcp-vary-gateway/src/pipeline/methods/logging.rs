//! The log level of a session, and of one modern request.

use futures_util::future::join_all;
use mcp_vary_wire::era;
use mcp_vary_wire::log_level::level_from_name;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;

use super::RequestContext;
use crate::pipeline::method_action::method_not_found;
use crate::pipeline::methods::Dispatch;

impl RequestContext<'_> {
    pub(crate) async fn set_level(&self) -> Result<Dispatch, RpcError> {
        let name = self.request.params.string("level")?;
        let level = level_from_name(&name).ok_or_else(|| {
            RpcError::invalid_params("`level` is not a log level; use one of debug to emergency")
        })?;
        let sources: Vec<_> = self.visible_sources().collect();
        join_all(
            sources
                .iter()
                .map(|it| it.connection.try_set_log_level(level)),
        )
        .await;
        if !self.catalog.has_capability("logging") {
            return Err(method_not_found(self.request.method));
        }
        if let Some(session) = &self.client.session {
            session.set_log_level(level);
        }
        match sources.as_slice() {
            [only] if !only.is_starting() => only.connection.set_log_level(level).await?,
            // A server that is starting or down gets the level with its next call.
            several => drop(
                join_all(
                    several
                        .iter()
                        .map(|it| it.connection.set_log_level_if_supported(level)),
                )
                .await,
            ),
        }
        Ok(self.answer("{}"))
    }

    /// The least severe level that the client wants logged for this request.
    pub(super) fn log_level(&self) -> Result<Option<u8>, RpcError> {
        if self.client.era() == Era::Legacy {
            return Ok(self
                .client
                .session
                .as_ref()
                .and_then(|session| session.log_level()));
        }
        if !self.request.params.meta.contains(era::LOG_LEVEL) {
            return Ok(None);
        }
        let level = self
            .request
            .params
            .meta
            .get_str(era::LOG_LEVEL)
            .and_then(|name| level_from_name(&name));
        let bad =
            || RpcError::invalid_params(format!("`_meta.{}` is not a log level", era::LOG_LEVEL));
        level.map(Some).ok_or_else(bad)
    }
}
