//! The server that adds both extensions to handlers.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_vary::error::{Era, Error};
use mcp_vary::extension::{
    CONTENT_NEGOTIATION, Declaration, ExtensionId, SERVER_VARIANT_META, SERVER_VARIANTS,
};
use mcp_vary::feature;
use mcp_vary::hints::VariantHints;
use mcp_vary::variant::Warning;
use mcp_vary_base::lock::Lock;
use rmcp::ServerHandler;
use rmcp::model::{ClientCapabilities, JsonObject, ServerCapabilities};

use super::active_variant::ActiveVariant;
use super::dyn_handler::DynHandler;
use super::errors::to_error_data;
use super::features::{declared_by, declared_in, era, store_features};
use super::rules::{Context, McpResult};
use super::selected_handler::SelectedHandler;
use super::session::Sessions;
use super::variant_handler::VariantHandler;
use super::variant_set::VariantSet;

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
    pub(super) warnings: Vec<Warning>,
    pub(super) capabilities_cache: CapabilitiesCache,
}

/// The capabilities of each handler and their union, when they were last merged.
pub(super) type CapabilitiesCache = Lock<Option<(Vec<ServerCapabilities>, ServerCapabilities)>>;

mcp_vary_base::debug_by_name!(ServerState);

#[derive(Debug)]
pub(super) enum Handlers {
    /// A server without variants.
    Single(Box<VariantHandler>),
    /// One handler for each variant.
    Variants(Box<VariantSet>),
}

impl VaryServer {
    /// Negotiates content for `handler`, without variants.
    #[must_use]
    pub fn new(handler: impl ServerHandler) -> Self {
        Self::new_with(ServerState {
            handlers: Handlers::Single(Box::new(VariantHandler::new(handler))),
            negotiates_content: true,
            required_extensions: Vec::new(),
            extensions: BTreeMap::new(),
            warnings: Vec::new(),
            capabilities_cache: CapabilitiesCache::default(),
        })
    }

    /// Warnings about the declaration: parts that are valid and probably wrong.
    pub fn warnings(&self) -> &[Warning] {
        &self.state.warnings
    }

    pub(super) fn new_with(state: ServerState) -> Self {
        Self {
            state: Arc::new(state),
            sessions: Sessions::default(),
        }
    }

    /// Each handler once, in the order of declaration.
    pub(super) fn distinct_handlers(&self) -> Vec<&Arc<dyn DynHandler>> {
        let variant_handlers = match &self.state.handlers {
            Handlers::Single(handler) => std::slice::from_ref(&**handler),
            Handlers::Variants(variants) => &variants.handlers,
        };
        let mut handlers: Vec<&Arc<dyn DynHandler>> = Vec::new();
        for handler in variant_handlers {
            if !handlers
                .iter()
                .any(|known| Arc::ptr_eq(known, &handler.inner))
            {
                handlers.push(&handler.inner);
            }
        }
        handlers
    }

    pub(super) fn variants(&self) -> Option<&VariantSet> {
        match &self.state.handlers {
            Handlers::Single(_) => None,
            Handlers::Variants(variants) => Some(variants),
        }
    }

    /// Selects the variant of a request, and prepares the context for its handler.
    pub(super) fn begin_request(&self, context: &mut Context) -> McpResult<SelectedHandler<'_>> {
        self.check_required(context)?;
        let active = self.select_variant(context)?;
        self.prepare_context(&active, context);
        Ok(active)
    }

    /// Adds the active variant to the context, and replaces its peer by one that tags
    /// notifications.
    pub(super) fn prepare_context(&self, active: &SelectedHandler<'_>, context: &mut Context) {
        if let Some(variant) = active.variant {
            context.extensions.insert(ActiveVariant(variant.clone()));
            // The response stream of a modern request carries no change notifications.
            if era(context) == Era::Legacy {
                context.peer = self.sessions.peer_for(&context.peer, active);
            }
        }
    }

    /// Stores the client's features with a request whose handler may use extractors.
    pub(super) fn store_features(&self, context: &mut Context) {
        if self.state.negotiates_content {
            store_features(context);
        }
    }

    pub(super) fn select_variant(&self, context: &Context) -> McpResult<SelectedHandler<'_>> {
        match &self.state.handlers {
            Handlers::Variants(variants) => variants.select(context),
            Handlers::Single(_) if context.meta.contains_key(SERVER_VARIANT_META) => {
                Err(to_error_data(&Error::VariantsNotSupported))
            }
            Handlers::Single(handler) => Ok(SelectedHandler::without_variants(handler)),
        }
    }

    /// Modern clients declare extensions with each request.
    pub(super) fn check_required(&self, context: &Context) -> McpResult<()> {
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
    pub(super) fn check_initialize(&self, capabilities: &ClientCapabilities) -> McpResult<()> {
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
    ) -> McpResult<()> {
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

fn declares<D: Declaration>(capabilities: &ClientCapabilities) -> bool {
    declared_in::<D>(capabilities).carrier.is_some()
}

fn has_extension(capabilities: &ClientCapabilities, id: &str) -> bool {
    let extensions = capabilities.extensions.as_ref();
    extensions.is_some_and(|extensions| extensions.contains_key(id))
}
