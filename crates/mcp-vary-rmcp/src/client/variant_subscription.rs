//! Subscriptions to changes in one variant of a modern server.

use mcp_vary::variant::VariantId;
use rmcp::model::{
    ClientRequest, ServerResult, SubscriptionFilter, SubscriptionsListenRequest,
    SubscriptionsListenRequestParams,
};
use rmcp::service::{RequestHandle, RoleClient, ServiceError};
use tokio::sync::watch;

use super::Client;
use super::cache::Acknowledged;
use super::error::Error;
use super::request::CancelOnDrop;

/// A subscription to changes in one variant. Dropping it ends it.
#[derive(Debug)]
pub struct VariantSubscription {
    request: RequestHandle<RoleClient>,
    unfinished: CancelOnDrop,
    acknowledged: SubscriptionFilter,
    variant: Option<VariantId>,
}

impl VariantSubscription {
    pub(super) async fn start(
        client: &Client,
        filter: SubscriptionFilter,
        variant: Option<&VariantId>,
    ) -> Result<Self, Error> {
        let changes = client.state.cache.acknowledged.subscribe();
        let params = SubscriptionsListenRequestParams::new(filter);
        let request = SubscriptionsListenRequest::new(params);
        let request = ClientRequest::SubscriptionsListenRequest(request);
        let request = client.start_request(request, variant).await?;
        let mut listening = Self {
            unfinished: CancelOnDrop::new(client.peer(), &request.id),
            request,
            acknowledged: SubscriptionFilter::default(),
            variant: variant.cloned(),
        };
        let begun = listening.wait_acknowledged(changes);
        listening.acknowledged = match client.timeout {
            None => begun.await?,
            Some(timeout) => match tokio::time::timeout(timeout, begun).await {
                Ok(begun) => begun?,
                Err(_) => return Err(ServiceError::Timeout { timeout }.into()),
            },
        };
        Ok(listening)
    }

    /// Waits for the acknowledgement, and returns the accepted filter.
    async fn wait_acknowledged(
        &mut self,
        mut changes: watch::Receiver<Acknowledged>,
    ) -> Result<SubscriptionFilter, Error> {
        let id = self.request.id.to_string();
        tokio::select! {
            biased;
            ended = self.wait_end() => {
                ended?;
                Err(ServiceError::UnexpectedResponse.into())
            }
            filters = changes.wait_for(|filters| filters.contains_key(&id)) => {
                let known = filters.map_err(|_| ServiceError::TransportClosed)?;
                Ok(known.get(&id).cloned().unwrap_or_default())
            }
        }
    }

    /// The filter that the server accepted.
    pub fn acknowledged(&self) -> &SubscriptionFilter {
        &self.acknowledged
    }

    /// The variant of the subscription; `None` for the server's default.
    pub fn variant(&self) -> Option<&VariantId> {
        self.variant.as_ref()
    }

    /// Waits until the server ends the subscription.
    ///
    /// # Errors
    ///
    /// When it ends in another way than by the server's result.
    pub async fn closed(mut self) -> Result<(), Error> {
        self.wait_end().await
    }

    /// Must not be called again after it has returned.
    async fn wait_end(&mut self) -> Result<(), Error> {
        let ended = (&mut self.request.rx).await;
        self.unfinished.finish();
        match ended.map_err(|_| ServiceError::TransportClosed)? {
            Ok(ServerResult::SubscriptionsListenResult(_)) => Ok(()),
            Ok(_) => Err(ServiceError::UnexpectedResponse.into()),
            Err(error) => Err(Error::from_service(error, self.variant.as_ref())),
        }
    }
}
