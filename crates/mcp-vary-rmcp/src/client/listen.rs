//! Listening: a modern subscription in one variant.

use mcp_vary::variant::VariantId;
use rmcp::model::{
    ClientRequest, ServerResult, SubscriptionFilter, SubscriptionsListenRequest,
    SubscriptionsListenRequestParams,
};
use rmcp::service::{RequestHandle, RoleClient, ServiceError};

use super::Client;
use super::error::Error;
use super::request::Unfinished;

/// A subscription in one variant. Dropping it ends it.
#[derive(Debug)]
pub struct Listening {
    request: RequestHandle<RoleClient>,
    unfinished: Unfinished,
    acknowledged: SubscriptionFilter,
    variant: Option<VariantId>,
}

impl Listening {
    pub(super) async fn start(
        client: &Client,
        filter: SubscriptionFilter,
        variant: Option<&VariantId>,
    ) -> Result<Self, Error> {
        let mut acknowledged = client.shared.memory.acknowledged.subscribe();
        let params = SubscriptionsListenRequestParams::new(filter);
        let request = SubscriptionsListenRequest::new(params);
        let request = ClientRequest::SubscriptionsListenRequest(request);
        let mut request = client.start(request, variant).await?;
        let unfinished = Unfinished::new(client.peer(), &request.id);
        let id = request.id.to_string();
        tokio::select! {
            biased;
            ended = &mut request.rx => {
                let ended = ended.map_err(|_| ServiceError::TransportClosed)?;
                match ended {
                    Ok(_) => Err(ServiceError::UnexpectedResponse.into()),
                    Err(error) => Err(Error::of(error, variant)),
                }
            }
            filters = acknowledged.wait_for(|filters| filters.contains_key(&id)) => {
                let filters = filters.map_err(|_| ServiceError::TransportClosed)?;
                let acknowledged = filters.get(&id).cloned().unwrap_or_default();
                let variant = variant.cloned();
                Ok(Self { request, unfinished, acknowledged, variant })
            }
        }
    }

    /// What the server agreed to tell.
    #[must_use]
    pub fn acknowledged(&self) -> &SubscriptionFilter {
        &self.acknowledged
    }

    /// The variant whose changes are told; none for the server's default.
    #[must_use]
    pub fn variant(&self) -> Option<&VariantId> {
        self.variant.as_ref()
    }

    /// Waits until the server ends the subscription.
    ///
    /// # Errors
    ///
    /// When it ends otherwise than by the server's result.
    pub async fn ended(&mut self) -> Result<(), Error> {
        let ended = (&mut self.request.rx).await;
        self.unfinished.finish();
        match ended.map_err(|_| ServiceError::TransportClosed)? {
            Ok(ServerResult::SubscriptionsListenResult(_)) => Ok(()),
            Ok(_) => Err(ServiceError::UnexpectedResponse.into()),
            Err(error) => Err(Error::of(error, self.variant.as_ref())),
        }
    }
}
