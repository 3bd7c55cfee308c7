//! Declaring a server with variants, and what can be wrong with it.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcp_vary::cursor::CursorKeys;
use mcp_vary::error::Identifier;
use mcp_vary::extension::ExtensionId;
use mcp_vary::hints::VariantHints;
use mcp_vary::rank::{ADVERTISED, Weights};
use mcp_vary::variant::{Date, Mistake, ServerVariant, VariantId, Variants};
use rmcp::RoleServer;
use rmcp::model::JsonObject;
use rmcp::service::RequestContext;
use serde::Serialize;
use serde_json::Value;

use super::face::Face;
use super::header::HeaderRule;
use super::offers::{Chosen, Clock, Offers, Permits, Principal, Ranker, Rankings, Sees};
use super::selection::{Askers, Audit, Selection};
use super::vary::{Faces, Shared, Together, Vary};
use crate::limit::SwitchLimit;

/// Declares a server with variants: [`Vary::builder`].
///
/// # Properties
///
/// Nothing is checked before [`build`](Self::build), which names every mistake at once. Without
/// [`with_negotiation`](Self::with_negotiation) the server does not negotiate content.
///
/// # Examples
///
/// ```
/// use mcp_vary::variant::ServerVariant;
/// use mcp_vary_rmcp::server::{Face, Vary, View};
/// use rmcp::ServerHandler;
///
/// #[derive(Default)]
/// struct GitHub;
/// impl ServerHandler for GitHub {}
///
/// let all = Face::new(GitHub);
/// let reading = View::new().with_tools(["get_issue", "search_issues"]);
/// let server = Vary::builder()
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
/// let wrong = Vary::builder()
///     .with_variant(ServerVariant::new("a".parse()?, ""), GitHub)
///     .with_variant(ServerVariant::new("a".parse()?, ""), GitHub)
///     .with_handler(GitHub)
///     .build();
/// assert_eq!(
///     wrong.unwrap_err().to_string(),
///     "there are variants and a handler of its own; keep one; variant `a` is declared twice; rename one",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
#[must_use = "nothing is served before `build`"]
pub struct Builder {
    variants: Vec<(ServerVariant, Face)>,
    handler: Option<Face>,
    negotiates: bool,
    required: Vec<ExtensionId>,
    weights: Weights,
    ranker: Option<Ranker>,
    chosen: Option<Chosen>,
    header: HeaderRule,
    limit: Option<SwitchLimit>,
    audit: Option<Audit>,
    permits: Option<Permits>,
    extensions: Vec<(ExtensionId, Option<JsonObject>)>,
    sees: Option<Sees>,
    principal: Option<Principal>,
    advertised: Option<usize>,
    advertised_only: bool,
    hides_available: bool,
    keys: Option<CursorKeys>,
    page_size: Option<NonZeroUsize>,
    clock: Option<Clock>,
    state_lifetime: Option<Duration>,
    today: Option<Date>,
}

impl Builder {
    /// Offers `variant`, which shows `face`: a handler, or a [`View`](super::View) of one.
    pub fn with_variant(mut self, variant: ServerVariant, face: impl Into<Face>) -> Self {
        self.variants.push((variant, face.into()));
        self
    }

    /// Serves one handler without variants, as [`Vary::new`] does.
    pub fn with_handler(mut self, face: impl Into<Face>) -> Self {
        self.handler = Some(face.into());
        self
    }

    /// Advertises content negotiation; [`Features`](super::Features) are what handlers do with it.
    pub fn with_negotiation(mut self) -> Self {
        self.negotiates = true;
        self
    }

    /// Advertises any other extension, with settings that are written as a JSON object. What a
    /// client declares for it is [`declared_by`](super::declared_by).
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::Vary;
    /// use serde::Serialize;
    ///
    /// #[derive(Serialize)]
    /// struct Units {
    ///     systems: Vec<&'static str>,
    /// }
    ///
    /// let units = Units { systems: vec!["metric", "imperial"] };
    /// let builder = Vary::builder().with_extension("com.example/units".parse()?, units);
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

    /// Refuses clients that do not declare `extension`: in `initialize`, and in each modern
    /// request but `server/discover`.
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::Vary;
    /// use mcp_vary::extension::CONTENT_NEGOTIATION;
    ///
    /// let builder = Vary::builder().with_negotiation().with_required(CONTENT_NEGOTIATION.parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_required(mut self, extension: ExtensionId) -> Self {
        self.required.push(extension);
        self
    }

    /// Ranks by other weights than the extension's.
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::Vary;
    /// use mcp_vary::rank::Weights;
    ///
    /// // 60 for the client's first preference, 10 less for each after it.
    /// let builder = Vary::builder().with_weights(Weights::default().with("accessLevel", 60, 10));
    /// ```
    pub fn with_weights(mut self, weights: Weights) -> Self {
        self.weights = weights;
        self
    }

    /// Ranks in another way: `rank` is given what the client may see, and returns positions in
    /// that, the best first.
    ///
    /// It can neither lose nor invent a variant: what it leaves out follows in the order of the
    /// rules, and a position that does not exist is passed over. The first stays one that may be
    /// the default. It is asked once or more per request, so it must be fast and always say the same.
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::Vary;
    /// let builder = Vary::builder().with_ranking(|variants, hints| {
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

    /// Chooses the default of a client from outside the message, such as from its path, and moves it
    /// to the front of the offers. What the client does not see is passed over.
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::Vary;
    /// let builder = Vary::builder().with_default(|context| {
    ///     let parts = context.extensions.get::<http::request::Parts>()?;
    ///     let variant = parts.uri.path().strip_prefix("/mcp/v/")?;
    ///     Some(variant.to_owned())
    /// });
    /// ```
    pub fn with_default(
        mut self,
        chosen: impl Fn(&RequestContext<RoleServer>) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.chosen = Some(Arc::new(chosen));
        self
    }

    /// Lets the HTTP header `MCP-Server-Variant` choose the default, before [`with_default`](Self::with_default).
    ///
    /// `_meta` wins. What the client does not see is passed over, as if there were no header.
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::Vary;
    /// let builder = Vary::builder().with_header();
    /// // Or: a client that says two things, or something that is not there, is told so.
    /// let strict = Vary::builder().with_strict_header();
    /// ```
    pub fn with_header(mut self) -> Self {
        self.header = HeaderRule::Default;
        self
    }

    /// Like [`with_header`](Self::with_header), and refuses a request whose header contradicts its
    /// `_meta`, or names no variant that the client sees.
    ///
    /// A contradiction is `-32020` with HTTP status 400, as of any header that says something else
    /// than the body; `-32602` for legacy clients.
    pub fn with_strict_header(mut self) -> Self {
        self.header = HeaderRule::Strict;
        self
    }

    /// Limits how often a client may change its variant.
    ///
    /// A legacy session is counted by itself, the requests of modern clients by their
    /// [principal](Self::with_principal), and those of nobody in particular not at all. What is too
    /// much is refused with `-32000` and, in its data, the variant that the client is in and the
    /// seconds to wait.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # use mcp_vary_rmcp::server::Vary;
    /// use mcp_vary_rmcp::server::{Outcome, SwitchLimit};
    ///
    /// let builder = Vary::builder()
    ///     .with_switch_limit(SwitchLimit::new(30, Duration::from_secs(60)))
    ///     .with_audit(|_context, selection| match selection.outcome {
    ///         Outcome::Chosen { variant, by, .. } => println!("{variant}, by {by:?}"),
    ///         Outcome::Refused(error) => println!("{:?}: {error}", selection.principal),
    ///         _ => {}
    ///     });
    /// ```
    pub fn with_switch_limit(mut self, limit: SwitchLimit) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Tells `audit` of each choice of a variant that is new for its session or principal, or of new
    /// hints, and of each that is refused.
    ///
    /// It is asked in the course of the request, so it must be fast.
    pub fn with_audit(
        mut self,
        audit: impl Fn(&RequestContext<RoleServer>, &Selection<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.audit = Some(Arc::new(audit));
        self
    }

    /// Permits tools, prompts and resources, whatever the variant. `permits` is asked with the
    /// handler's own name of each, or its URI or template, when it is listed and when it is used;
    /// what it refuses answers as if it did not exist.
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::Vary;
    /// # use rmcp::{RoleServer, service::RequestContext};
    /// # fn role(context: &RequestContext<RoleServer>) -> Option<&str> {
    /// #     let parts = context.extensions.get::<http::request::Parts>()?;
    /// #     parts.headers.get("x-role")?.to_str().ok()
    /// # }
    /// use mcp_vary::error::Identifier;
    ///
    /// let builder = Vary::builder()
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
        self.permits = Some(Arc::new(permits));
        self
    }

    /// Shows a variant only to the clients for which `sees` holds. To the others it does not exist.
    ///
    /// This decides which faces a client may put on, not what it may do: handlers check that.
    pub fn with_visibility(
        mut self,
        sees: impl Fn(&RequestContext<RoleServer>, &ServerVariant) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.sees = Some(Arc::new(sees));
        self
    }

    /// Who asks, so that one client's cursors do not open for another, and its switches are its own;
    /// nobody in particular if this is not set.
    pub fn with_principal(
        mut self,
        principal: impl Fn(&RequestContext<RoleServer>) -> String + Send + Sync + 'static,
    ) -> Self {
        self.principal = Some(Arc::new(principal));
        self
    }

    /// How many variants are advertised: 2 to 5, the default 5.
    pub fn with_advertised(mut self, limit: usize) -> Self {
        self.advertised = Some(limit);
        self
    }

    /// Accepts only variants that were advertised. Otherwise any that the client sees will do.
    pub fn with_advertised_only(mut self) -> Self {
        self.advertised_only = true;
        self
    }

    /// Does not say in an error which variants there are.
    pub fn without_enumeration(mut self) -> Self {
        self.hides_available = true;
        self
    }

    /// How long a request that takes several rounds may take in all; an hour unless set.
    ///
    /// What a handler wants to see again in the next round comes back only under the same variant,
    /// to the same request with the same arguments, from the same principal, and in this time.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # use mcp_vary_rmcp::server::Vary;
    /// let builder = Vary::builder().with_state_lifetime(Duration::from_secs(5 * 60));
    /// ```
    pub fn with_state_lifetime(mut self, lifetime: Duration) -> Self {
        self.state_lifetime = Some(lifetime);
        self
    }

    /// What time it is, in seconds since 1970; the system's clock unless set.
    pub fn with_clock(mut self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Seals cursors with `keys`, the same in every replica and after a restart. Otherwise a key
    /// is drawn by each [`build`](Self::build).
    ///
    /// ```
    /// # use mcp_vary_rmcp::server::Vary;
    /// # let (this_month, last_month) = ([2; 32], [1; 32]);
    /// use mcp_vary::cursor::CursorKeys;
    ///
    /// // Seals with the first; what the others sealed still opens.
    /// let keys = CursorKeys::new(this_month).with_previous([last_month]);
    /// let builder = Vary::builder().with_cursor_keys(keys).with_page_size(50.try_into()?);
    /// # Ok::<(), std::num::TryFromIntError>(())
    /// ```
    pub fn with_cursor_keys(mut self, keys: CursorKeys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Cuts lists into pages of this size. Otherwise the pages are the handlers'.
    pub fn with_page_size(mut self, size: NonZeroUsize) -> Self {
        self.page_size = Some(size);
        self
    }

    /// Warns of removal dates that are past on `today`: see [`Vary::warnings`].
    pub fn with_today(mut self, today: Date) -> Self {
        self.today = Some(today);
        self
    }

    /// The server.
    ///
    /// # Errors
    ///
    /// All that is wrong with the declaration.
    pub fn build(mut self) -> Result<Vary, BuildError> {
        let mut mistakes = self.mistakes();
        let handler = self.handler.take();
        let (faces, warnings) = match handler {
            Some(face) if self.variants.is_empty() => (Some(Faces::One(face)), Vec::new()),
            _ => self.offers(&mut mistakes),
        };
        match faces {
            Some(faces) if mistakes.is_empty() => {
                for warning in &warnings {
                    tracing::warn!(%warning, "variant declared");
                }
                Ok(Vary::from_shared(Shared {
                    faces,
                    negotiates: self.negotiates,
                    required: self.required,
                    extensions: self
                        .extensions
                        .into_iter()
                        .filter_map(|(id, settings)| Some((id, settings?)))
                        .collect(),
                    permits: self.permits,
                    warnings,
                    capabilities: Together::default(),
                }))
            }
            _ => Err(BuildError(mistakes)),
        }
    }

    fn mistakes(&self) -> Vec<BuildMistake> {
        let mut mistakes = Vec::new();
        match (&self.handler, self.variants.is_empty()) {
            (None, true) => mistakes.push(BuildMistake::Nothing),
            (Some(_), false) => mistakes.push(BuildMistake::HandlerAndVariants),
            (Some(_), true) if self.has_rules_for_variants() => {
                mistakes.push(BuildMistake::NoVariants);
            }
            _ => {}
        }
        let unsettled = self
            .extensions
            .iter()
            .filter(|(_, settings)| settings.is_none());
        mistakes.extend(unsettled.map(|(id, _)| BuildMistake::Settings(id.clone())));
        if self
            .advertised
            .is_some_and(|limit| !(2..=ADVERTISED).contains(&limit))
        {
            mistakes.push(BuildMistake::Advertised);
        }
        let faces = self
            .variants
            .iter()
            .map(|(variant, face)| (Some(&variant.id), face));
        for (variant, face) in faces.chain(self.handler.iter().map(|face| (None, face))) {
            let views = face.view.iter().flat_map(|view| view.mistakes());
            mistakes.extend(views.map(|what| BuildMistake::View {
                variant: variant.cloned(),
                what,
            }));
        }
        mistakes
    }

    fn has_rules_for_variants(&self) -> bool {
        self.ranker.is_some()
            || self.chosen.is_some()
            || self.header != HeaderRule::Unread
            || self.limit.is_some()
            || self.audit.is_some()
            || self.state_lifetime.is_some()
            || self.sees.is_some()
            || self.principal.is_some()
            || self.advertised.is_some()
            || self.advertised_only
            || self.hides_available
            || self.keys.is_some()
            || self.page_size.is_some()
            || self.weights != Weights::default()
    }

    fn offers(
        &mut self,
        mistakes: &mut Vec<BuildMistake>,
    ) -> (Option<Faces>, Vec<mcp_vary::variant::Warning>) {
        if self.variants.is_empty() {
            return (None, Vec::new());
        }
        let (declared, faces): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.variants).into_iter().unzip();
        let (variants, warnings) =
            match Variants::new(declared, self.today.unwrap_or(Date::from_unix(0))) {
                Ok(checked) => checked,
                Err(wrong) => {
                    mistakes.extend(wrong.all().iter().cloned().map(BuildMistake::Variant));
                    return (None, Vec::new());
                }
            };
        let Some(keys) = self.keys.take().or_else(random_keys) else {
            mistakes.push(BuildMistake::NoRandomness);
            return (None, warnings);
        };
        let offers = Offers {
            variants,
            faces,
            weights: std::mem::take(&mut self.weights),
            ranker: self.ranker.take(),
            chosen: self.chosen.take(),
            header: self.header,
            limit: self.limit,
            audit: self.audit.take(),
            sees: self.sees.take(),
            principal: self.principal.take(),
            advertised: self.advertised.unwrap_or(ADVERTISED),
            advertised_only: self.advertised_only,
            enumerates: !self.hides_available,
            keys,
            page_size: self.page_size,
            clock: self.clock.take().unwrap_or_else(|| Arc::new(system_clock)),
            state_lifetime: self.state_lifetime.unwrap_or(STATE_LIFETIME),
            rankings: Rankings::default(),
            askers: Askers::default(),
        };
        (Some(Faces::Many(Box::new(offers))), warnings)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("variants", &self.variants)
            .field("negotiates", &self.negotiates)
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

/// Everything that is wrong with a declaration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BuildError(Vec<BuildMistake>);

impl BuildError {
    /// Each mistake; there is at least one.
    #[must_use]
    pub fn all(&self) -> &[BuildMistake] {
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

/// One thing that is wrong with a declaration. All but the last are the author's fault.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildMistake {
    /// There is neither a variant nor a handler.
    #[error("there is nothing to serve; add a variant")]
    Nothing,
    /// There are both.
    #[error("there are variants and a handler of its own; keep one")]
    HandlerAndVariants,
    /// There are rules for variants, and none of these.
    #[error("there are rules for variants and no variant; add one")]
    NoVariants,
    /// The settings of an extension are no JSON object.
    #[error("the settings of the extension `{0}` are not a JSON object")]
    Settings(ExtensionId),
    /// The limit is out of range.
    #[error("2 to {ADVERTISED} variants are advertised; choose a number between them")]
    Advertised,
    /// A variant, or all of them, cannot be offered.
    #[error(transparent)]
    Variant(#[from] Mistake),
    /// A view contradicts itself.
    #[error("the view of {}: {what}", match variant { Some(id) => format!("variant `{id}`"), None => "the handler".to_owned() })]
    View {
        /// The variant; none for the handler of a server without variants.
        variant: Option<VariantId>,
        /// What is wrong, and the fix.
        what: String,
    },
    /// The system gave no random bytes.
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

/// Long enough for a person to log in somewhere.
const STATE_LIFETIME: Duration = Duration::from_secs(60 * 60);

fn random_keys() -> Option<CursorKeys> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).ok()?;
    Some(CursorKeys::new(key))
}
