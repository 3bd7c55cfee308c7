//! The declarations of the client that sent a request: its features, and its settings for any other
//! extension.

use std::ops::Deref;
use std::sync::Arc;

use mcp_vary::error::Era;
use mcp_vary::extension::{CLIENT_CAPABILITIES_META, Declaration, Declared, declared};
use mcp_vary::feature;
use mcp_vary::shape::ToolFacts;
use rmcp::RoleServer;
use rmcp::handler::server::common::{AsRequestContext, FromContextPart};
use rmcp::model::{ClientCapabilities, JsonObject, ProtocolVersion, Tool};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::active_variant::ActiveVariant;
use super::rules::{Context, McpResult};

/// The features of the client that sent a request: how it wants its content.
///
/// Take it beside `Parameters` in a `#[tool]` or `#[prompt]`, or read it from a context with
/// [`features`]. It [derefs](Deref) to the tags, [`mcp_vary::feature::Features`].
///
/// # Properties
///
/// A legacy client declares its features once, in `initialize`; a modern client declares them with
/// each request, and nothing is inferred from earlier requests. A client that declares nothing has
/// no features, and every method returns a safe default. Features shape content and never grant
/// anything.
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::server::{Features, VaryServer, answer};
/// use rmcp::model::CallToolResult;
/// use rmcp::{ErrorData, ServerHandler, tool, tool_handler, tool_router};
/// use serde_json::json;
///
/// struct Weather;
///
/// #[tool_router]
/// impl Weather {
///     #[tool(description = "The weather in Paris")]
///     async fn weather(&self, features: Features) -> Result<CallToolResult, ErrorData> {
///         let weather = answer(&json!({"celsius": 8, "sky": "cloudy"}))?
///             .with_markdown("**8 °C**, cloudy");
///         Ok(features.answer(&weather))
///     }
/// }
///
/// #[tool_handler]
/// impl ServerHandler for Weather {}
///
/// let server = VaryServer::new(Weather);
/// ```
#[derive(Clone, Debug)]
pub struct Features {
    declared: Declared<feature::Features>,
    era: Era,
    /// Whether the client's protocol revision lacks `structuredContent`.
    text_only: bool,
    variant: Option<String>,
    tool: Option<CalledTool>,
}

impl Features {
    /// Whether the client declared the extension, even without any tags.
    pub fn is_negotiated(&self) -> bool {
        self.declared.carrier.is_some()
    }

    /// The era of the request.
    pub fn era(&self) -> Era {
        self.era
    }

    /// Replaces the declared tags of the same keys by `tags`. Use it for tools whose arguments let
    /// the caller choose the format of one answer. Invalid tags are ignored.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::shape::Answer;
    /// use mcp_vary_rmcp::server::Features;
    /// use rmcp::model::CallToolResult;
    ///
    /// fn report(features: Features, format: Option<&str>, answer: &Answer) -> CallToolResult {
    ///     let format = format.map(|format| format!("format={format}"));
    ///     features.overridden_by(format.as_deref()).answer(answer)
    /// }
    /// ```
    #[must_use]
    pub fn overridden_by<'t>(mut self, tags: impl IntoIterator<Item = &'t str>) -> Self {
        let (tags, ignored) = feature::Features::from_tags(tags);
        if !ignored.is_empty() {
            tracing::debug!(%ignored, "feature tags of an argument ignored");
        }
        self.declared.value = self.declared.value.overridden_by(&tags);
        self
    }

    pub(super) fn is_text_only(&self) -> bool {
        self.text_only
    }

    pub(super) fn variant(&self) -> Option<&str> {
        self.variant.as_deref()
    }

    pub(super) fn tool(&self) -> ToolFacts {
        self.tool
            .as_ref()
            .map(|tool| tool.facts)
            .unwrap_or_default()
    }

    pub(super) fn output_schema(&self) -> Option<&Arc<JsonObject>> {
        self.tool.as_ref()?.output_schema.as_ref()
    }
}

impl Deref for Features {
    type Target = feature::Features;

    fn deref(&self) -> &Self::Target {
        &self.declared.value
    }
}

impl<C: AsRequestContext> FromContextPart<C> for Features {
    fn from_context_part(context: &mut C) -> McpResult<Self> {
        Ok(features(context.as_request_context()))
    }
}

/// The features of the client that sent this request.
///
/// Behind [`VaryServer`](super::VaryServer) they are available even after an extractor has emptied
/// parts of the context. Without it, take [`Features`] before `RequestMetaObject`, which empties
/// `_meta`.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Verbosity;
/// use mcp_vary_rmcp::server::features;
/// use rmcp::{RoleServer, service::RequestContext};
///
/// fn rows(context: &RequestContext<RoleServer>) -> usize {
///     let features = features(context);
///     match features.verbosity() {
///         Verbosity::Compact => 10,
///         _ if features.agent() => 1000,
///         // A custom tag: `x-acme-rows=50`.
///         _ => features.value("x-acme-rows").and_then(|rows| rows.parse().ok()).unwrap_or(100),
///     }
/// }
/// ```
#[must_use]
pub fn features(context: &RequestContext<RoleServer>) -> Features {
    let declared = match context.extensions.get::<StoredFeatures>() {
        Some(remembered) => remembered.0.clone(),
        None => declared_by(context),
    };
    if !declared.ignored.is_empty() {
        tracing::debug!(ignored = %declared.ignored, "feature tags ignored");
    }
    let variant = context.extensions.get::<ActiveVariant>();
    let tool = context.extensions.get::<CalledTool>();
    Features {
        declared,
        era: era(context),
        text_only: is_text_only(context),
        variant: variant.map(|active| active.id().as_str().to_owned()),
        tool: tool.cloned(),
    }
}

/// The settings that the client of a request declared for the extension `D`.
///
/// Works for any extension: implement [`Declaration`] for its settings. Reading never fails.
///
/// # Examples
///
/// ```
/// use mcp_vary::extension::Declaration;
/// use mcp_vary::ignored::Ignored;
/// use mcp_vary_rmcp::server::declared_by;
/// use rmcp::{RoleServer, service::RequestContext};
/// use serde_json::Value;
///
/// #[derive(Default)]
/// struct Units {
///     metric: bool,
/// }
///
/// impl Declaration for Units {
///     const ID: &'static str = "com.example/units";
///
///     fn read(settings: &Value) -> (Option<Self>, Ignored) {
///         let metric = settings["metric"] == true;
///         (Some(Self { metric }), Ignored::default())
///     }
/// }
///
/// fn is_metric(context: &RequestContext<RoleServer>) -> bool {
///     declared_by::<Units>(context).value.metric
/// }
/// ```
#[must_use]
pub fn declared_by<D: Declaration>(context: &RequestContext<RoleServer>) -> Declared<D> {
    if carries_capabilities(context) {
        let capabilities = context.meta.get(CLIENT_CAPABILITIES_META);
        return declared(capabilities.unwrap_or(&Value::Null));
    }
    match context.peer.peer_info() {
        Some(info) => declared_in(&info.capabilities),
        None => declared(&Value::Null),
    }
}

/// Like [`declared_by`], for capabilities that rmcp has parsed.
pub(super) fn declared_in<D: Declaration>(capabilities: &ClientCapabilities) -> Declared<D> {
    // Serialize only the members where the extension may be declared; the rest is not needed.
    let extensions = capabilities.extensions.as_ref().and_then(|e| e.get(D::ID));
    let mut found = json!({});
    if let Some(settings) = extensions {
        found["extensions"] = json!({D::ID: settings});
    }
    for key in [D::ID, "extensions"] {
        let experimental = capabilities.experimental.as_ref();
        if let Some(settings) = experimental.and_then(|e| e.get(key)) {
            found["experimental"][key] = json!(settings);
        }
    }
    declared(&found)
}

/// Stores the features in the request's extensions, where extractors cannot remove them.
pub(super) fn store_features(context: &mut Context) {
    let declared = declared_by::<feature::Features>(context);
    if declared.carrier.is_some() || !declared.ignored.is_empty() {
        context.extensions.insert(StoredFeatures(declared));
    }
}

/// The era of a request.
pub(super) fn era(context: &Context) -> Era {
    let of = |version: &str| {
        if version >= ProtocolVersion::V_2026_07_28.as_str() {
            Era::Modern
        } else {
            Era::Legacy
        }
    };
    // As `RequestContext::protocol_version`, without a copy.
    let in_meta = context.meta.get(PROTOCOL_VERSION_META);
    match in_meta.and_then(Value::as_str) {
        Some(version) => of(version),
        None => context
            .protocol_version()
            .map_or(Era::Legacy, |version| of(version.as_str())),
    }
}

/// Whether the protocol revision of the request is older than `structuredContent`.
fn is_text_only(context: &Context) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() < ProtocolVersion::V_2025_06_18.as_str())
}

/// Whether the request carries its own capabilities, so that those of the handshake do not apply.
fn carries_capabilities(context: &Context) -> bool {
    context.meta.contains_key(PROTOCOL_VERSION_META)
}

/// Whether the client of this request declared content negotiation.
pub(super) fn is_negotiating(context: &Context) -> bool {
    context.extensions.get::<StoredFeatures>().is_some()
}

/// The listed properties of the tool that is called.
#[derive(Clone, Debug)]
pub(super) struct CalledTool {
    facts: ToolFacts,
    output_schema: Option<Arc<JsonObject>>,
}

impl CalledTool {
    pub(super) fn new(tool: Tool) -> Self {
        let meta = tool.meta.as_ref();
        Self {
            facts: ToolFacts {
                output_schema: tool.output_schema.is_some(),
                ui: meta.is_some_and(|meta| meta.contains_key("ui")),
            },
            output_schema: tool.output_schema,
        }
    }
}

#[derive(Clone)]
struct StoredFeatures(Declared<feature::Features>);

const PROTOCOL_VERSION_META: &str = "io.modelcontextprotocol/protocolVersion";
