//! Sending: one request with its selector, and what happens when nobody waits for the answer.

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
        let handle = self.start(request, variant).await?;
        let mut unfinished = Unfinished::new(self.peer(), &handle.id);
        let result = handle.await_response().await;
        unfinished.finish();
        result.map_err(|error| Error::of(error, variant))
    }

    /// Sends `request`, and once more without the selector if the server refuses that.
    ///
    /// Says which variant the result came from. Only for what can be asked twice without harm, and
    /// nothing that holds a cursor.
    pub(super) async fn send_or_fall_back(
        &self,
        request: ClientRequest,
        variant: Option<&VariantId>,
    ) -> Result<(ServerResult, Answered), Error> {
        match self.send(request.clone(), variant).await {
            Ok(result) => Ok((result, Answered::AsAsked)),
            Err(error) if warn_of_refusal(&error) => {
                let result = self.send(request, None).await?;
                Ok((result, Answered::ByTheDefault))
            }
            Err(error) => Err(error),
        }
    }

    /// Sends `request`, selecting `variant`.
    pub(super) async fn start(
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

/// Whether `error` is the refusal of a variant; then it is logged, since the caller may not see it.
pub(super) fn warn_of_refusal(error: &Error) -> bool {
    let Error::Refused { variant, .. } = error else {
        return false;
    };
    tracing::warn!(%variant, "variant refused by the server, asked again without");
    true
}

/// Which variant answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Answered {
    /// The one that the request selected.
    AsAsked,
    /// The server's default, since it refused the selected one.
    ByTheDefault,
}

/// Cancels a request whose answer nobody waits for any more, when dropped before it is finished.
#[derive(Debug)]
pub(super) struct Unfinished {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Unfinished {
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

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Outside a runtime the connection has ended, and with it the request.
        let (Some(id), Ok(runtime)) = (self.id.take(), Handle::try_current()) else {
            return;
        };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = "nobody waits for the answer".to_owned();
            let cancelled = CancelledNotificationParam::new(Some(id), Some(reason));
            let notification = CancelledNotification::new(cancelled);
            // A connection that has ended needs no cancelling.
            let _ = peer.send_notification(notification.into()).await;
        });
    }
}
