//! Clients that declare how they want their content, and choose a variant.
//!
//! | step | what |
//! |---|---|
//! | say what you are and like | [`Declaring`] around your handler: feature tags, hints |
//! | see what there is | [`Client::offers`] |
//! | choose | [`Client::choose`] by [`Rules`], [`Client::choose_with`] a [`Model`], [`Client::view`] by name |
//! | ask | [`View`]: lists, calls and reads in that variant |
//! | show a result | [`forward`]: the one field that its reader gets |
//! | look back | [`Client::choices`] |
//!
//! Everything works on a connection of either era. A [`View`] is bound to its variant: a tool is
//! called in the variant in which it was listed, and no cursor meets another variant.
//!
//! With the feature `openai`, `ChatCompletions` is a [`Model`] behind an endpoint that speaks
//! OpenAI's chat completions.
//!
//! # Examples
//!
//! ```
//! use mcp_vary::feature::Features;
//! use mcp_vary::hints::VariantHints;
//! use mcp_vary_rmcp::client::{Client, Declaring, TaskContext};
//! use rmcp::ServiceExt as _;
//! # use mcp_vary::variant::ServerVariant;
//! # use mcp_vary_rmcp::server::Vary;
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
//! # let server = Vary::builder()
//! #     .with_variant(ServerVariant::new("plan".parse()?, "").with_hint("useCase", "planning"), Cloud)
//! #     .with_variant(ServerVariant::new("run".parse()?, "").with_hint("useCase", "execution"), Cloud)
//! #     .build()?;
//! # let (transport, theirs) = tokio::io::duplex(4096);
//! # let serving = tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
//!
//! // Once: declare, connect.
//! let (features, _) = Features::from_tags(["agent", "format=json"]);
//! let (hints, _) = VariantHints::from_pairs([("useCase", "planning"), ("useCase", "execution")]);
//! let handler = Declaring::new(()).with_features(features).with_hints(hints);
//! let running = handler.serve(transport).await?;
//! let client = Client::new(running.peer(), running.service()).await;
//!
//! // Per phase: choose, and ask in what was chosen.
//! let planning = client.choose(&TaskContext::new().with_phase("planning"));
//! let tools = planning.tools().await?;
//! assert_eq!(planning.choice().to_string(), "`plan`: made for the phase planning");
//!
//! let executing = client.choose(&TaskContext::new().with_phase("execution"));
//! assert_eq!(executing.variant().unwrap().as_str(), "run");
//! # assert!(tools.is_empty());
//! # running.cancel().await?;
//! # serving.await??;
//! # Ok(())
//! # }
//! ```

mod choose;
mod declare;
mod error;
mod forward;
mod inputs;
mod list;
mod listen;
mod memory;
mod model;
mod offers;
#[cfg(feature = "openai")]
mod openai;
mod request;
mod subscribe;
mod switch;
mod view;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use mcp_vary::extension::{Declaration, Declared, declared};
use mcp_vary::variant::VariantId;
use rmcp::model::{GetMeta as _, RequestMetaObject, ServerNotification};
use rmcp::service::{ClientCacheConfig, DynService, Peer, RoleClient, Service};
use serde_json::Value;
use tokio::time::Instant;

pub use self::choose::{Choice, ModelFailure, Reason, Rule, Rules, TaskContext};
pub use self::declare::{Declaring, SettingsError};
pub use self::error::Error;
pub use self::forward::{Forwarded, forward};
pub use self::list::Listed;
pub use self::listen::Listening;
pub use self::model::{Model, PATIENCE};
pub use self::offers::{MAX_VARIANTS, Offers};
#[cfg(feature = "openai")]
pub use self::openai::{ChatCompletions, ChatError};
pub use self::switch::{RECORDS, Record};
pub use self::view::View;
pub use crate::limit::SwitchLimit;
pub use mcp_vary::visibility::Experience;

use self::memory::{Memory, Selected};
use self::switch::Switching;

/// A connection to a server whose variants are known.
///
/// Clones share the connection, what is remembered of it, and the record of choices.
///
/// # Properties
///
/// A selector is sent only to a server that advertises variants. Lists and resources are remembered
/// for the variant that they came from, as long as the server's `ttlMs` says; `list_changed` and
/// `resources/updated` end that earlier, for the variant that they name or, if they name none, for
/// all. The SDK's own cache, which tells no variants apart, is switched off for this connection.
///
/// Over HTTP the SDK starts a session anew by itself when the server has lost it, and does not say
/// so: the offers are then those of the lost session. A server that refuses a variant gives it away.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    rules: Arc<Rules>,
    timeout: Option<Duration>,
    /// How long a model may think.
    patience: Duration,
}

/// What clones of a client have in common.
struct Shared {
    peer: Peer<RoleClient>,
    /// Answers what the server asks in the course of a request.
    handler: Arc<dyn DynService<RoleClient>>,
    memory: Arc<Memory>,
    offers: RwLock<Arc<Offers>>,
    switching: Mutex<Switching>,
    /// What a model chose.
    chosen: Mutex<BTreeMap<TaskContext, Choice>>,
    /// The variant of each subscription of a legacy session.
    subscriptions: tokio::sync::Mutex<BTreeMap<String, Selected>>,
}

impl Client {
    /// A client of the server behind `peer`, which `declaring` was served for.
    ///
    /// Switches the SDK's own cache off for this connection.
    pub async fn new<S: Service<RoleClient>>(
        peer: &Peer<RoleClient>,
        declaring: &Declaring<S>,
    ) -> Self {
        // It keys by method and cursor or URI, without `_meta`: one variant's list would answer for another's.
        peer.set_response_cache_config(ClientCacheConfig::disabled())
            .await;
        let offers = match peer.peer_info() {
            Some(info) => read_offers(&info.capabilities),
            None => Offers::default(),
        };
        let shared = Shared {
            peer: peer.clone(),
            handler: declaring.shared(),
            memory: Arc::clone(&declaring.memory),
            offers: RwLock::new(Arc::new(offers)),
            switching: Mutex::default(),
            chosen: Mutex::default(),
            subscriptions: tokio::sync::Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
            rules: Arc::default(),
            timeout: None,
            patience: PATIENCE,
        }
    }

    /// Chooses by `rules` from now on.
    ///
    /// ```
    /// use mcp_vary_rmcp::client::{Client, Rule, Rules};
    ///
    /// fn with_rules(client: Client) -> Client {
    ///     let tight = Rule::Budget { below: 30_000, size: "compact".to_owned() };
    ///     client.with_rules(Rules::new([Rule::Wish, Rule::Phase, tight]).with_experimental())
    /// }
    /// ```
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = Arc::new(rules);
        self
    }

    /// Limits how often all clones together may switch by themselves.
    ///
    /// A list of tools costs the model's cache with each switch. What the user or the application
    /// names is done whatever the limit.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use mcp_vary_rmcp::client::{Client, SwitchLimit};
    ///
    /// fn steady(client: Client) -> Client {
    ///     client.with_switch_limit(SwitchLimit::new(3, Duration::from_secs(60)))
    /// }
    ///
    /// fn tell(client: &Client) {
    ///     for record in client.choices().iter().filter(|record| record.switched) {
    ///         println!("{}", record.choice); // `run`: made for the phase execution
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn with_switch_limit(self, limit: SwitchLimit) -> Self {
        self.switching().limit = limit;
        self
    }

    /// Limits how long a request may take.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Limits how long a [`Model`] may think; [`PATIENCE`] unless set.
    #[must_use]
    pub fn with_model_timeout(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The SDK's own handle, for what has nothing to do with variants.
    #[must_use]
    pub fn peer(&self) -> &Peer<RoleClient> {
        &self.shared.peer
    }

    /// The variants that the server offers, best first; empty when it supports none.
    #[must_use]
    pub fn offers(&self) -> Arc<Offers> {
        let offers = self.shared.offers.read();
        Arc::clone(&offers.unwrap_or_else(PoisonError::into_inner))
    }

    /// What the server declared for the extension `D` when the connection began.
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

    /// Asks a modern server anew what it offers; a legacy server's offers hold for the session.
    ///
    /// # Errors
    ///
    /// When the server does not answer `server/discover`.
    pub async fn refresh_offers(&self) -> Result<Arc<Offers>, Error> {
        if !self.is_legacy() {
            let discovered = self.peer().discover(RequestMetaObject::new()).await?;
            let offers = Arc::new(read_offers(&discovered.capabilities));
            let held = self.shared.offers.write();
            *held.unwrap_or_else(PoisonError::into_inner) = offers;
            self.chosen().clear();
        }
        Ok(self.offers())
    }

    /// Chooses a variant for `context` by the [rules](Self::with_rules).
    #[must_use]
    pub fn choose(&self, context: &TaskContext) -> View {
        let offers = self.offers();
        self.settle(self.rules.choose(&offers, context), &offers)
    }

    /// The variant `id`, because the application says so.
    ///
    /// # Errors
    ///
    /// When the server does not offer it, and says that it offers all it has.
    pub fn view(&self, id: &VariantId) -> Result<View, Error> {
        let offers = self.offers();
        if !offers.admit(id) {
            return Err(Error::NotOffered(id.clone()));
        }
        Ok(self.settle(Choice::new(Some(id), Reason::Named), &offers))
    }

    /// Whatever the server serves to a request without a selector.
    #[must_use]
    pub fn default_view(&self) -> View {
        let reason = match self.offers().is_empty() {
            true => Reason::NoVariants,
            false => Reason::Default,
        };
        View::new(self.clone(), Choice::new(None, reason))
    }

    /// The latest [`RECORDS`] choices, oldest first, for an audit.
    #[must_use]
    pub fn choices(&self) -> Vec<Record> {
        self.switching().records()
    }

    /// Tells of a notification that came through [`rmcp::service::Subscription`].
    ///
    /// Those never reach a handler. [`View::listen`] needs no telling.
    pub fn hear(&self, notification: &ServerNotification) {
        self.shared
            .memory
            .hear(notification, notification.get_meta());
    }

    /// Forgets all lists and resources.
    pub fn forget(&self) {
        self.shared.memory.clear();
    }

    /// What a model chose for `context`.
    fn remembered(&self, context: &TaskContext) -> Option<Choice> {
        self.chosen().get(context).cloned()
    }

    fn remember(&self, context: TaskContext, choice: &Choice) {
        let mut chosen = self.chosen();
        if chosen.len() >= model::REMEMBERED {
            chosen.pop_first();
        }
        chosen.insert(context, choice.clone());
    }

    fn chosen(&self) -> MutexGuard<'_, BTreeMap<TaskContext, Choice>> {
        let chosen = self.shared.chosen.lock();
        chosen.unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, wanted: Choice, offers: &Offers) -> View {
        let choice = self.switching().settle(wanted, offers, Instant::now());
        View::new(self.clone(), choice)
    }

    fn is_legacy(&self) -> bool {
        let info = self.peer().peer_info();
        info.is_none_or(|info| info.protocol_version.has_initialize())
    }

    fn switching(&self) -> MutexGuard<'_, Switching> {
        let switching = self.shared.switching.lock();
        switching.unwrap_or_else(PoisonError::into_inner)
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
        tracing::warn!(count = ignored.count(), %ignored, "offers of the server ignored");
    }
    offers
}
