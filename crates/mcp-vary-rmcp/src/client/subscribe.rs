//! Subscriptions to resources in legacy sessions.

#![expect(
    deprecated,
    reason = "the SDK deprecates what only legacy sessions have; they are served as well"
)]

use rmcp::model::{
    ClientRequest, SubscribeRequest, SubscribeRequestParams, UnsubscribeRequest,
    UnsubscribeRequestParams,
};

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
        let mut subscriptions = self.client().state.subscriptions.lock().await;
        self.client().send_unsubscribe(uri).await?;
        subscriptions.remove(uri);
        Ok(())
    }
}

impl Client {
    async fn send_unsubscribe(&self, uri: &str) -> Result<(), Error> {
        let params = UnsubscribeRequestParams::new(uri);
        let request = ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(params));
        self.send(request, None).await.map(drop)
    }
}
