//! Subscriptions in a variant: `resources/subscribe`, `resources/unsubscribe`, `subscriptions/listen`.
#![expect(deprecated, reason = "clients still use legacy subscriptions")]

use std::sync::Arc;

use mcp_vary::error::{Era, Identifier};
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::variant::VariantId;
use rmcp::ErrorData;
use rmcp::model::{
    ClientRequest, ErrorCode, SubscribeRequest, SubscribeRequestParams, SubscriptionFilter,
    SubscriptionsListenRequest, SubscriptionsListenRequestParams, UnsubscribeRequest,
    UnsubscribeRequestParams,
};
use rmcp::service::SubscriptionContext;
use serde_json::json;

use super::active_variant::ActiveVariant;
use super::errors::with_active_variant;
use super::resource_watch::ResourceWatch;
use super::rules::{Context, McpResult};
use super::session::BindError;
use super::tagging_peer::{NotificationSender, tagging_peer};
use super::vary_server::VaryServer;

impl VaryServer {
    /// Subscribes the client in the selected variant, and watches the resource.
    pub(super) async fn subscribe_in_variant(
        &self,
        request: SubscribeRequestParams,
        mut context: Context,
    ) -> McpResult<()> {
        let client = context.peer.clone();
        let active = self.begin_request(&mut context)?;
        let uri = request.uri.clone();
        let missing = Identifier::SubscribedResource(uri.clone());
        active
            .handler
            .check_uri_visible(&missing, Era::Legacy, active.variant)?;
        let is_new = match active.variant {
            None => false,
            Some(variant) => self
                .sessions
                .bind_subscription(&client, &uri, variant)
                .map_err(|error| bind_error(&error, &uri, variant))?,
        };
        let request = ClientRequest::SubscribeRequest(SubscribeRequest::new(request));
        let answer = active.handler.inner.request(request, context.clone()).await;
        match self.sessions.watch_for(&client, &active) {
            Some(watch) if answer.is_ok() => watch.add(&[uri], &client, &context).await,
            _ if answer.is_err() && is_new => {
                drop(self.sessions.remove_subscription(&client, &uri))
            }
            _ => {}
        }
        let about = |error| active.describe_error(error, missing, Era::Legacy);
        answer.map(drop).map_err(about).map_err(|mut error| {
            // Only `resources/read` has an error code of its own for unknown resources.
            if active.variant.is_some() && error.code == ErrorCode::RESOURCE_NOT_FOUND {
                error.code = ErrorCode::INVALID_PARAMS;
            }
            error
        })
    }

    /// Unsubscribes the client in the variant of its subscription.
    pub(super) async fn unsubscribe_in_variant(
        &self,
        request: UnsubscribeRequestParams,
        mut context: Context,
    ) -> McpResult<()> {
        // Unsubscribe in the variant of the subscription, whatever the request selects.
        if let Some(variant) = self
            .sessions
            .remove_subscription(&context.peer, &request.uri)
        {
            context
                .meta
                .insert(SERVER_VARIANT_META.to_owned(), json!(variant));
        }
        let active = self.begin_request(&mut context)?;
        let request = ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(request));
        let answer = active.handler.inner.request(request, context).await;
        match active.variant {
            // "Always succeeds": the client is not subscribed afterwards in any case.
            Some(_) => Ok(()),
            None => answer.map(drop),
        }
    }

    /// Serves a notification stream in the selected variant.
    pub(super) async fn listen_in_variant(&self, context: SubscriptionContext) -> McpResult<()> {
        let mut inner = context.request_context().clone();
        self.check_required(&inner)?;
        let active = self.select_variant(&inner)?;
        let Some(variant) = active.variant else {
            return active.handler.inner.listen(context).await;
        };
        inner.extensions.insert(ActiveVariant(variant.clone()));
        let watch = Arc::new(ResourceWatch::new(active.handler.clone()));
        let mut accepted = context.accepted().clone();
        if let Some(uris) = &accepted.resource_subscriptions {
            watch.add(uris, &inner.peer, &inner).await;
            // The watch needs it; the client receives only what it asked for.
            accepted.resources_list_changed = Some(true);
        }
        let sender = NotificationSender::Stream(context.sink().clone());
        let peer = tagging_peer(&inner.peer, sender, variant.clone(), watch);
        inner.peer = peer.peer().clone();
        let accepted = SubscriptionsListenRequestParams::new(accepted);
        let request = SubscriptionsListenRequest::new(accepted);
        let request = ClientRequest::SubscriptionsListenRequest(request);
        match active.handler.inner.request(request, inner).await {
            Ok(_) => Ok(()),
            // Another variant's handler has notifications to send, this one has none.
            Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                context.cancelled().await;
                Ok(())
            }
            Err(error) => Err(with_active_variant(error, Some(variant))),
        }
    }
}

fn bind_error(error: &BindError, uri: &str, active: &VariantId) -> ErrorData {
    match error {
        BindError::OtherVariant(bound) => ErrorData::invalid_params(
            "Resource is subscribed in another variant; unsubscribe first",
            Some(json!({"uri": uri, "activeVariant": active, "subscribedVariant": bound})),
        ),
        BindError::TooManySubscriptions => ErrorData::invalid_params(
            "Too many subscriptions in this session",
            Some(json!({"uri": uri, "activeVariant": active})),
        ),
    }
}

/// The union of two filters.
pub(super) fn merge_filters(
    one: SubscriptionFilter,
    other: SubscriptionFilter,
) -> SubscriptionFilter {
    let mut all = one;
    all.tools_list_changed = all.tools_list_changed.max(other.tools_list_changed);
    all.prompts_list_changed = all.prompts_list_changed.max(other.prompts_list_changed);
    all.resources_list_changed = all.resources_list_changed.max(other.resources_list_changed);
    let uris = other.resource_subscriptions.into_iter().flatten();
    for uri in uris {
        let known = all.resource_subscriptions.get_or_insert_default();
        if !known.contains(&uri) {
            known.push(uri);
        }
    }
    all
}
