//! A client handler that declares the extensions in its capabilities.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_vary::extension::{CONTENT_NEGOTIATION, ExtensionId, SERVER_VARIANTS};
use mcp_vary::feature::{FeatureTag, Features};
use mcp_vary::hints::VariantHints;
use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientResult, GetMeta as _, JsonObject,
    NotificationMetaObject, ServerNotification, ServerRequest,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient, Service};
use serde::Serialize;
use serde_json::Value;

use super::cache::VariantCache;

/// A client handler that declares the extensions, and tracks which lists have changed.
///
/// It wraps your handler and forwards everything to it. Serve it in place of your handler, and pass
/// it to [`Client::new`](super::Client::new).
///
/// # Properties
///
/// Server variants are always declared, with the hints if there are any. Content negotiation is
/// declared [on request](Self::with_features), and so is [any other
/// extension](Self::with_extension). Settings that the wrapped handler declares for an extension
/// take precedence. The same declaration is sent in `initialize` and with every request of a modern
/// connection.
///
/// The SDK can declare extensions as objects only, so no other form is written.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use mcp_vary_rmcp::client::DeclaringClient;
/// use rmcp::model::{ClientCapabilities, ClientConfig, Implementation};
/// use rmcp::service::Service as _;
///
/// let capabilities = ClientCapabilities::builder().enable_sampling().build();
/// let handler = ClientConfig::new(capabilities, Implementation::new("my-agent", "1.0"));
/// let (features, _) = Features::from_tags(["agent", "format=json"]);
/// let declaring = DeclaringClient::new(handler).with_features(features);
///
/// let declared = declaring.get_info().capabilities.extensions.unwrap();
/// assert_eq!(
///     serde_json::to_value(&declared["io.modelcontextprotocol/content-negotiation"])?,
///     serde_json::json!({"version": "1.0", "features": ["agent", "format=json", "sampling"]}),
/// );
/// // Variants are declared even without hints.
/// assert!(declared["io.modelcontextprotocol/server-variants"].is_empty());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug)]
pub struct DeclaringClient<S> {
    handler: Arc<S>,
    features: Option<Features>,
    hints: VariantHints,
    extensions: BTreeMap<ExtensionId, JsonObject>,
    pub(super) cache: Arc<VariantCache>,
}

/// A mistake of the caller: the settings of an extension are not a JSON object.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the settings of the extension `{0}` are not a JSON object")]
pub struct SettingsError(ExtensionId);

impl<S: Service<RoleClient>> DeclaringClient<S> {
    /// Wraps `handler`, and declares server variants.
    #[must_use]
    pub fn new(handler: S) -> Self {
        Self {
            handler: Arc::new(handler),
            features: None,
            hints: VariantHints::default(),
            extensions: BTreeMap::new(),
            cache: Arc::default(),
        }
    }

    /// Declares content negotiation: these tags, and those that follow from the handler's
    /// capabilities.
    ///
    /// The capabilities for sampling, elicitation, roots and tasks add the tags of the same name. A
    /// tag that is declared absent here (`!sampling`) stays absent.
    #[must_use]
    pub fn with_features(mut self, features: Features) -> Self {
        self.features = Some(features);
        self
    }

    /// Declares hints, with which the server ranks its variants.
    #[must_use]
    pub fn with_hints(mut self, hints: VariantHints) -> Self {
        self.hints = hints;
        self
    }

    /// Declares another extension; its settings must serialize to a JSON object. Read the server's
    /// settings with [`Client::declared`](super::Client::declared).
    ///
    /// # Errors
    ///
    /// When the settings are not an object.
    ///
    /// ```
    /// use mcp_vary_rmcp::client::DeclaringClient;
    /// use serde::Serialize;
    ///
    /// #[derive(Serialize)]
    /// struct Units {
    ///     metric: bool,
    /// }
    ///
    /// let handler = DeclaringClient::new(());
    /// let handler = handler.with_extension("com.example/units".parse()?, Units { metric: true })?;
    /// # let _ = handler;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_extension(
        mut self,
        id: ExtensionId,
        settings: impl Serialize,
    ) -> Result<Self, SettingsError> {
        match serde_json::to_value(settings) {
            Ok(Value::Object(settings)) => {
                self.extensions.insert(id, settings);
                Ok(self)
            }
            _ => Err(SettingsError(id)),
        }
    }

    /// The wrapped handler.
    pub fn handler(&self) -> &S {
        &self.handler
    }

    /// The wrapped handler, to answer the input requests of a server.
    pub(super) fn handler_arc(&self) -> Arc<S> {
        Arc::clone(&self.handler)
    }
}

impl<S: Service<RoleClient>> Service<RoleClient> for DeclaringClient<S> {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        self.handler.handle_request(request, context).await
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        context: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        self.cache
            .handle_notification(&notification, &meta_of(&notification, &context));
        self.handler
            .handle_notification(notification, context)
            .await
    }

    fn get_info(&self) -> ClientConfig {
        let mut info = self.handler.get_info();
        let features = self.features.as_ref().map(|declared| {
            let mirrored = capability_tags(&info.capabilities);
            declared
                .tags()
                .cloned()
                .chain(mirrored)
                .collect::<Features>()
        });
        let extensions = info.capabilities.extensions.get_or_insert_default();
        let mut declare = |id: &str, settings| {
            extensions
                .entry(id.to_owned())
                .or_insert_with(|| object(settings));
        };
        declare(SERVER_VARIANTS, self.hints.to_settings());
        if let Some(features) = features {
            declare(CONTENT_NEGOTIATION, features.to_settings());
        }
        for (id, settings) in &self.extensions {
            declare(id.as_str(), Value::Object(settings.clone()));
        }
        info
    }
}

/// The tags that follow from `capabilities`.
fn capability_tags(capabilities: &ClientCapabilities) -> impl Iterator<Item = FeatureTag> {
    let table = [
        ("sampling", capabilities.sampling.is_some()),
        ("elicitation", capabilities.elicitation.is_some()),
        ("roots", capabilities.roots.is_some()),
        ("tasks", capabilities.supports_tasks()),
    ];
    let declared = table.into_iter().filter(|(_, declared)| *declared);
    declared.filter_map(|(tag, _)| tag.parse().ok())
}

/// The `_meta` of a notification.
///
/// rmcp 3.8 moves the extensions out of a notification before it reads the metadata, which is among
/// them (`service.rs`, the client's loop), so `context.meta` is empty. It is read first, in case a
/// later version fills it.
fn meta_of(
    notification: &ServerNotification,
    context: &NotificationContext<RoleClient>,
) -> NotificationMetaObject {
    if !context.meta.is_empty() {
        return context.meta.clone();
    }
    match context.extensions.get::<NotificationMetaObject>() {
        Some(meta) => meta.clone(),
        None => notification.get_meta().clone(),
    }
}

fn object(settings: Value) -> JsonObject {
    match settings {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}
