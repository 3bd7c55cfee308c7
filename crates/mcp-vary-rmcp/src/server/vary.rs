//! The handler that speaks both extensions in front of others.

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
use super::face::Face;
use super::features::{declared_by, declared_in, era, remember};
use super::inner::Inner;
use super::offers::{Active, Offers, Permits};
use super::selection::Asker;
use super::session::Sessions;
use super::wire::to_error_data;

/// A handler with the extensions in front of it: serve it in place of the handler.
///
/// [`Vary::new`] negotiates content for one handler; [`Vary::builder`] makes everything else.
///
/// A clone serves another connection with the same handlers, so the factory of a
/// `StreamableHttpService` clones one that was built before: `move || Ok(server.clone())`.
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::server::Vary;
/// use rmcp::ServerHandler;
///
/// struct Weather;
/// impl ServerHandler for Weather {}
///
/// let extensions = Vary::new(Weather).get_info().capabilities.extensions.unwrap();
/// assert!(extensions["io.modelcontextprotocol/content-negotiation"].is_empty());
/// ```
#[derive(Debug)]
pub struct Vary {
    pub(super) shared: Arc<Shared>,
    pub(super) sessions: Sessions,
}

pub(super) struct Shared {
    pub(super) faces: Faces,
    pub(super) negotiates: bool,
    pub(super) required: Vec<ExtensionId>,
    pub(super) extensions: BTreeMap<ExtensionId, JsonObject>,
    pub(super) permits: Option<Permits>,
    pub(super) warnings: Vec<Warning>,
    pub(super) capabilities: Together,
}

/// The capabilities of each handler, and what they are together, as of when they were asked last.
pub(super) type Together = Mutex<Option<(Vec<ServerCapabilities>, ServerCapabilities)>>;

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("faces", &self.faces)
            .field("negotiates", &self.negotiates)
            .field("required", &self.required)
            .field("extensions", &self.extensions)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(super) enum Faces {
    /// No variants.
    One(Face),
    /// One for each variant.
    Many(Box<Offers>),
}

impl Vary {
    /// Content negotiation for `handler`, and no variants.
    #[must_use]
    pub fn new(handler: impl ServerHandler) -> Self {
        Self::from_shared(Shared {
            faces: Faces::One(Face::new(handler)),
            negotiates: true,
            required: Vec::new(),
            extensions: BTreeMap::new(),
            permits: None,
            warnings: Vec::new(),
            capabilities: Together::default(),
        })
    }

    /// Begins a server with variants.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// What was declared and is probably not meant.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.shared.warnings
    }

    pub(super) fn from_shared(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
            sessions: Sessions::default(),
        }
    }

    /// Each handler once, in the order of declaration.
    pub(super) fn handlers(&self) -> Vec<&Arc<dyn Inner>> {
        let faces = match &self.shared.faces {
            Faces::One(face) => std::slice::from_ref(face),
            Faces::Many(offers) => &offers.faces,
        };
        let mut handlers: Vec<&Arc<dyn Inner>> = Vec::new();
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

    pub(super) fn offers(&self) -> Option<&Offers> {
        match &self.shared.faces {
            Faces::One(_) => None,
            Faces::Many(offers) => Some(offers),
        }
    }

    /// Finds the face that answers a request, and prepares the request for its handler.
    pub(super) fn enter(
        &self,
        context: &mut RequestContext<RoleServer>,
    ) -> Result<Active<'_>, ErrorData> {
        self.check_required(context)?;
        let active = self.select(context)?;
        self.settle(&active, context)?;
        self.prepare(&active, context);
        Ok(active)
    }

    /// Gives the handler of the active face what it may want to know, and the client as it is to see it.
    pub(super) fn prepare(&self, active: &Active<'_>, context: &mut RequestContext<RoleServer>) {
        if let Some(variant) = active.variant {
            context.extensions.insert(ActiveVariant(variant.clone()));
            // A modern request's own stream carries no notification of a change.
            if era(context) == Era::Legacy {
                context.peer = self.sessions.peer(&context.peer, active);
            }
        }
    }

    /// Keeps the client's features with a request whose handler may have extractors.
    pub(super) fn keep_features(&self, context: &mut RequestContext<RoleServer>) {
        if self.shared.negotiates {
            remember(context);
        }
    }

    /// Counts and records the choice of a variant, where somebody wants that.
    ///
    /// A legacy session stands for itself, other requests for their principal.
    pub(super) fn settle(
        &self,
        active: &Active<'_>,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let (Some(offers), Some(variant)) = (self.offers(), active.variant) else {
            return Ok(());
        };
        if !offers.is_watched() {
            return Ok(());
        }
        let (hints, now) = (declared_by::<VariantHints>(context).value, Instant::now());
        let step = match era(context) {
            Era::Legacy => self.sessions.asker(&context.peer, |asker| {
                asker.go(variant, &hints, offers.limit, now)
            }),
            Era::Modern => {
                let principal = offers.principal(context);
                // Nobody in particular may be many, and one must not use up what another may do.
                let limit = offers.limit.filter(|_| !principal.is_empty());
                let go = |asker: &mut Asker| asker.go(variant, &hints, limit, now);
                Some(offers.askers.with(&principal, go))
            }
        };
        step.map_or(Ok(()), |step| offers.settle(active, context, step))
    }

    pub(super) fn select(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Active<'_>, ErrorData> {
        let mut active = match &self.shared.faces {
            Faces::Many(offers) => offers.select(context)?,
            Faces::One(_) if context.meta.contains_key(SERVER_VARIANT_META) => {
                return Err(to_error_data(&Error::VariantsNotSupported));
            }
            Faces::One(face) => Active::alone(face),
        };
        active.permits = self.shared.permits.as_ref();
        Ok(active)
    }

    /// A modern client declares what is required with each request.
    pub(super) fn check_required(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.shared.required.is_empty() || era(context) == Era::Legacy {
            return Ok(());
        }
        self.check_each(Era::Modern, |id| match id.as_str() {
            CONTENT_NEGOTIATION => declared_by::<feature::Features>(context).carrier.is_some(),
            SERVER_VARIANTS => declared_by::<VariantHints>(context).carrier.is_some(),
            id => context
                .client_capabilities()
                .is_some_and(|known| has(&known, id)),
        })
    }

    /// A legacy client declares it in `initialize`.
    pub(super) fn check_handshake(
        &self,
        capabilities: &ClientCapabilities,
    ) -> Result<(), ErrorData> {
        self.check_each(Era::Legacy, |id| match id.as_str() {
            CONTENT_NEGOTIATION => declares::<feature::Features>(capabilities),
            SERVER_VARIANTS => declares::<VariantHints>(capabilities),
            id => has(capabilities, id),
        })
    }

    fn check_each(
        &self,
        era: Era,
        is_declared: impl Fn(&ExtensionId) -> bool,
    ) -> Result<(), ErrorData> {
        match self.shared.required.iter().find(|id| !is_declared(id)) {
            None => Ok(()),
            Some(id) => Err(to_error_data(&Error::RequiredExtension {
                id: id.clone(),
                era,
            })),
        }
    }

    /// The capabilities of all handlers together; `own` are those that the first gave.
    ///
    /// rmcp asks with every modern request on HTTP, so that they are put together only when one changes.
    pub(super) fn capabilities(&self, own: ServerCapabilities) -> ServerCapabilities {
        let others = self.handlers().into_iter().skip(1);
        let parts: Vec<_> = std::iter::once(own)
            .chain(others.map(|handler| handler.info().capabilities))
            .collect();
        let mut known = self
            .shared
            .capabilities
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((of, all)) if *of == parts => all.clone(),
            _ => {
                let all = self.together(&parts);
                *known = Some((parts, all.clone()));
                all
            }
        }
    }

    fn together(&self, parts: &[ServerCapabilities]) -> ServerCapabilities {
        let parts = parts.iter().cloned();
        let mut all = parts.reduce(union).unwrap_or_default();
        if self.shared.negotiates {
            let extensions = all.extensions.get_or_insert_default();
            extensions
                .entry(CONTENT_NEGOTIATION.to_owned())
                .or_default();
        }
        for (id, settings) in &self.shared.extensions {
            let extensions = all.extensions.get_or_insert_default();
            extensions.insert(id.as_str().to_owned(), settings.clone());
        }
        all
    }

    /// What this client is told of the extensions.
    pub(super) fn advertise(
        &self,
        capabilities: &mut ServerCapabilities,
        context: &RequestContext<RoleServer>,
    ) {
        if self.shared.negotiates {
            let carrier = declared_by::<feature::Features>(context).carrier;
            mirror(capabilities, CONTENT_NEGOTIATION, &Map::new(), carrier);
        }
        if let Some(settings) = self.offers().and_then(|offers| offers.advertise(context)) {
            let carrier = declared_by::<VariantHints>(context).carrier;
            mirror(capabilities, SERVER_VARIANTS, &settings, carrier);
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(SERVER_VARIANTS.to_owned(), settings);
        }
    }

    /// What every handler supports.
    pub(super) fn versions(&self) -> Cow<'static, [rmcp::model::ProtocolVersion]> {
        let mut handlers = self.handlers().into_iter();
        let Some(first) = handlers.next() else {
            return Cow::Borrowed(&[]);
        };
        let mut versions = first.versions();
        for handler in handlers {
            let others = handler.versions();
            if versions != others {
                versions.to_mut().retain(|version| others.contains(version));
            }
        }
        versions
    }
}

/// Another connection's.
impl Clone for Vary {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            sessions: Sessions::default(),
        }
    }
}

/// The variant under which a handler was asked: take it beside `Parameters`, or from a context's
/// `extensions`.
///
/// A server without variants has none; then the extractor fails with an internal error.
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

fn has(capabilities: &ClientCapabilities, id: &str) -> bool {
    let extensions = capabilities.extensions.as_ref();
    extensions.is_some_and(|extensions| extensions.contains_key(id))
}

/// Declares the extension `id` also where the client did.
fn mirror(
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

/// What either of two servers can do.
fn union(one: ServerCapabilities, other: ServerCapabilities) -> ServerCapabilities {
    let (Ok(mut all), Ok(more)) = (serde_json::to_value(&one), serde_json::to_value(other)) else {
        return one;
    };
    merge(&mut all, more);
    serde_json::from_value(all).unwrap_or(one)
}

fn merge(all: &mut Value, more: Value) {
    match (all, more) {
        (Value::Object(all), Value::Object(more)) => {
            for (key, value) in more {
                merge(all.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Bool(all), Value::Bool(more)) => *all |= more,
        (all @ Value::Null, more) => *all = more,
        _ => {}
    }
}
