//! Subscriptions to resources in legacy sessions.

#![expect(deprecated, reason = "only legacy sessions have it; they are served")]

use mcp_vary::variant::VariantId;
use rmcp::model::{
    ClientRequest, ErrorCode, SubscribeRequest, SubscribeRequestParams, UnsubscribeRequest,
    UnsubscribeRequestParams,
};
use rmcp::service::ServiceError;

use super::error::Error;
use super::{Client, VariantClient};

impl VariantClient {
    /// Subscribes to a resource in a legacy session. For modern servers use
    /// [`listen`](Self::listen).
    ///
    /// "If a client wants notifications for the same resource URI in a different variant, it MUST
    /// unsubscribe from the current subscription": if necessary, this is done first.
    ///
    /// # Errors
    ///
    /// When a request fails, or the variant is rejected.
    pub async fn subscribe(&self, uri: impl Into<String>) -> Result<(), Error> {
        let uri = uri.into();
        let variant = self.variant();
        let mut subscriptions = self.client().state.subscriptions.lock().await;
        if let Some(other) = subscriptions.get(&uri)
            && other.as_ref() != variant
        {
            self.client().send_unsubscribe(&uri).await?;
            subscriptions.remove(&uri);
        }
        self.client().send_subscribe(&uri, variant).await?;
        subscriptions.insert(uri, variant.cloned());
        Ok(())
    }

    /// Ends the subscription to a resource in a legacy session, whichever variant it is in.
    ///
    /// # Errors
    ///
    /// When the request fails.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), Error> {
        let mut subscriptions = self.client().state.subscriptions.lock().await;
        self.client().send_unsubscribe(uri).await?;
        subscriptions.remove(uri);
        Ok(())
    }
}

/// A subscription that the server no longer accepts.
#[derive(Debug)]
#[non_exhaustive]
pub struct LostSubscription {
    /// The resource.
    pub uri: String,
    /// The variant in which it was subscribed; `None` for the server's default.
    pub variant: Option<VariantId>,
    /// Why the server does not accept it.
    pub error: Error,
}

impl Client {
    /// Revalidates the subscriptions of a legacy session after its lists of resources changed, and
    /// returns those that are lost.
    ///
    /// "Clients SHOULD handle `list_changed` by revalidating subscriptions": call this when the
    /// handler receives `notifications/resources/list_changed`. Each subscription in an affected
    /// variant is requested again, which does not change one that still exists. Without a change
    /// since the last call no request is sent.
    ///
    /// # Errors
    ///
    /// When a request fails for another reason than that the resource or the variant does not
    /// exist. The next call continues.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_rmcp::client::{Client, Error};
    ///
    /// async fn on_list_changed(client: &Client) -> Result<(), Error> {
    ///     for lost in client.revalidate_subscriptions().await? {
    ///         println!("no more updates of {}", lost.uri);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub async fn revalidate_subscriptions(&self) -> Result<Vec<LostSubscription>, Error> {
        let mut subscriptions = self.state.subscriptions.lock().await;
        let changes = self.state.cache.take_changed_resources();
        let known = subscriptions.iter();
        let changed = known.filter(|(_, variant)| changes.affect(variant));
        let affected: Vec<_> = changed
            .map(|(uri, variant)| (uri.clone(), variant.clone()))
            .collect();
        let mut lost: Vec<LostSubscription> = Vec::new();
        for (uri, variant) in affected {
            match self.send_subscribe(&uri, variant.as_ref()).await {
                Ok(()) => {}
                Err(error) if is_missing(&error) => {
                    subscriptions.remove(&uri);
                    lost.push(LostSubscription {
                        uri,
                        variant,
                        error,
                    });
                }
                Err(error) => {
                    // The next call finds them lost again, and returns them.
                    subscriptions.extend(lost.into_iter().map(|lost| (lost.uri, lost.variant)));
                    self.state.cache.return_changed_resources(changes);
                    return Err(error);
                }
            }
        }
        Ok(lost)
    }

    async fn send_subscribe(&self, uri: &str, variant: Option<&VariantId>) -> Result<(), Error> {
        let request = SubscribeRequest::new(SubscribeRequestParams::new(uri));
        let request = ClientRequest::SubscribeRequest(request);
        self.send(request, variant).await.map(drop)
    }

    async fn send_unsubscribe(&self, uri: &str) -> Result<(), Error> {
        let params = UnsubscribeRequestParams::new(uri);
        let request = ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(params));
        self.send(request, None).await.map(drop)
    }
}

/// Whether the server answered that the resource or the variant does not exist.
fn is_missing(error: &Error) -> bool {
    match error {
        Error::VariantRejected { .. } => true,
        Error::Service(ServiceError::McpError(error)) => {
            [ErrorCode::INVALID_PARAMS, ErrorCode::RESOURCE_NOT_FOUND].contains(&error.code)
        }
        _ => false,
    }
}
