//! Clients that declare how they want their content, and choose a variant.
//!
//! | step | what |
//! |---|---|
//! | declare features and hints | [`DeclaringClient`] around your handler |
//! | require an extension of the server | [`Client::require`] |
//! | list the offered variants | [`Client::offers`] |
//! | choose a variant | [`Client::choose`] by [`ChoiceRules`], [`Client::choose_with`] a function of yours, [`Client::variant`] by name |
//! | send requests in it | [`VariantClient`]: lists, calls and reads |
//! | forward a result | [`forward`]: the one field that its reader gets |
//! | audit the choices | [`Client::choices`] |
//!
//! Everything works on connections of either era. A [`VariantClient`] is bound to its variant: a
//! tool is called in the variant in which it was listed, and cursors are never sent to another
//! variant.
//!
//! # Examples
//!
//! ```
//! use mcp_vary::feature::Features;
//! use mcp_vary::hints::VariantHints;
//! use mcp_vary_rmcp::client::{Client, DeclaringClient, TaskContext};
//! use rmcp::ServiceExt as _;
//! # use mcp_vary::variant::ServerVariant;
//! # use mcp_vary_rmcp::server::VaryServer;
//! # use rmcp::model::{ServerCapabilities, ServerConfig};
//! # use rmcp::ServerHandler;
//! # struct Cloud;
//! # impl ServerHandler for Cloud {
//! #     fn get_info(&self) -> ServerConfig {
//! #         ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = VaryServer::builder()
//! #     .with_variant(ServerVariant::new("plan".parse()?, "").with_hint("useCase", "planning"), Cloud)
//! #     .with_variant(ServerVariant::new("run".parse()?, "").with_hint("useCase", "execution"), Cloud)
//! #     .build()?;
//! # let (transport, theirs) = tokio::io::duplex(4096);
//! # let serving = tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
//!
//! // Once: declare and connect.
//! let (features, _) = Features::from_tags(["agent", "format=json"]);
//! let (hints, _) = VariantHints::from_pairs([("useCase", "planning"), ("useCase", "execution")]);
//! let handler = DeclaringClient::new(()).with_features(features).with_hints(hints);
//! let running = handler.serve(transport).await?;
//! let client = Client::new(running.peer(), running.service()).await;
//!
//! // In each phase: choose a variant, and send requests in it.
//! let planning = client.choose(&TaskContext::new().with_phase("planning"));
//! let tools = planning.tools().await?;
//! assert_eq!(planning.choice().to_string(), "`plan`: matches the phase planning");
//!
//! let executing = client.choose(&TaskContext::new().with_phase("execution"));
//! assert_eq!(executing.variant().unwrap().as_str(), "run");
//! # assert!(tools.is_empty());
//! # running.cancel().await?;
//! # serving.await??;
//! # Ok(())
//! # }
//! ```

mod cache;
mod choice;
mod declaring_client;
mod error;
mod forward;
mod input_required;
mod list;
mod offers;
mod request;
mod subscribe;
mod switch_limit;
mod switch_log;
mod variant_client;
mod variant_subscription;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::extension::{Declaration, Declared, declared};
use mcp_vary::variant::{ServerVariant, VariantId};
use mcp_vary_base::lock::Lock;
use mcp_vary_base::setters;
use rmcp::model::{GetMeta as _, RequestMetaObject, ServerNotification};
use rmcp::service::{ClientCacheConfig, DynService, Peer, RoleClient, Service};
use serde_json::Value;
use tokio::time::Instant;

pub use self::choice::{Choice, ChoiceReason, ChoiceRule, ChoiceRules, TaskContext};
pub use self::declaring_client::{DeclaringClient, SettingsError};
pub use self::error::Error;
pub use self::forward::{Forwarded, forward};
pub use self::list::VariantList;
pub use self::offers::{MAX_VARIANTS, Offers};
pub use self::subscribe::LostSubscription;
pub use self::switch_limit::SwitchLimit;
pub use self::switch_log::{ChoiceRecord, MAX_CHOICE_RECORDS};
pub use self::variant_client::VariantClient;
pub use self::variant_subscription::VariantSubscription;
pub use mcp_vary::visibility::Experience;

use self::cache::{Selector, VariantCache};
use self::switch_log::SwitchLog;

/// A connection to a server, with the variants that it advertises.
///
/// Clones share the connection, the cache and the record of choices.
///
/// # Properties
///
/// A selector is sent only to servers that advertise variants. Lists and resource contents are
/// cached by variant for the server's `ttlMs`; `list_changed` and `resources/updated` invalidate
/// them earlier, in the variant that they name or, if they name none, in all. The SDK's own cache
/// ignores variants, so it is switched off for this connection.
///
/// Over HTTP the SDK starts a new session when the server has lost one, and does not report it: the
/// offers are then those of the lost session. A server that rejects an offered variant reveals
/// this.
#[derive(Clone)]
pub struct Client {
    state: Arc<ClientState>,
    rules: Arc<ChoiceRules>,
    timeout: Option<Duration>,
}

/// The state that clones of a client share.
struct ClientState {
    peer: Peer<RoleClient>,
    /// Answers the server's input requests.
    handler: Arc<dyn DynService<RoleClient>>,
    cache: Arc<VariantCache>,
    offers: Lock<Arc<Offers>>,
    switch_log: Lock<SwitchLog>,
    /// The variant of each subscription of a legacy session.
    subscriptions: tokio::sync::Mutex<BTreeMap<String, Selector>>,
}

impl Client {
    /// Creates a client of the server behind `peer`. `declaring` is the handler that is served for
    /// it.
    ///
    /// Switches the SDK's own cache off for this connection.
    pub async fn new<S: Service<RoleClient>>(
        peer: &Peer<RoleClient>,
        declaring: &DeclaringClient<S>,
    ) -> Self {
        // Its key is the method and the cursor or URI, without `_meta`: it would return one
        // variant's list for another.
        peer.set_response_cache_config(ClientCacheConfig::disabled())
            .await;
        let offers = match peer.peer_info() {
            Some(info) => read_offers(&info.capabilities),
            None => Offers::default(),
        };
        let shared = ClientState {
            peer: peer.clone(),
            handler: declaring.handler_arc(),
            cache: Arc::clone(&declaring.cache),
            offers: Lock::new(Arc::new(offers)),
            switch_log: Lock::default(),
            subscriptions: tokio::sync::Mutex::default(),
        };
        Self {
            state: Arc::new(shared),
            rules: Arc::default(),
            timeout: None,
        }
    }

    setters! {
        /// Sets the rules of [`choose`](Self::choose).
        ///
        /// ```
        /// use mcp_vary_rmcp::client::{ChoiceRule, ChoiceRules, Client};
        ///
        /// fn with_rules(client: Client) -> Client {
        ///     let tight = ChoiceRule::TokenBudget { below: 30_000, context_size: "compact".to_owned() };
        ///     client.with_rules(ChoiceRules::new([ChoiceRule::RequestedVariant, ChoiceRule::Phase, tight]).with_experimental())
        /// }
        /// ```
        with_rules(rules: ChoiceRules): rules = Arc::new(rules);
        /// Limits how long a request may take.
        with_timeout(timeout: Duration): timeout = Some(timeout);
    }

    /// Limits how often all clones together may switch by rules or by a function of yours.
    ///
    /// Each switch changes the list of tools and so invalidates the model's prompt cache. Variants
    /// that the user requests or the application names are not limited.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use mcp_vary_rmcp::client::{Client, SwitchLimit};
    ///
    /// fn with_limit(client: Client) -> Client {
    ///     client.with_switch_limit(SwitchLimit::new(3, Duration::from_secs(60)))
    /// }
    ///
    /// fn print_switches(client: &Client) {
    ///     for record in client.choices().iter().filter(|record| record.switched) {
    ///         println!("{}", record.choice); // `run`: matches the phase execution
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn with_switch_limit(self, limit: SwitchLimit) -> Self {
        self.state.switch_log.lock().limit = limit;
        self
    }

    /// The SDK's peer, for requests that do not depend on variants.
    pub fn peer(&self) -> &Peer<RoleClient> {
        &self.state.peer
    }

    /// The variants that the server advertises, best first; empty if it has none.
    pub fn offers(&self) -> Arc<Offers> {
        Arc::clone(&self.state.offers.lock())
    }

    /// The settings that the server declared for the extension `D` when the connection began.
    ///
    /// Works for any extension: implement [`Declaration`] for its settings. Reading never fails.
    ///
    /// ```
    /// use mcp_vary::extension::Declaration;
    /// use mcp_vary::ignored::Ignored;
    /// use mcp_vary_rmcp::client::Client;
    /// use serde_json::Value;
    ///
    /// #[derive(Default)]
    /// struct Systems(Vec<String>);
    ///
    /// impl Declaration for Systems {
    ///     const ID: &'static str = "com.example/units";
    ///
    ///     fn read(settings: &Value) -> (Option<Self>, Ignored) {
    ///         let systems = settings["systems"].as_array().into_iter().flatten();
    ///         let systems = systems.filter_map(Value::as_str).map(str::to_owned);
    ///         (Some(Self(systems.collect())), Ignored::default())
    ///     }
    /// }
    ///
    /// fn speaks_imperial(client: &Client) -> bool {
    ///     client.declared::<Systems>().value.0.iter().any(|system| system == "imperial")
    /// }
    /// ```
    #[must_use]
    pub fn declared<D: Declaration>(&self) -> Declared<D> {
        let info = self.peer().peer_info();
        let capabilities = info.and_then(|info| serde_json::to_value(&info.capabilities).ok());
        declared(&capabilities.unwrap_or(Value::Null))
    }

    /// The settings of an extension without which the client cannot work.
    ///
    /// # Errors
    ///
    /// When the server did not [declare](Self::declared) it.
    pub fn require<D: Declaration>(&self) -> Result<D, Error> {
        let declared = self.declared::<D>();
        match declared.carrier {
            Some(_) => Ok(declared.value),
            None => Err(Error::MissingExtension(D::ID)),
        }
    }

    /// Requests the offers of a modern server again; those of a legacy server are valid for the
    /// session.
    ///
    /// # Errors
    ///
    /// When the server does not answer `server/discover`.
    pub async fn refresh_offers(&self) -> Result<Arc<Offers>, Error> {
        if !self.is_legacy() {
            let discovered = self.peer().discover(RequestMetaObject::new()).await?;
            let offers = Arc::new(read_offers(&discovered.capabilities));
            *self.state.offers.lock() = offers;
        }
        Ok(self.offers())
    }

    /// Chooses a variant for `context` by the [rules](Self::with_rules).
    #[must_use]
    pub fn choose(&self, context: &TaskContext) -> VariantClient {
        let offers = self.offers();
        self.bind(self.rules.choose(&offers, context), &offers)
    }

    /// Chooses a variant for `context` with a function of yours, which may ask a model.
    ///
    /// `choose` gets the variants that the [rules](Self::with_rules) may choose and the server's
    /// default, best first, and returns the id of one of them. If it returns `None` or any other
    /// variant, the rules decide. It is not called if there is nothing to choose or if the user
    /// requested a variant. Set a time limit in it, and store its choices if it is slow.
    ///
    /// The server wrote the descriptions: give them to a model as data, not as your own text.
    ///
    /// ```
    /// use mcp_vary_rmcp::client::{Client, TaskContext, VariantClient};
    /// use serde_json::json;
    ///
    /// # async fn ask_model(prompt: String) -> Option<String> { Some(prompt) }
    /// async fn choose(client: &Client) -> VariantClient {
    ///     let context = TaskContext::new().with_phase("debugging");
    ///     client
    ///         .choose_with(&context, |variants| async move {
    ///             let offered = json!(variants);
    ///             let answer = ask_model(format!("Which id suits debugging? The data: {offered}")).await?;
    ///             answer.parse().ok()
    ///         })
    ///         .await
    /// }
    /// ```
    pub async fn choose_with<F>(
        &self,
        context: &TaskContext,
        choose: impl FnOnce(Vec<ServerVariant>) -> F,
    ) -> VariantClient
    where
        F: Future<Output = Option<VariantId>>,
    {
        let offers = self.offers();
        let by_rules = self.rules.choose(&offers, context);
        if by_rules.reason == ChoiceReason::Requested || offers.iter().len() < 2 {
            return self.bind(by_rules, &offers);
        }
        let candidates: Vec<_> = self.rules.candidates(&offers).cloned().collect();
        let Some(chosen) = choose(candidates).await else {
            return self.bind(by_rules, &offers);
        };
        if self
            .rules
            .candidates(&offers)
            .any(|variant| variant.id == chosen)
        {
            return self.bind(Choice::new(Some(&chosen), ChoiceReason::Chosen), &offers);
        }
        let rules = Box::new(by_rules.reason);
        let reason = ChoiceReason::NotAllowed { chosen, rules };
        self.bind(Choice { reason, ..by_rules }, &offers)
    }

    /// Selects the variant `id`, named by the application.
    ///
    /// # Errors
    ///
    /// When the server does not offer it, and reports that there are no more variants than it
    /// advertises.
    pub fn variant(&self, id: &VariantId) -> Result<VariantClient, Error> {
        let offers = self.offers();
        if !offers.allows(id) {
            return Err(Error::NotOffered(id.clone()));
        }
        Ok(self.bind(Choice::new(Some(id), ChoiceReason::Named), &offers))
    }

    /// Sends requests without a selector, so that the server's default answers.
    #[must_use]
    pub fn default_variant(&self) -> VariantClient {
        let reason = if self.offers().is_empty() {
            ChoiceReason::NoVariants
        } else {
            ChoiceReason::Default
        };
        VariantClient::new(self.clone(), Choice::new(None, reason))
    }

    /// The latest [`MAX_CHOICE_RECORDS`] choices, oldest first, for an audit.
    pub fn choices(&self) -> Vec<ChoiceRecord> {
        self.state.switch_log.lock().records()
    }

    /// Invalidates the cache by a notification that came through [`rmcp::service::Subscription`].
    ///
    /// Those never reach a handler. With [`VariantClient::listen`] this is not necessary.
    pub fn handle_notification(&self, notification: &ServerNotification) {
        self.state
            .cache
            .handle_notification(notification, notification.get_meta());
    }

    /// Removes all cached lists and resource contents.
    pub fn clear_cache(&self) {
        self.state.cache.clear();
    }

    fn bind(&self, preferred: Choice, offers: &Offers) -> VariantClient {
        let mut switch_log = self.state.switch_log.lock();
        let choice = switch_log.record_choice(preferred, offers, Instant::now());
        VariantClient::new(self.clone(), choice)
    }

    fn is_legacy(&self) -> bool {
        let info = self.peer().peer_info();
        info.is_none_or(|info| info.protocol_version.has_initialize())
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("offers", &self.offers())
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

fn read_offers(capabilities: &rmcp::model::ServerCapabilities) -> Offers {
    let capabilities = serde_json::to_value(capabilities).unwrap_or(Value::Null);
    let (offers, ignored) = Offers::read(&capabilities);
    if !ignored.is_empty() {
        tracing::warn!(count = ignored.count(), %ignored, "invalid offers of the server ignored");
    }
    offers
}
