//! The server that adds both extensions to handlers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_vary::error::{Era, Error};
use mcp_vary::extension::{
    CONTENT_NEGOTIATION, Carrier, Declaration, ExtensionId, SERVER_VARIANT_META, SERVER_VARIANTS,
};
use mcp_vary::feature;
use mcp_vary::hints::VariantHints;
use mcp_vary::variant::{VariantId, Warning};
use rmcp::RoleServer;
use rmcp::handler::server::common::{AsRequestContext, FromContextPart};
use rmcp::model::{ClientCapabilities, JsonObject, ServerCapabilities};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::builder::Builder;
use super::dyn_handler::DynHandler;
use super::errors::to_error_data;
use super::features::{declared_by, declared_in, era, store_features};
use super::selection::SwitchCounter;
use super::session::Sessions;
use super::variant_handler::VariantHandler;
use super::variant_set::{PermissionFn, SelectedHandler, VariantSet};

/// A handler that adds both extensions to other handlers: serve it in their place.
///
/// [`VaryServer::new`] negotiates content for one handler; [`VaryServer::builder`] declares
/// everything else.
///
/// A clone serves another connection with the same handlers, so the factory of a
/// `StreamableHttpService` clones one server: `move || Ok(server.clone())`.
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::server::VaryServer;
/// use rmcp::ServerHandler;
///
/// struct Weather;
/// impl ServerHandler for Weather {}
///
/// let extensions = VaryServer::new(Weather).get_info().capabilities.extensions.unwrap();
/// assert!(extensions["io.modelcontextprotocol/content-negotiation"].is_empty());
/// ```
#[derive(Debug)]
pub struct VaryServer {
    pub(super) state: Arc<ServerState>,
    pub(super) sessions: Sessions,
}

pub(super) struct ServerState {
    pub(super) handlers: Handlers,
    pub(super) negotiates_content: bool,
    pub(super) required_extensions: Vec<ExtensionId>,
    pub(super) extensions: BTreeMap<ExtensionId, JsonObject>,
    pub(super) permission: Option<PermissionFn>,
    pub(super) warnings: Vec<Warning>,
    pub(super) capabilities_cache: CapabilitiesCache,
}

/// The capabilities of each handler and their union, when they were last merged.
pub(super) type CapabilitiesCache = Mutex<Option<(Vec<ServerCapabilities>, ServerCapabilities)>>;

impl fmt::Debug for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("faces", &self.handlers)
            .field("negotiates", &self.negotiates_content)
            .field("required", &self.required_extensions)
            .field("extensions", &self.extensions)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(super) enum Handlers {
    /// A server without variants.
    Single(VariantHandler),
    /// One handler for each variant.
    Variants(Box<VariantSet>),
}

impl VaryServer {
    /// Negotiates content for `handler`, without variants.
    #[must_use]
    pub fn new(handler: impl ServerHandler) -> Self {
        Self::from_shared(ServerState {
            handlers: Handlers::Single(VariantHandler::new(handler)),
            negotiates_content: true,
            required_extensions: Vec::new(),
            extensions: BTreeMap::new(),
            permission: None,
            warnings: Vec::new(),
            capabilities_cache: CapabilitiesCache::default(),
        })
    }

    /// Starts the declaration of a server with variants.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Warnings about the declaration: parts that are valid and probably wrong.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.state.warnings
    }

    pub(super) fn from_shared(shared: ServerState) -> Self {
        Self {
            state: Arc::new(shared),
            sessions: Sessions::default(),
        }
    }

    /// Each handler once, in the order of declaration.
    pub(super) fn distinct_handlers(&self) -> Vec<&Arc<dyn DynHandler>> {
        let faces = match &self.state.handlers {
            Handlers::Single(face) => std::slice::from_ref(face),
            Handlers::Variants(offers) => &offers.handlers,
        };
        let mut handlers: Vec<&Arc<dyn DynHandler>> = Vec::new();
        for face in faces {
            if !handlers
                .iter()
                .any(|known| Arc::ptr_eq(known, &face.handler))
            {
                handlers.push(&face.handler);
            }
        }
        handlers
    }

    pub(super) fn variants(&self) -> Option<&VariantSet> {
        match &self.state.handlers {
            Handlers::Single(_) => None,
            Handlers::Variants(offers) => Some(offers),
        }
    }

    /// Selects the variant of a request, and prepares the context for its handler.
    pub(super) fn begin_request(
        &self,
        context: &mut RequestContext<RoleServer>,
    ) -> Result<SelectedHandler<'_>, ErrorData> {
        self.check_required(context)?;
        let active = self.select_variant(context)?;
        self.record_selection(&active, context)?;
        self.prepare_context(&active, context);
        Ok(active)
    }

    /// Adds the active variant to the context, and replaces its peer by one that tags
    /// notifications.
    pub(super) fn prepare_context(
        &self,
        active: &SelectedHandler<'_>,
        context: &mut RequestContext<RoleServer>,
    ) {
        if let Some(variant) = active.variant {
            context.extensions.insert(ActiveVariant(variant.clone()));
            // The response stream of a modern request carries no change notifications.
            if era(context) == Era::Legacy {
                context.peer = self.sessions.peer_for(&context.peer, active);
            }
        }
    }

    /// Stores the client's features with a request whose handler may use extractors.
    pub(super) fn store_features(&self, context: &mut RequestContext<RoleServer>) {
        if self.state.negotiates_content {
            store_features(context);
        }
    }

    /// Counts and audits the selection, if the server has a limit or an audit.
    ///
    /// A legacy session has its own counter, other requests share that of their principal.
    pub(super) fn record_selection(
        &self,
        active: &SelectedHandler<'_>,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let (Some(offers), Some(variant)) = (self.variants(), active.variant) else {
            return Ok(());
        };
        if !offers.tracks_selections() {
            return Ok(());
        }
        let (hints, now) = (declared_by::<VariantHints>(context).value, Instant::now());
        let step = match era(context) {
            Era::Legacy => self.sessions.with_switch_counter(&context.peer, |asker| {
                asker.record(variant, &hints, offers.switch_limit, now)
            }),
            Era::Modern => {
                let principal = offers.principal(context);
                // Clients without a principal share the counter, so one could use up the switches
                // of another.
                let limit = offers.switch_limit.filter(|_| !principal.is_empty());
                let go = |asker: &mut SwitchCounter| asker.record(variant, &hints, limit, now);
                Some(offers.principal_switches.with_principal(&principal, go))
            }
        };
        step.map_or(Ok(()), |step| {
            offers.record_selection(active, context, step)
        })
    }

    pub(super) fn select_variant(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<SelectedHandler<'_>, ErrorData> {
        let mut active = match &self.state.handlers {
            Handlers::Variants(offers) => offers.select(context)?,
            Handlers::Single(_) if context.meta.contains_key(SERVER_VARIANT_META) => {
                return Err(to_error_data(&Error::VariantsNotSupported));
            }
            Handlers::Single(face) => SelectedHandler::without_variants(face),
        };
        active.permission = self.state.permission.as_ref();
        Ok(active)
    }

    /// Modern clients declare extensions with each request.
    pub(super) fn check_required(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.state.required_extensions.is_empty() || era(context) == Era::Legacy {
            return Ok(());
        }
        self.check_extensions(Era::Modern, |id| match id.as_str() {
            CONTENT_NEGOTIATION => declared_by::<feature::Features>(context).carrier.is_some(),
            SERVER_VARIANTS => declared_by::<VariantHints>(context).carrier.is_some(),
            id => context
                .client_capabilities()
                .is_some_and(|known| has_extension(&known, id)),
        })
    }

    /// Legacy clients declare extensions in `initialize`.
    pub(super) fn check_initialize(
        &self,
        capabilities: &ClientCapabilities,
    ) -> Result<(), ErrorData> {
        self.check_extensions(Era::Legacy, |id| match id.as_str() {
            CONTENT_NEGOTIATION => declares::<feature::Features>(capabilities),
            SERVER_VARIANTS => declares::<VariantHints>(capabilities),
            id => has_extension(capabilities, id),
        })
    }

    fn check_extensions(
        &self,
        era: Era,
        is_declared: impl Fn(&ExtensionId) -> bool,
    ) -> Result<(), ErrorData> {
        match self
            .state
            .required_extensions
            .iter()
            .find(|id| !is_declared(id))
        {
            None => Ok(()),
            Some(id) => Err(to_error_data(&Error::RequiredExtension {
                id: id.clone(),
                era,
            })),
        }
    }

    /// The union of the capabilities of all handlers; `own` are those of the first.
    ///
    /// rmcp calls this for every modern HTTP request, so the union is cached until one of them
    /// changes.
    pub(super) fn merged_capabilities(&self, own: ServerCapabilities) -> ServerCapabilities {
        let others = self.distinct_handlers().into_iter().skip(1);
        let parts: Vec<_> = std::iter::once(own)
            .chain(others.map(|handler| handler.server_info().capabilities))
            .collect();
        let mut known = self
            .state
            .capabilities_cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((of, all)) if *of == parts => all.clone(),
            _ => {
                let all = self.merge_capabilities(&parts);
                *known = Some((parts, all.clone()));
                all
            }
        }
    }

    fn merge_capabilities(&self, parts: &[ServerCapabilities]) -> ServerCapabilities {
        let parts = parts.iter().cloned();
        let mut all = parts.reduce(merge_pair).unwrap_or_default();
        if self.state.negotiates_content {
            let extensions = all.extensions.get_or_insert_default();
            extensions
                .entry(CONTENT_NEGOTIATION.to_owned())
                .or_default();
        }
        for (id, settings) in &self.state.extensions {
            let extensions = all.extensions.get_or_insert_default();
            extensions.insert(id.as_str().to_owned(), settings.clone());
        }
        all
    }

    /// Adds the extensions to the capabilities that this client receives.
    pub(super) fn advertise_extensions(
        &self,
        capabilities: &mut ServerCapabilities,
        context: &RequestContext<RoleServer>,
    ) {
        if self.state.negotiates_content {
            let carrier = declared_by::<feature::Features>(context).carrier;
            mirror_experimental(capabilities, CONTENT_NEGOTIATION, &Map::new(), carrier);
        }
        if let Some(settings) = self
            .variants()
            .and_then(|offers| offers.settings_for(context))
        {
            let carrier = declared_by::<VariantHints>(context).carrier;
            mirror_experimental(capabilities, SERVER_VARIANTS, &settings, carrier);
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(SERVER_VARIANTS.to_owned(), settings);
        }
    }

    /// The protocol versions that every handler supports.
    pub(super) fn protocol_versions(&self) -> Cow<'static, [rmcp::model::ProtocolVersion]> {
        let mut handlers = self.distinct_handlers().into_iter();
        let Some(first) = handlers.next() else {
            return Cow::Borrowed(&[]);
        };
        let mut versions = first.protocol_versions();
        for handler in handlers {
            let others = handler.protocol_versions();
            if versions != others {
                versions.to_mut().retain(|version| others.contains(version));
            }
        }
        versions
    }
}

/// A clone serves another connection, so it starts without sessions.
impl Clone for VaryServer {
    fn clone(&self) -> Self {
        Self {
            state: self.state.clone(),
            sessions: Sessions::default(),
        }
    }
}

/// The variant of a request: take it beside `Parameters`, or from a context's `extensions`.
///
/// Without variants the extractor fails with an internal error.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ActiveVariant(pub(super) VariantId);

impl ActiveVariant {
    /// Its identifier.
    #[must_use]
    pub fn id(&self) -> &VariantId {
        &self.0
    }
}

impl<C: AsRequestContext> FromContextPart<C> for ActiveVariant {
    fn from_context_part(context: &mut C) -> Result<Self, ErrorData> {
        let active = context.as_request_context().extensions.get::<Self>();
        active
            .cloned()
            .ok_or_else(|| ErrorData::internal_error("the server has no variants", None))
    }
}

fn declares<D: Declaration>(capabilities: &ClientCapabilities) -> bool {
    declared_in::<D>(capabilities).carrier.is_some()
}

fn has_extension(capabilities: &ClientCapabilities, id: &str) -> bool {
    let extensions = capabilities.extensions.as_ref();
    extensions.is_some_and(|extensions| extensions.contains_key(id))
}

/// Repeats the extension `id` under `experimental`, where the client declared it.
fn mirror_experimental(
    capabilities: &mut ServerCapabilities,
    id: &str,
    settings: &Map<String, Value>,
    carrier: Option<Carrier>,
) {
    let experimental = match carrier {
        None | Some(Carrier::Extensions) => return,
        Some(_) => capabilities.experimental.get_or_insert_default(),
    };
    match carrier {
        Some(Carrier::ExperimentalExtensions) => {
            let extensions = experimental.entry("extensions".to_owned()).or_default();
            extensions.insert(id.to_owned(), json!(settings));
        }
        _ => {
            experimental.insert(id.to_owned(), settings.clone());
        }
    }
}

/// The union of the capabilities of two handlers.
fn merge_pair(one: ServerCapabilities, other: ServerCapabilities) -> ServerCapabilities {
    let (Ok(mut all), Ok(more)) = (serde_json::to_value(&one), serde_json::to_value(other)) else {
        return one;
    };
    merge_values(&mut all, more);
    serde_json::from_value(all).unwrap_or(one)
}

fn merge_values(all: &mut Value, more: Value) {
    match (all, more) {
        (Value::Object(all), Value::Object(more)) => {
            for (key, value) in more {
                merge_values(all.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Bool(all), Value::Bool(more)) => *all |= more,
        (all @ Value::Null, more) => *all = more,
        _ => {}
    }
}
