//! The builder of a server with variants, and the errors of a declaration.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::cursor::CursorKeys;
use mcp_vary::extension::ExtensionId;
use mcp_vary::hints::VariantHints;
use mcp_vary::rank::Weights;
use mcp_vary::variant::{Date, ServerVariant};
use rmcp::RoleServer;
use rmcp::model::JsonObject;
use rmcp::service::RequestContext;
use serde::Serialize;
use serde_json::Value;

use super::header::HeaderPolicy;
use super::rules::{ClockFn, DefaultVariantFn, PrincipalFn, RankFn, VisibilityFn};
use super::variant_handler::VariantHandler;
use super::vary_server::VaryServer;

/// Declares a server with variants: [`VaryServer::builder`].
///
/// # Properties
///
/// Nothing is checked before [`build`](Self::build), which reports all problems at once. Without
/// [`with_negotiation`](Self::with_negotiation) the server does not negotiate content.
///
/// # Examples
///
/// ```
/// use mcp_vary::variant::ServerVariant;
/// use mcp_vary_rmcp::server::{VariantHandler, VaryServer, View};
/// use rmcp::ServerHandler;
///
/// #[derive(Default)]
/// struct GitHub;
/// impl ServerHandler for GitHub {}
///
/// let all = VariantHandler::new(GitHub);
/// let reading = View::new().with_tools(["get_issue", "search_issues"]);
/// let server = VaryServer::builder()
///     .with_negotiation()
///     .with_variant(ServerVariant::new("standard".parse()?, "Everything"), all.clone())
///     .with_variant(
///         ServerVariant::new("read-only".parse()?, "Read-only tools")
///             .with_hint("accessLevel", "readonly"),
///         all.with_view(reading),
///     )
///     .build()?;
/// # let _ = server;
///
/// // `build` reports all problems.
/// let wrong = VaryServer::builder()
///     .with_variant(ServerVariant::new("a".parse()?, ""), GitHub)
///     .with_variant(ServerVariant::new("a".parse()?, ""), GitHub)
///     .with_handler(GitHub)
///     .build();
/// assert_eq!(
///     wrong.unwrap_err().to_string(),
///     "both variants and a handler are declared; remove one of them; variant `a` is declared twice; rename one",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
#[must_use = "nothing is served before `build`"]
pub struct Builder {
    pub(super) variants: Vec<(ServerVariant, VariantHandler)>,
    pub(super) handler: Option<VariantHandler>,
    pub(super) negotiates_content: bool,
    pub(super) required_extensions: Vec<ExtensionId>,
    pub(super) weights: Weights,
    pub(super) ranker: Option<RankFn>,
    pub(super) default_variant: Option<DefaultVariantFn>,
    pub(super) header: HeaderPolicy,
    pub(super) extensions: Vec<(ExtensionId, Option<JsonObject>)>,
    pub(super) visibility: Option<VisibilityFn>,
    pub(super) principal: Option<PrincipalFn>,
    pub(super) max_advertised: Option<usize>,
    pub(super) advertised_only: bool,
    pub(super) hides_available: bool,
    pub(super) keys: Option<CursorKeys>,
    pub(super) page_size: Option<NonZeroUsize>,
    pub(super) clock: Option<ClockFn>,
    pub(super) state_lifetime: Option<Duration>,
    pub(super) today: Option<Date>,
}

impl Builder {
    /// Adds `variant`, served by `handler`: a handler, or a [`View`](super::View) of one.
    pub fn with_variant(
        mut self,
        variant: ServerVariant,
        handler: impl Into<VariantHandler>,
    ) -> Self {
        self.variants.push((variant, handler.into()));
        self
    }

    /// Serves one handler without variants, as [`VaryServer::new`] does.
    pub fn with_handler(mut self, handler: impl Into<VariantHandler>) -> Self {
        self.handler = Some(handler.into());
        self
    }

    /// Advertises content negotiation. Handlers read what a client declared from
    /// [`Features`](super::Features).
    pub fn with_negotiation(mut self) -> Self {
        self.negotiates_content = true;
        self
    }

    /// Advertises another extension; its settings must serialize to a JSON object. Read a client's
    /// settings with [`declared_by`](super::declared_by).
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::VaryServer;
    /// use serde::Serialize;
    ///
    /// #[derive(Serialize)]
    /// struct Units {
    ///     systems: Vec<&'static str>,
    /// }
    ///
    /// let units = Units { systems: vec!["metric", "imperial"] };
    /// let builder = VaryServer::builder().with_extension("com.example/units".parse()?, units);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_extension(mut self, id: ExtensionId, settings: impl Serialize) -> Self {
        let settings = match serde_json::to_value(settings) {
            Ok(Value::Object(settings)) => Some(settings),
            _ => None,
        };
        self.extensions.push((id, settings));
        self
    }

    /// Rejects clients that do not declare `extension`: legacy clients in `initialize`, modern
    /// clients in every request except `server/discover`.
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::VaryServer;
    /// use mcp_vary::extension::CONTENT_NEGOTIATION;
    ///
    /// let builder = VaryServer::builder().with_negotiation().with_required_extension(CONTENT_NEGOTIATION.parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_required_extension(mut self, extension: ExtensionId) -> Self {
        self.required_extensions.push(extension);
        self
    }

    /// Ranks the variants by these weights instead of the extension's.
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::VaryServer;
    /// use mcp_vary::rank::Weights;
    ///
    /// // 60 for the client's first preference, 10 less for each after it.
    /// let builder = VaryServer::builder().with_weights(Weights::default().with("accessLevel", 60, 10));
    /// ```
    pub fn with_weights(mut self, weights: Weights) -> Self {
        self.weights = weights;
        self
    }

    /// Ranks the variants with your own function. `rank` gets the variants that the client can see
    /// and returns positions in that list, best first.
    ///
    /// The function cannot remove or add a variant: variants that it leaves out follow in the usual
    /// order, and unknown positions are ignored. The first variant is always one that may be the
    /// default. The function runs one or more times per request, so it must be fast and
    /// deterministic: it has no time limit, since a running function cannot be interrupted.
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::VaryServer;
    /// let builder = VaryServer::builder().with_ranking(|variants, hints| {
    ///     let wanted = hints.values("region");
    ///     let is_near = |at: &usize| {
    ///         let region = variants[*at].hints.get("region");
    ///         region.is_some_and(|region| wanted.contains(region))
    ///     };
    ///     (0..variants.len()).filter(is_near).collect()
    /// });
    /// ```
    pub fn with_ranking(
        mut self,
        rank: impl Fn(&[&ServerVariant], &VariantHints) -> Vec<usize> + Send + Sync + 'static,
    ) -> Self {
        self.ranker = Some(Arc::new(rank));
        self
    }

    /// Selects a client's default variant from the request context, such as the URL path, and moves
    /// it to the front of the offers. A variant that the client cannot see is ignored.
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::VaryServer;
    /// let builder = VaryServer::builder().with_default_variant(|context| {
    ///     let parts = context.extensions.get::<http::request::Parts>()?;
    ///     let variant = parts.uri.path().strip_prefix("/mcp/v/")?;
    ///     Some(variant.to_owned())
    /// });
    /// ```
    pub fn with_default_variant(
        mut self,
        default_variant: impl Fn(&RequestContext<RoleServer>) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.default_variant = Some(Arc::new(default_variant));
        self
    }

    /// Lets the HTTP header `MCP-Server-Variant` select the default variant. It comes before
    /// [`with_default_variant`](Self::with_default_variant).
    ///
    /// A selector in `_meta` takes precedence. A variant that the client cannot see is ignored, as
    /// if there were no header.
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::VaryServer;
    /// let builder = VaryServer::builder().with_variant_header();
    /// // Or reject headers that contradict `_meta` or name an unknown variant.
    /// let strict = VaryServer::builder().with_strict_variant_header();
    /// ```
    pub fn with_variant_header(mut self) -> Self {
        self.header = HeaderPolicy::SelectsDefault;
        self
    }

    /// Like [`with_variant_header`](Self::with_variant_header), and rejects requests whose header
    /// contradicts `_meta` or names a variant that the client cannot see.
    ///
    /// A contradiction is error `-32020` with HTTP status 400, as for any header that contradicts
    /// the body; legacy clients get `-32602`.
    pub fn with_strict_variant_header(mut self) -> Self {
        self.header = HeaderPolicy::Strict;
        self
    }

    /// Shows a variant only to clients for which `visibility` returns `true`. For all others it
    /// does not exist.
    ///
    /// This decides which variants a client can select, not what it may do: handlers check that.
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::VaryServer;
    /// # use rmcp::{RoleServer, service::RequestContext};
    /// # fn role(context: &RequestContext<RoleServer>) -> Option<&str> {
    /// #     let parts = context.extensions.get::<http::request::Parts>()?;
    /// #     parts.headers.get("x-role")?.to_str().ok()
    /// # }
    /// let builder = VaryServer::builder()
    ///     // Which clients see which variant.
    ///     .with_visibility(|context, variant| variant.id != *"admin" || role(context) == Some("admin"))
    ///     // Cursors and states are bound to this principal.
    ///     .with_principal(|context| role(context).map(str::to_owned));
    /// ```
    pub fn with_visibility(
        mut self,
        visibility: impl Fn(&RequestContext<RoleServer>, &ServerVariant) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.visibility = Some(Arc::new(visibility));
        self
    }

    /// Identifies the principal of a request: a client cannot use another's cursors and states.
    /// `None` is an anonymous client, as are all clients without this function.
    ///
    /// The function runs one or more times per request, so it must be fast. It checks no
    /// credentials: let a layer in front of the server do that, and put the principal into the
    /// extensions of the HTTP request, which are in the extensions of the context.
    pub fn with_principal(
        mut self,
        principal: impl Fn(&RequestContext<RoleServer>) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.principal = Some(Arc::new(principal));
        self
    }

    /// Sets how many variants are advertised: 2 to 5; the default is 5.
    pub fn with_max_advertised(mut self, limit: usize) -> Self {
        self.max_advertised = Some(limit);
        self
    }

    /// Accepts only advertised variants. By default a client can select any variant that it can
    /// see.
    pub fn with_advertised_only(mut self) -> Self {
        self.advertised_only = true;
        self
    }

    /// Leaves the list of variants out of error data.
    pub fn without_enumeration(mut self) -> Self {
        self.hides_available = true;
        self
    }

    /// Sets how long a request with several round trips may take in total; one hour by default.
    ///
    /// The state that a handler returns for the next round trip is accepted only within this time,
    /// for the same variant, method, name, arguments and principal.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # use mcp_vary_rmcp::server::VaryServer;
    /// let builder = VaryServer::builder().with_state_lifetime(Duration::from_secs(5 * 60));
    /// ```
    pub fn with_state_lifetime(mut self, lifetime: Duration) -> Self {
        self.state_lifetime = Some(lifetime);
        self
    }

    /// Sets the clock, in seconds since 1970; the system's clock by default.
    pub fn with_clock(mut self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Seals cursors with `keys`. Use the same keys in every replica and after a restart. By
    /// default each [`build`](Self::build) draws a random key.
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::VaryServer;
    /// # let (this_month, last_month) = ([2; 32], [1; 32]);
    /// use mcp_vary::cursor::CursorKeys;
    ///
    /// // New cursors use the first key; cursors of the others are still accepted.
    /// let keys = CursorKeys::new(this_month).with_previous([last_month]);
    /// let builder = VaryServer::builder().with_cursor_keys(keys).with_page_size(50.try_into()?);
    /// # Ok::<(), std::num::TryFromIntError>(())
    /// ```
    pub fn with_cursor_keys(mut self, keys: CursorKeys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Splits lists into pages of this size. By default the handlers' pages are used.
    pub fn with_page_size(mut self, size: NonZeroUsize) -> Self {
        self.page_size = Some(size);
        self
    }

    /// Adds warnings for removal dates before `today`: see [`VaryServer::warnings`].
    pub fn with_today(mut self, today: Date) -> Self {
        self.today = Some(today);
        self
    }
}

impl VaryServer {
    /// Starts the declaration of a server with variants.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("variants", &self.variants)
            .field("negotiates", &self.negotiates_content)
            .field("required", &self.required_extensions)
            .finish_non_exhaustive()
    }
}
