//! Sends one request with its selector, and cancels it if the caller stops waiting.

use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::variant::VariantId;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientRequest, RequestId, RequestMetaObject,
    ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient};
use serde_json::Value;
use tokio::runtime::Handle;

use super::Client;
use super::error::Error;

impl Client {
    /// Sends `request`, selecting `variant`, and waits for its result.
    pub(super) async fn send(
        &self,
        request: ClientRequest,
        variant: Option<&VariantId>,
    ) -> Result<ServerResult, Error> {
        let handle = self.start_request(request, variant).await?;
        let mut unfinished = CancelOnDrop::new(self.peer(), &handle.id);
        let result = handle.await_response().await;
        unfinished.finish();
        result.map_err(|error| Error::from_service(error, variant))
    }

    /// Sends `request`, and once more without the selector if the server rejects it.
    ///
    /// Returns which variant answered. Only for requests that are safe to repeat and contain no
    /// cursor.
    pub(super) async fn send_or_fall_back(
        &self,
        request: ClientRequest,
        variant: Option<&VariantId>,
    ) -> Result<(ServerResult, AnsweredBy), Error> {
        match self.send(request.clone(), variant).await {
            Ok(result) => Ok((result, AnsweredBy::SelectedVariant)),
            Err(error) if log_rejection(&error) => {
                let result = self.send(request, None).await?;
                Ok((result, AnsweredBy::DefaultVariant))
            }
            Err(error) => Err(error),
        }
    }

    /// Sends `request`, selecting `variant`.
    pub(super) async fn start_request(
        &self,
        request: ClientRequest,
        variant: Option<&VariantId>,
    ) -> Result<RequestHandle<RoleClient>, Error> {
        let mut meta = RequestMetaObject::new();
        if let Some(id) = variant {
            meta.insert(SERVER_VARIANT_META.to_owned(), Value::from(id.as_str()));
        }
        let mut options = PeerRequestOptions::no_options().with_meta(meta);
        options.timeout = self.timeout;
        Ok(self
            .peer()
            .send_request_with_option(request, options)
            .await?)
    }
}

/// Returns whether `error` is the rejection of a variant, and logs it, since the caller may not see
/// it.
pub(super) fn log_rejection(error: &Error) -> bool {
    let Error::VariantRejected { variant, .. } = error else {
        return false;
    };
    tracing::warn!(%variant, "variant rejected by the server, request repeated without a selector");
    true
}

/// Which variant answered a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum AnsweredBy {
    /// The variant that the request selected.
    SelectedVariant,
    /// The server's default, because the server rejected the selected variant.
    DefaultVariant,
}

/// Cancels a request when dropped before its response has arrived.
#[derive(Debug)]
pub(super) struct CancelOnDrop {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl CancelOnDrop {
    pub(super) fn new(peer: &Peer<RoleClient>, id: &RequestId) -> Self {
        Self {
            peer: peer.clone(),
            id: Some(id.clone()),
        }
    }

    pub(super) fn finish(&mut self) {
        self.id = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        // Outside of a runtime the connection has ended, and the request with it.
        let runtime = Handle::try_current().ok();
        let Some((id, runtime)) = self.id.take().zip(runtime) else {
            return;
        };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = "nobody waits for the answer".to_owned();
            let cancelled = CancelledNotificationParam::new(Some(id), Some(reason));
            let notification = CancelledNotification::new(cancelled);
            // If the connection has ended, there is nothing to cancel.
            let _ = peer.send_notification(notification.into()).await;
        });
    }
}
