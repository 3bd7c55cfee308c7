//! Subscribing to resources in a legacy session.

#![expect(
    deprecated,
    reason = "the SDK deprecates what only legacy sessions have; they are served as well"
)]

use rmcp::model::{
    ClientRequest, SubscribeRequest, SubscribeRequestParams, UnsubscribeRequest,
    UnsubscribeRequestParams,
};

use super::error::Error;
use super::{Client, View};

impl View {
    /// Subscribes to a resource in a legacy session; modern servers have [`listen`](Self::listen).
    ///
    /// "If a client wants notifications for the same resource URI in a different variant, it MUST
    /// unsubscribe from the current subscription": done first where it is so.
    ///
    /// # Errors
    ///
    /// When a request fails, or the variant is refused.
    pub async fn subscribe(&self, uri: impl Into<String>) -> Result<(), Error> {
        let uri = uri.into();
        let variant = self.variant();
        let mut subscriptions = self.client().shared.subscriptions.lock().await;
        if let Some(other) = subscriptions.get(&uri)
            && other.as_ref() != variant
        {
            self.client().end_subscription(&uri).await?;
            subscriptions.remove(&uri);
        }
        let request = SubscribeRequest::new(SubscribeRequestParams::new(uri.clone()));
        let request = ClientRequest::SubscribeRequest(request);
        self.client().send(request, variant).await?;
        subscriptions.insert(uri, variant.cloned());
        Ok(())
    }

    /// Ends the subscription to a resource in a legacy session, whichever variant it is in.
    ///
    /// # Errors
    ///
    /// When the request fails.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), Error> {
        let mut subscriptions = self.client().shared.subscriptions.lock().await;
        self.client().end_subscription(uri).await?;
        subscriptions.remove(uri);
        Ok(())
    }
}

impl Client {
    async fn end_subscription(&self, uri: &str) -> Result<(), Error> {
        let params = UnsubscribeRequestParams::new(uri);
        let request = ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(params));
        self.send(request, None).await.map(drop)
    }
}
