//! `resources/subscribe` and `resources/unsubscribe`, and `subscriptions/listen`, which replaces them.

mod tasks;

use std::sync::Arc;

use futures_util::future::join_all;
use mcp_vary::error::{Identifier, with_active_variant};
use mcp_vary::error_code::{INVALID_PARAMS, RESOURCE_NOT_FOUND};
use mcp_vary::json;
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_upstream::SubscribeError;
use mcp_vary_wire::method_names::SUBSCRIBE;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use tokio::time::timeout;

use self::tasks::subscribe_to_tasks;
use crate::pipeline::request::method_not_found;
use crate::pipeline::request_context::{Dispatch, ListeningRequest, RequestContext, ViewScope};
use crate::pipeline::steps::resources::LocatedResource;
use crate::pipeline::steps::{forward, resources, undeclared_methods, view};
use crate::pool::dedicated::KeepAliveLease;
use crate::pool::source::ServerSource;
use crate::subscriptions::filter::{SubscriptionFilter, check_length};
use crate::subscriptions::listen_stream::{SubscriberGuard, open};
use crate::subscriptions::{
    NotificationSink, Placement, ResourceSubscription, Subscriber, SubscriptionHub,
};
use mcp_vary_session::Session;

/// Subscribes a session to a resource of the active variant (SV-14).
pub(crate) async fn subscribe(context: &RequestContext<'_>) -> Result<Dispatch, RpcError> {
    require_subscriptions(context)?;
    let uri = context.request.params.string("uri")?;
    let scope = view::enter(context).await?;
    let known = context.client.session.as_ref();
    let session = known.ok_or_else(|| method_not_found(context.request.method))?;
    check_length(&uri).map_err(|why| RpcError::invalid_params(format!("`uri` {why}")))?;
    let located = locate(scope, &uri).await?;
    context.snapshot.notify_session(session).await;
    if is_new_subscription(scope, session, &uri)? {
        let client_memory = &context.snapshot.services.memory;
        let memory = client_memory.lease_for_subscription(&uri)?;
        let source = context.class.source(located.server);
        source.connection.ready().await?;
        let dedicated = retained_connection(context, located.server).await?;
        let subscription = subscribe_at_server(scope, &located, dedicated, memory);
        await_acceptance(scope, &subscription, &uri).await?;
        add_to_session(scope, session, uri, subscription)?;
    }
    Ok(context.answer("{}"))
}

/// Ends a subscription. It succeeds with any variant selected, even if the resource is gone.
///
/// > Servers MUST continue to accept `resources/unsubscribe` for existing subscription ids even if the
/// > underlying resource is no longer available. (server-variants, "Resource Disappearance")
pub(crate) fn unsubscribe(context: &RequestContext<'_>) -> Result<Dispatch, RpcError> {
    require_subscriptions(context)?;
    let uri = context.request.params.string("uri")?;
    if let Some(session) = &context.client.session {
        let mut subscribers = hub(context).lock();
        let subscriber = subscribers.of_session(session.client);
        let subscribed = subscriber
            .and_then(|(number, subscriber)| Some((number, subscriber.subscribed_spelling(&uri)?)));
        let ended = subscribed.and_then(|(number, uri)| subscribers.unbind(number, &uri));
        // The subscription ends at the server after the lock is released.
        drop(subscribers);
        drop(ended);
    }
    Ok(context.answer("{}"))
}

/// Opens a stream of the notifications that the client requests and its variant has (SV-15).
pub(crate) async fn listen(context: &RequestContext<'_>) -> Result<Dispatch, RpcError> {
    let limit = context.snapshot.config.limits.subscriptions;
    let requested = context.request.params.object("notifications")?;
    let mut filter = SubscriptionFilter::read(requested, limit)?;
    let scope = view::enter(context).await?;
    let offered = &context.catalog.capabilities;
    filter
        .kinds
        .retain(|kind| offered.contains(kind.capability()));
    let tasks = subscribe_to_tasks(context, &mut filter).await?;
    let resources = subscribe_to_resources(scope, &mut filter).await?;
    let variant = scope.active_variant();
    let (sender, tail) = open(context.request.id, &filter.to_json(), variant.as_ref());
    let kinds = filter.kinds;
    let capabilities = Arc::clone(&context.client.forwardable);
    let sink = NotificationSink::Stream {
        sender,
        kinds,
        capabilities,
    };
    let hub = hub(context);
    let number = {
        let mut subscribers = hub.lock();
        let number = subscribers.add(sink, placement(scope), None);
        for (uri, subscription) in resources {
            subscribers.bind(number, uri.into(), subscription);
        }
        for (key, subscription) in tasks {
            subscribers.listen(number, key, subscription);
        }
        number
    };
    let guard = SubscriberGuard {
        hub: Arc::clone(hub),
        number,
    };
    let shutdown = context.snapshot.services.shutdown.clone();
    let stream = tail.listener(guard).until(shutdown.cancelled_owned());
    hub.catch_up(number).await;
    if let Some(client) = context.client.list_owner() {
        let lists = context.snapshot.services.pool.dedicated.lists();
        hub.relocate(client, lists).await;
    }
    Ok(Dispatch::Listen(ListeningRequest {
        stream,
        guard: None,
    }))
}

/// Subscribes to the resources of `filter`, and leaves in it those whose changes the client will be notified of.
///
/// # Errors
///
/// When memory for them runs out.
async fn subscribe_to_resources(
    scope: ViewScope<'_>,
    filter: &mut SubscriptionFilter,
) -> Result<Vec<(String, ResourceSubscription)>, RpcError> {
    let uris = match filter.resources.take() {
        Some(uris) if scope.catalog.supports_subscriptions() => uris,
        _ => return Ok(Vec::new()),
    };
    let leases = uris.into_iter().map(|uri| {
        let client_memory = &scope.snapshot.services.memory;
        let memory = client_memory.lease_for_subscription(&uri)?;
        Ok((uri, memory))
    });
    let leased: Vec<_> = leases.collect::<Result<_, RpcError>>()?;
    let subscribed = leased.into_iter().map(|(uri, memory)| async move {
        let located = locate(scope, &uri).await.ok()?;
        let subscription = subscribe_at_server(scope, &located, None, memory);
        let source = &subscription.source;
        let is_honored = source.may_honor(&subscription.subscription).await;
        is_honored.then_some((uri, subscription))
    });
    let subscribed: Vec<_> = join_all(subscribed).await.into_iter().flatten().collect();
    filter.resources = Some(subscribed.iter().map(|(uri, _)| uri.clone()).collect());
    Ok(subscribed)
}

fn hub<'c>(context: &RequestContext<'c>) -> &'c Arc<SubscriptionHub> {
    &context.snapshot.services.hub
}

fn require_subscriptions(context: &RequestContext<'_>) -> Result<(), RpcError> {
    // A legacy server may have the method without declaring it.
    let may_subscribe = |source: &Arc<ServerSource>| {
        let snapshot = source.snapshot();
        let is_legacy = snapshot.handshake.as_ref().map(|it| it.era()) == Some(Era::Legacy);
        is_legacy && undeclared_methods::may_have(source, SUBSCRIBE)
    };
    if context.catalog.supports_subscriptions() || context.visible_sources().any(may_subscribe) {
        Ok(())
    } else {
        Err(method_not_found(context.request.method))
    }
}

fn placement(scope: ViewScope<'_>) -> Placement {
    Placement {
        generation: scope.snapshot.placements.generation,
        class: Arc::clone(&scope.class),
        key: scope.client.class.clone(),
        principal: scope.client.principal.clone(),
        client: scope.client.list_owner(),
        variants: [scope.variant_set().variant_of(scope.view)].into(),
        names_variants: scope.snapshot.config.variants,
    }
}

/// Locates the view's resource `uri`, which exists and may be read.
///
/// # Errors
///
/// `-32602` when there is no such resource in the variant; the error of [`resources::check`] when access rules deny it.
async fn locate(scope: ViewScope<'_>, uri: &str) -> Result<LocatedResource, RpcError> {
    let not_found = || scope.not_found(Identifier::SubscribedResource(uri.to_owned()));
    let found = resources::locate(scope, uri, Identifier::SubscribedResource).await;
    let located = found.map_err(|failure| match failure.code() {
        RESOURCE_NOT_FOUND => not_found(),
        _ => failure,
    })?;
    resources::check(scope, &located)?;
    if !resources::exists(scope, uri, &located).await {
        return Err(not_found());
    }
    Ok(located)
}

/// The session's dedicated connection: a server may report changes by the session's calls only there.
async fn retained_connection(
    context: &RequestContext<'_>,
    server: ServerIndex,
) -> Result<Option<KeepAliveLease>, RpcError> {
    let leased = forward::dedicated(context, server).await?;
    // If sessions share nothing, it is the same connection.
    let dedicated = leased.filter(|dedicated| !dedicated.is_adopted());
    Ok(dedicated.map(|dedicated| dedicated.keep_alive()))
}

fn subscribe_at_server(
    scope: ViewScope<'_>,
    located: &LocatedResource,
    dedicated: Option<KeepAliveLease>,
    memory: Lease,
) -> ResourceSubscription {
    let source = scope.class.source(located.server);
    let connection = dedicated
        .as_ref()
        .map_or(&source.connection, KeepAliveLease::connection);
    let subscription = connection.subscribe(&located.upstream_uri);
    let catalog = scope.class.catalog.current();
    let listed = catalog.resource_server(scope.view, &located.upstream_uri);
    ResourceSubscription {
        variant: scope.variant_set().variant_of(scope.view),
        view: scope.view,
        presentation: scope.client.presentation,
        source: Arc::clone(source),
        dedicated,
        subscription,
        memory: Arc::new(memory),
        was_listed: listed.is_some(),
        is_lost: false,
    }
}

/// Waits for the server's answer to a subscription.
///
/// # Errors
///
/// When the server refuses, or does not answer in time.
async fn await_acceptance(
    scope: ViewScope<'_>,
    subscription: &ResourceSubscription,
    uri: &str,
) -> Result<(), RpcError> {
    let server = subscription.source.name();
    let limit = subscription.source.connection.config().limits.ready_timeout;
    match timeout(limit, subscription.subscription.settled()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(refusal(scope, server, uri, error)),
        Err(_elapsed) => Err(RpcError::internal(format!(
            "server `{server}` did not answer resources/subscribe within {limit:?}"
        ))),
    }
}

/// The error for a subscription that `server` refuses.
fn refusal(scope: ViewScope<'_>, server: &str, uri: &str, error: SubscribeError) -> RpcError {
    let failure = match error {
        SubscribeError::NotOffered => RpcError::invalid_params(format!(
            "server `{server}` does not tell of changes of this resource"
        ))
        .with_data(json::object(&[("uri", &json::string(uri))])),
        SubscribeError::Rejected(error) => {
            let mut failure = RpcError::from_upstream_or_internal(&error);
            // Only a read has a code for missing resources.
            if failure.code() == RESOURCE_NOT_FOUND {
                failure.set_code(INVALID_PARAMS);
            }
            failure
        }
    };
    match scope.variant_for_errors() {
        Some(id) if failure.code() == INVALID_PARAMS => {
            let data = with_active_variant(failure.data(), &id);
            failure.with_data(data)
        }
        _ => failure,
    }
}

/// Whether a session is not yet subscribed to `uri` in the view's variant; an error if it must not be.
///
/// > If a client wants notifications for the same resource URI in a different variant, it MUST […]
/// > unsubscribe from the current subscription (server-variants, "Resubscription Across Variants")
fn is_new_subscription(
    scope: ViewScope<'_>,
    session: &Session,
    uri: &str,
) -> Result<bool, RpcError> {
    let mut subscribers = hub(&scope).lock();
    let subscriber = subscribers.of_session(session.client);
    check_subscriber(scope, subscriber.map(|(_, subscriber)| &*subscriber), uri)
}

/// Adds a subscription that the server accepted, unless another request did so first.
fn add_to_session(
    scope: ViewScope<'_>,
    session: &Session,
    uri: String,
    subscription: ResourceSubscription,
) -> Result<(), RpcError> {
    let mut subscribers = hub(&scope).lock();
    let subscriber = subscribers.of_session(session.client);
    let number = subscriber.as_ref().map(|(number, _)| *number);
    let is_new = check_subscriber(scope, subscriber.map(|(_, subscriber)| &*subscriber), &uri)?;
    if is_new && let Some(number) = number {
        subscribers.bind(number, uri.into(), subscription);
    }
    Ok(())
}

fn check_subscriber(
    scope: ViewScope<'_>,
    subscriber: Option<&Subscriber>,
    uri: &str,
) -> Result<bool, RpcError> {
    let Some(subscriber) = subscriber else {
        let why = "the session cannot receive notifications of changes now";
        return Err(RpcError::internal(why));
    };
    let quoted_uri = json::string(uri);
    let refused = |why: &str, members: &[(&str, &str)]| {
        let failure = RpcError::invalid_params(why).with_data(json::object(members));
        Err(scope.with_active_variant(failure))
    };
    match subscriber.resources.get(uri) {
        Some(other) if other.variant == scope.variant_set().variant_of(scope.view) => Ok(false),
        Some(other) => {
            let subscribed = subscriber.placement.id(other.variant).map(|id| id.as_str());
            let subscribed = json::string(subscribed.unwrap_or_default());
            refused(
                "Resource is subscribed in another variant; unsubscribe first",
                &[("uri", &quoted_uri), ("subscribedVariant", &subscribed)],
            )
        }
        None if subscriber.resources.len() >= scope.snapshot.config.limits.subscriptions => {
            let why = "Too many subscriptions in this session; unsubscribe from some first";
            refused(why, &[("uri", &quoted_uri)])
        }
        None => Ok(true),
    }
}
