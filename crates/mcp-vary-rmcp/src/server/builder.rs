//! The builder of a server with variants, and the errors of a declaration.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcp_vary::cursor::CursorKeys;
use mcp_vary::error::Identifier;
use mcp_vary::extension::ExtensionId;
use mcp_vary::hints::VariantHints;
use mcp_vary::rank::{DEFAULT_ADVERTISED, Weights};
use mcp_vary::variant::{Date, ServerVariant, VariantDiagnostic, VariantId, Variants};
use rmcp::RoleServer;
use rmcp::model::JsonObject;
use rmcp::service::RequestContext;
use serde::Serialize;
use serde_json::Value;

use super::header::HeaderPolicy;
use super::selection::{AuditFn, SwitchCounters, VariantSelection};
use super::variant_handler::VariantHandler;
use super::variant_set::{
    ClockFn, DefaultVariantFn, PermissionFn, PrincipalFn, RankFn, RankingCache, VariantSet,
    VisibilityFn,
};
use super::vary_server::{CapabilitiesCache, Handlers, ServerState, VaryServer};
use crate::switch_limit::SwitchLimit;

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
///         ServerVariant::new("read-only".parse()?, "Looks, and changes nothing")
///             .with_hint("accessLevel", "readonly"),
///         all.with_view(reading),
///     )
///     .build()?;
/// # let _ = server;
///
/// // Every mistake is named.
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
    variants: Vec<(ServerVariant, VariantHandler)>,
    handler: Option<VariantHandler>,
    negotiates_content: bool,
    required_extensions: Vec<ExtensionId>,
    weights: Weights,
    ranker: Option<RankFn>,
    default_variant: Option<DefaultVariantFn>,
    header: HeaderPolicy,
    switch_limit: Option<SwitchLimit>,
    audit: Option<AuditFn>,
    permission: Option<PermissionFn>,
    extensions: Vec<(ExtensionId, Option<JsonObject>)>,
    visibility: Option<VisibilityFn>,
    principal: Option<PrincipalFn>,
    max_advertised: Option<usize>,
    advertised_only: bool,
    hides_available: bool,
    keys: Option<CursorKeys>,
    page_size: Option<NonZeroUsize>,
    clock: Option<ClockFn>,
    state_lifetime: Option<Duration>,
    today: Option<Date>,
}

impl Builder {
    /// Adds `variant`, served by `handler`: a handler, or a [`View`](super::View) of one.
    pub fn with_variant(mut self, variant: ServerVariant, face: impl Into<VariantHandler>) -> Self {
        self.variants.push((variant, face.into()));
        self
    }

    /// Serves one handler without variants, as [`VaryServer::new`] does.
    pub fn with_handler(mut self, face: impl Into<VariantHandler>) -> Self {
        self.handler = Some(face.into());
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
    /// deterministic.
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
        chosen: impl Fn(&RequestContext<RoleServer>) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.default_variant = Some(Arc::new(chosen));
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
    /// // Or: a client that says two things, or something that is not there, is told so.
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

    /// Limits how often a client may change its variant.
    ///
    /// Each legacy session is counted separately. Modern requests are counted by their
    /// [principal](Self::with_principal), and not counted without one. Requests above the limit are
    /// rejected with `-32000`; the error's data has the active variant and the seconds to wait.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # use mcp_vary_rmcp::server::VaryServer;
    /// use mcp_vary_rmcp::server::{SelectionOutcome, SwitchLimit};
    ///
    /// let builder = VaryServer::builder()
    ///     .with_switch_limit(SwitchLimit::new(30, Duration::from_secs(60)))
    ///     .with_audit(|_context, selection| match selection.outcome {
    ///         SelectionOutcome::Selected { variant, source, .. } => println!("{variant}, by {source:?}"),
    ///         SelectionOutcome::Rejected(error) => println!("{:?}: {error}", selection.principal),
    ///         _ => {}
    ///     });
    /// ```
    pub fn with_switch_limit(mut self, limit: SwitchLimit) -> Self {
        self.switch_limit = Some(limit);
        self
    }

    /// Calls `audit` for each selection that is new for its session or principal, for each change
    /// of hints, and for each rejected selection.
    ///
    /// The function runs while the request waits, so it must be fast.
    pub fn with_audit(
        mut self,
        audit: impl Fn(&RequestContext<RoleServer>, &VariantSelection<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.audit = Some(Arc::new(audit));
        self
    }

    /// Restricts tools, prompts and resources in all variants. `permission` gets the handler's name
    /// of each tool and prompt, and the URI or URI template of each resource, both when it is
    /// listed and when it is used. What it rejects is answered as if it did not exist.
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::VaryServer;
    /// # use rmcp::{RoleServer, service::RequestContext};
    /// # fn role(context: &RequestContext<RoleServer>) -> Option<&str> {
    /// #     let parts = context.extensions.get::<http::request::Parts>()?;
    /// #     parts.headers.get("x-role")?.to_str().ok()
    /// # }
    /// use mcp_vary::error::Identifier;
    ///
    /// let builder = VaryServer::builder()
    ///     // Who may see which face,
    ///     .with_visibility(|context, variant| variant.id != *"admin" || role(context) == Some("admin"))
    ///     // and who may use what, under any face.
    ///     .with_permission(|context, what| match what {
    ///         Identifier::Tool(name) => !name.starts_with("delete_") || role(context) == Some("admin"),
    ///         _ => true,
    ///     })
    ///     // Whose cursors are whose.
    ///     .with_principal(|context| role(context).unwrap_or_default().to_owned());
    /// ```
    pub fn with_permission(
        mut self,
        permits: impl Fn(&RequestContext<RoleServer>, &Identifier) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.permission = Some(Arc::new(permits));
        self
    }

    /// Shows a variant only to clients for which `visibility` returns `true`. For all others it
    /// does not exist.
    ///
    /// This decides which variants a client can select, not what it may do: handlers check that.
    pub fn with_visibility(
        mut self,
        sees: impl Fn(&RequestContext<RoleServer>, &ServerVariant) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.visibility = Some(Arc::new(sees));
        self
    }

    /// Identifies the principal of a request, so that a client cannot use another's cursors, and
    /// switches are counted for each. Without it all requests have the same empty principal.
    pub fn with_principal(
        mut self,
        principal: impl Fn(&RequestContext<RoleServer>) -> String + Send + Sync + 'static,
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
    /// // Seals with the first; what the others sealed still opens.
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

    /// Checks the declaration and builds the server.
    ///
    /// # Errors
    ///
    /// Returns all problems of the declaration.
    pub fn build(mut self) -> Result<VaryServer, BuildError> {
        let mut mistakes = self.diagnostics();
        let handler = self.handler.take();
        let (faces, warnings) = match handler {
            Some(face) if self.variants.is_empty() => (Some(Handlers::Single(face)), Vec::new()),
            _ => self.variant_set(&mut mistakes),
        };
        match faces {
            Some(faces) if mistakes.is_empty() => {
                for warning in &warnings {
                    tracing::warn!(%warning, "variant declared with a warning");
                }
                Ok(VaryServer::from_shared(ServerState {
                    handlers: faces,
                    negotiates_content: self.negotiates_content,
                    required_extensions: self.required_extensions,
                    extensions: self
                        .extensions
                        .into_iter()
                        .filter_map(|(id, settings)| Some((id, settings?)))
                        .collect(),
                    permission: self.permission,
                    warnings,
                    capabilities_cache: CapabilitiesCache::default(),
                }))
            }
            _ => Err(BuildError(mistakes)),
        }
    }

    fn diagnostics(&self) -> Vec<BuildDiagnostic> {
        let mut mistakes = Vec::new();
        match (&self.handler, self.variants.is_empty()) {
            (None, true) => mistakes.push(BuildDiagnostic::NothingToServe),
            (Some(_), false) => mistakes.push(BuildDiagnostic::HandlerAndVariants),
            (Some(_), true) if self.has_variant_settings() => {
                mistakes.push(BuildDiagnostic::NoVariants);
            }
            _ => {}
        }
        let unsettled = self
            .extensions
            .iter()
            .filter(|(_, settings)| settings.is_none());
        mistakes.extend(unsettled.map(|(id, _)| BuildDiagnostic::SettingsNotObject(id.clone())));
        if self
            .max_advertised
            .is_some_and(|limit| !(2..=DEFAULT_ADVERTISED).contains(&limit))
        {
            mistakes.push(BuildDiagnostic::AdvertisedOutOfRange);
        }
        let faces = self
            .variants
            .iter()
            .map(|(variant, face)| (Some(&variant.id), face));
        for (variant, face) in faces.chain(self.handler.iter().map(|face| (None, face))) {
            let views = face.view.iter().flat_map(|view| view.diagnostics());
            mistakes.extend(views.map(|what| BuildDiagnostic::View {
                variant: variant.cloned(),
                what,
            }));
        }
        mistakes
    }

    fn has_variant_settings(&self) -> bool {
        self.ranker.is_some()
            || self.default_variant.is_some()
            || self.header != HeaderPolicy::Ignored
            || self.switch_limit.is_some()
            || self.audit.is_some()
            || self.state_lifetime.is_some()
            || self.visibility.is_some()
            || self.principal.is_some()
            || self.max_advertised.is_some()
            || self.advertised_only
            || self.hides_available
            || self.keys.is_some()
            || self.page_size.is_some()
            || self.weights != Weights::default()
    }

    fn variant_set(
        &mut self,
        mistakes: &mut Vec<BuildDiagnostic>,
    ) -> (Option<Handlers>, Vec<mcp_vary::variant::Warning>) {
        if self.variants.is_empty() {
            return (None, Vec::new());
        }
        let (declared, faces): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.variants).into_iter().unzip();
        let (variants, warnings) =
            match Variants::new(declared, self.today.unwrap_or(Date::from_unix(0))) {
                Ok(checked) => checked,
                Err(wrong) => {
                    mistakes.extend(
                        wrong
                            .as_slice()
                            .iter()
                            .cloned()
                            .map(BuildDiagnostic::Variant),
                    );
                    return (None, Vec::new());
                }
            };
        let Some(keys) = self.keys.take().or_else(random_keys) else {
            mistakes.push(BuildDiagnostic::NoRandomness);
            return (None, warnings);
        };
        let offers = VariantSet {
            variants,
            handlers: faces,
            weights: std::mem::take(&mut self.weights),
            ranker: self.ranker.take(),
            default_variant: self.default_variant.take(),
            header: self.header,
            switch_limit: self.switch_limit,
            audit: self.audit.take(),
            visibility: self.visibility.take(),
            principal: self.principal.take(),
            max_advertised: self.max_advertised.unwrap_or(DEFAULT_ADVERTISED),
            advertised_only: self.advertised_only,
            lists_available: !self.hides_available,
            keys,
            page_size: self.page_size,
            clock: self.clock.take().unwrap_or_else(|| Arc::new(system_clock)),
            state_lifetime: self.state_lifetime.unwrap_or(STATE_LIFETIME),
            ranking_cache: RankingCache::default(),
            principal_switches: SwitchCounters::default(),
        };
        (Some(Handlers::Variants(Box::new(offers))), warnings)
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

/// All problems of a declaration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BuildError(Vec<BuildDiagnostic>);

impl BuildError {
    /// The problems; there is at least one.
    #[must_use]
    pub fn diagnostics(&self) -> &[BuildDiagnostic] {
        &self.0
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, mistake) in self.0.iter().enumerate() {
            let comma = if at > 0 { "; " } else { "" };
            write!(f, "{comma}{mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildError {}

/// One problem of a declaration. All but the last are mistakes in the declaration.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildDiagnostic {
    /// There is neither a variant nor a handler.
    #[error("nothing to serve; add a variant or a handler")]
    NothingToServe,
    /// There are variants and a handler without a variant.
    #[error("both variants and a handler are declared; remove one of them")]
    HandlerAndVariants,
    /// There are settings for variants, but no variants.
    #[error("there are settings for variants, but no variant; add one")]
    NoVariants,
    /// The settings of an extension are not a JSON object.
    #[error("the settings of the extension `{0}` are not a JSON object")]
    SettingsNotObject(ExtensionId),
    /// The number of advertised variants is out of range.
    #[error("the number of advertised variants must be 2 to {DEFAULT_ADVERTISED}")]
    AdvertisedOutOfRange,
    /// A variant, or the set of variants, is invalid.
    #[error(transparent)]
    Variant(#[from] VariantDiagnostic),
    /// A view contradicts itself.
    #[error("the view of {}: {what}", match variant { Some(id) => format!("variant `{id}`"), None => "the handler".to_owned() })]
    View {
        /// The variant; `None` for the handler of a server without variants.
        variant: Option<VariantId>,
        /// The problem and how to fix it.
        what: String,
    },
    /// The system has no random bytes.
    #[error("the system has no random bytes for a cursor key; set one with `with_cursor_keys`")]
    NoRandomness,
}

#[expect(
    clippy::disallowed_methods,
    reason = "what a state lives by, in every replica; an author may set another clock"
)]
fn system_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// One hour: enough for a person to log in at another site.
const STATE_LIFETIME: Duration = Duration::from_secs(60 * 60);

fn random_keys() -> Option<CursorKeys> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).ok()?;
    Some(CursorKeys::new(key))
}
