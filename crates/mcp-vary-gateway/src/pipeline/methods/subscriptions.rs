//! `resources/subscribe` and `resources/unsubscribe`, and `subscriptions/listen`, which replaces them.

use std::sync::Arc;

use futures_util::future::join_all;
use mcp_vary::error::{Identifier, with_active_variant};
use mcp_vary::error_code::{INVALID_PARAMS, RESOURCE_NOT_FOUND};
use mcp_vary::json;
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_upstream::SubscribeError;
use mcp_vary_wire::method_names::SUBSCRIBE;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use tokio::time::timeout;

use crate::pipeline::method_action::method_not_found;
use crate::pipeline::methods::Dispatch;
use crate::pipeline::methods::RequestContext;
use crate::pool::dedicated::KeepAliveLease;
use crate::session::Session;
use crate::subscriptions::filter::{SubscriptionFilter, check_length};
use crate::subscriptions::listen_stream::{SubscriberGuard, open};
use crate::subscriptions::{
    NotificationSink, Placement, ResourceSubscription, Subscriber, SubscriptionHub,
};

impl RequestContext<'_> {
    /// Subscribes a session to a resource of the active variant (SV-14).
    pub(crate) async fn subscribe(self) -> Result<Dispatch, RpcError> {
        self.offers_subscriptions()?;
        let uri = self.request.params.string("uri")?;
        let view = self.active_view()?;
        let session = self.client.session.as_ref();
        let session = session.ok_or_else(|| method_not_found(self.request.method))?;
        check_length(&uri).map_err(|why| RpcError::invalid_params(format!("`uri` {why}")))?;
        let (server, upstream_uri) = self.located(view, &uri).await?;
        self.check_resource(view, server, &upstream_uri)?;
        self.snapshot.notify_session(session).await;
        if self.may_bind(session, &uri, view)? {
            let memory = self.snapshot.services.memory.lease_for_subscription(&uri)?;
            self.class.source(server).connection.ready().await?;
            let dedicated = self.retained_connection(server).await?;
            let bound = self.bind_resource(view, (server, &upstream_uri), dedicated, memory);
            self.await_subscription(&bound, &uri).await?;
            self.bind(session, uri, bound)?;
        }
        Ok(self.answer("{}"))
    }

    /// Ends a subscription. It succeeds with any variant selected, even if the resource is gone.
    ///
    /// > Servers MUST continue to accept `resources/unsubscribe` for existing subscription ids even if the
    /// > underlying resource is no longer available. (server-variants, "Resource Disappearance")
    pub(crate) fn unsubscribe(&self) -> Result<Dispatch, RpcError> {
        self.offers_subscriptions()?;
        let uri = self.request.params.string("uri")?;
        if let Some(session) = &self.client.session {
            let mut members = self.audience().lock();
            let subscribed = members.of_session(session.client);
            let subscribed = subscribed
                .and_then(|(number, member)| Some((number, member.subscribed_spelling(&uri)?)));
            let ended = subscribed.and_then(|(number, uri)| members.unbind(number, &uri));
            drop(members);
            drop(ended);
        }
        Ok(self.answer("{}"))
    }

    /// Opens a stream of the notifications that the client requests and its variant has (SV-15).
    pub(crate) async fn listen(self) -> Result<Dispatch, RpcError> {
        let most = self.snapshot.config.limits.subscriptions;
        let mut filter =
            SubscriptionFilter::read(self.request.params.object("notifications")?, most)?;
        let view = self.active_view()?;
        filter
            .kinds
            .retain(|kind| self.catalog.capabilities.contains(kind.capability()));
        let listened = self.task_subscriptions(&mut filter).await?;
        let bound = self.honored_filter(view, &mut filter).await?;
        let (id, variant) = (self.request.id, self.active_variant(view));
        let (sender, tail) = open(id, &filter.to_json(), variant.as_ref());
        let kinds = filter.kinds;
        let ear = NotificationSink::Stream { sender, kinds };
        let audience = self.audience();
        let number = {
            let mut members = audience.lock();
            let number = members.add(ear, self.placement(view), None);
            for (uri, bound) in bound {
                members.bind(number, uri.into(), bound);
            }
            for (key, listened) in listened {
                members.listen(number, key, listened);
            }
            number
        };
        let membership = SubscriberGuard {
            hub: Arc::clone(audience),
            number,
        };
        let listener = tail.listener(membership);
        let shutdown = self.snapshot.services.shutdown.clone();
        let listener = listener.until(shutdown.cancelled_owned());
        audience.catch_up(number).await;
        if let Some(client) = self.client.list_owner() {
            audience
                .relocate(client, self.snapshot.services.pool.dedicated.lists())
                .await;
        }
        Ok(Dispatch::Listen(listener))
    }

    /// Subscribes to the resources of `filter`, and leaves in it those whose changes the client will be notified of.
    ///
    /// # Errors
    ///
    /// When memory for them runs out.
    async fn honored_filter(
        &self,
        view: ViewIndex,
        filter: &mut SubscriptionFilter,
    ) -> Result<Vec<(String, ResourceSubscription)>, RpcError> {
        let asked = filter
            .resources
            .take()
            .filter(|_| self.catalog.supports_subscriptions());
        let Some(uris) = asked else {
            return Ok(Vec::new());
        };
        let leased = uris.into_iter().map(|uri| {
            let memory = self.snapshot.services.memory.lease_for_subscription(&uri)?;
            Ok((uri, memory))
        });
        let leased: Vec<_> = leased.collect::<Result<_, RpcError>>()?;
        let honoured = leased.into_iter().map(|(uri, memory)| async move {
            let (server, upstream_uri) = self.located(view, &uri).await.ok()?;
            self.check_resource(view, server, &upstream_uri).ok()?;
            let bound = self.bind_resource(view, (server, &upstream_uri), None, memory);
            self.is_honored(&bound).await.then_some((uri, bound))
        });
        let honoured: Vec<_> = join_all(honoured).await.into_iter().flatten().collect();
        filter.resources = Some(honoured.iter().map(|(uri, _)| uri.clone()).collect());
        Ok(honoured)
    }

    fn audience(&self) -> &Arc<SubscriptionHub> {
        &self.snapshot.services.hub
    }

    fn offers_subscriptions(&self) -> Result<(), RpcError> {
        // A legacy server may have the method without declaring it.
        let may_have = || {
            self.visible_sources().any(|source| {
                let hello = source.snapshot().handshake.clone();
                hello.is_some_and(|hello| hello.era() == Era::Legacy)
                    && source
                        .connection
                        .server_facts()
                        .undeclared_methods()
                        .has(SUBSCRIBE)
                        != Some(false)
            })
        };
        if self.catalog.supports_subscriptions() || may_have() {
            Ok(())
        } else {
            Err(method_not_found(self.request.method))
        }
    }

    fn placement(&self, view: ViewIndex) -> Placement {
        Placement {
            generation: self.snapshot.placements.generation(),
            class: Arc::clone(&self.class),
            key: self.client.class.clone(),
            principal: self.client.principal.clone(),
            client: self.client.list_owner(),
            variants: [self.variant_set().variant_of(view)].into(),
            names_variants: self.snapshot.config.variants,
        }
    }

    /// The server of the view's resource `uri`, and the server's URI.
    ///
    /// # Errors
    ///
    /// `-32602` when there is no such resource in the variant.
    async fn located(&self, view: ViewIndex, uri: &str) -> Result<(ServerIndex, String), RpcError> {
        let located = self.located_resource(view, uri, Identifier::SubscribedResource);
        located.await.map_err(|failure| match failure.code() {
            RESOURCE_NOT_FOUND => self.unknown_resource(view, uri),
            _ => failure,
        })
    }

    /// The session's dedicated connection: a server may report changes by the session's calls only there.
    async fn retained_connection(
        &self,
        server: ServerIndex,
    ) -> Result<Option<KeepAliveLease>, RpcError> {
        let dedicated = self.dedicated_connection(server).await?;
        // If sessions share nothing, it is the same connection.
        let dedicated = dedicated.filter(|dedicated| !dedicated.is_adopted());
        Ok(dedicated.map(|dedicated| dedicated.keep_alive()))
    }

    fn bind_resource(
        &self,
        view: ViewIndex,
        (server, upstream_uri): (ServerIndex, &str),
        dedicated: Option<KeepAliveLease>,
        memory: Lease,
    ) -> ResourceSubscription {
        let source = self.class.source(server);
        let line = dedicated
            .as_ref()
            .map_or(&source.connection, KeepAliveLease::connection);
        let subscription = line.subscribe(upstream_uri);
        let catalog = self.class.catalog.current();
        ResourceSubscription {
            variant: self.variant_set().variant_of(view),
            view,
            presentation: self.client.presentation,
            source: Arc::clone(source),
            dedicated,
            subscription,
            memory: Arc::new(memory),
            was_listed: catalog.resource_server(view, upstream_uri).is_some(),
        }
    }

    fn unknown_resource(&self, view: ViewIndex, uri: &str) -> RpcError {
        self.not_found(view, Identifier::SubscribedResource(uri.to_owned()))
    }

    /// Waits for the server's answer to a subscription.
    ///
    /// # Errors
    ///
    /// When the server refuses, or does not answer in time.
    async fn await_subscription(
        &self,
        bound: &ResourceSubscription,
        uri: &str,
    ) -> Result<(), RpcError> {
        let server = bound.source.name();
        let limit = bound.source.connection.config().limits.ready_timeout;
        match timeout(limit, bound.subscription.settled()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(refused)) => Err(self.refusal(bound, uri, refused)),
            Err(_elapsed) => Err(RpcError::internal(format!(
                "server `{server}` did not answer resources/subscribe within {limit:?}"
            ))),
        }
    }

    /// Whether a stream may promise notifications of a resource: unless the server refuses now.
    async fn is_honored(&self, bound: &ResourceSubscription) -> bool {
        let line = &bound.source.connection;
        if line.current().is_none() {
            // The subscription is sent as soon as the server is connected.
            return true;
        }
        let settled = timeout(
            line.config().limits.ready_timeout,
            bound.subscription.settled(),
        );
        !matches!(settled.await, Ok(Err(_)))
    }

    fn refusal(
        &self,
        bound: &ResourceSubscription,
        uri: &str,
        refused: SubscribeError,
    ) -> RpcError {
        let failure = match refused {
            SubscribeError::NotOffered => RpcError::invalid_params(format!(
                "server `{}` does not tell of changes of this resource",
                bound.source.name()
            ))
            .with_data(format!(r#"{{"uri":{}}}"#, json::string(uri))),
            SubscribeError::Rejected(error) => {
                let mut failure = RpcError::from_upstream_or_internal(&error);
                // Only a read has a code for missing resources.
                if failure.code() == RESOURCE_NOT_FOUND {
                    failure.set_code(INVALID_PARAMS);
                }
                failure
            }
        };
        match self.variant_for_errors(bound.view) {
            Some(id) if failure.code() == INVALID_PARAMS => {
                let data = with_active_variant(failure.data(), &id);
                failure.with_data(data)
            }
            _ => failure,
        }
    }

    /// Whether a session is not yet subscribed to `uri` in the variant of `view`; an error if it must not be.
    ///
    /// > If a client wants notifications for the same resource URI in a different variant, it MUST […]
    /// > unsubscribe from the current subscription (server-variants, "Resubscription Across Variants")
    fn may_bind(&self, session: &Session, uri: &str, view: ViewIndex) -> Result<bool, RpcError> {
        let mut members = self.audience().lock();
        let member = members
            .of_session(session.client)
            .map(|(_, member)| &*member);
        self.check_bound(member, uri, view)
    }

    fn check_bound(
        &self,
        member: Option<&Subscriber>,
        uri: &str,
        view: ViewIndex,
    ) -> Result<bool, RpcError> {
        let Some(member) = member else {
            return Err(RpcError::internal(
                "the session cannot receive notifications of changes now",
            ));
        };
        let data = |more: &str| {
            let active = self.active_variant(view);
            let data = format!(r#"{{"uri":{}{more}}}"#, json::string(uri));
            active.map_or(data.clone(), |id| with_active_variant(Some(&data), &id))
        };
        match member.resources.get(uri) {
            Some(other) if other.variant == self.variant_set().variant_of(view) => Ok(false),
            Some(other) => {
                let subscribed = member.placement.id(other.variant).map(|id| id.as_str());
                let subscribed = json::string(subscribed.unwrap_or_default());
                let why = "Resource is subscribed in another variant; unsubscribe first";
                let more = format!(r#","subscribedVariant":{subscribed}"#);
                Err(RpcError::invalid_params(why).with_data(data(&more)))
            }
            None if member.resources.len() >= self.snapshot.config.limits.subscriptions => {
                let why = "Too many subscriptions in this session; unsubscribe from some first";
                Err(RpcError::invalid_params(why).with_data(data("")))
            }
            None => Ok(true),
        }
    }

    /// Binds a subscription that the server accepted, unless another request did so first.
    fn bind(
        &self,
        session: &Session,
        uri: String,
        bound: ResourceSubscription,
    ) -> Result<(), RpcError> {
        let mut members = self.audience().lock();
        let member = members.of_session(session.client);
        let number = member.as_ref().map(|(number, _)| *number);
        let may = self.check_bound(member.map(|(_, member)| &*member), &uri, bound.view)?;
        if let Some(number) = number.filter(|_| may) {
            members.bind(number, uri.into(), bound);
        }
        Ok(())
    }
}
