//! Servers that negotiate content and offer variants.
//!
//! # What handlers can use
//!
//! Behind [`VaryServer`] a handler has everything that it has without it: HTTP headers and the
//! other `extensions` of the context, the client's capabilities, cancellation, progress, and
//! requests to the client. The active variant is in the `extensions` as [`ActiveVariant`]. Change
//! notifications carry the variant if the handler sends them through the peer of a request in that
//! variant; the peer of `on_initialized` belongs to no variant.
//!
//! With variants, a legacy session uses one task for each variant that was selected in it (without
//! sessions, each legacy request uses one), and so does each modern `subscriptions/listen`; other
//! modern requests use none. Build a server once and serve its clones: a server that is built for
//! each connection draws a new cursor key each time, unless you set the keys.
//!
//! # Limitations of rmcp 3.8
//!
//! | not possible | cause in rmcp | instead |
//! |---|---|---|
//! | ignore settings that are not an object | `ExtensionCapabilities`, `model/capabilities.rs`: objects only | rmcp rejects the message |
//! | keep a legacy client's features without sessions (`legacy_session_mode(false)`) | `peer_info_for_stateless_request`, `transport/streamable_http_server/tower.rs`: default capabilities | the client has no features, and the default ranking |
//! | acknowledge only what exists in the variant of a `subscriptions/listen` | `accepted_subscription_filter`, `handler/server.rs`: no context | everything that a handler accepts is acknowledged; updates of hidden resources are never sent |
//! | reject such a request before it is acknowledged | the same | the error comes after the acknowledgement |
//! | check `Mcp-Param-*` headers against the tool of the variant | `get_tool`, `handler/server.rs`: no context | checked if all variants have the same tool |
//!
//! # Resources that disappear
//!
//! A resource that a client is subscribed to can disappear from its variant's list. When the
//! handler reports the changed list, the subscription ends: the client receives the list change and
//! no more updates of that resource. Resources that were never listed, such as those that only a
//! tool links to, exist as long as the handler and the [`View`]'s URI filter accept them.

mod active_variant;
mod answer;
mod build;
mod build_error;
mod builder;
mod capabilities;
mod dyn_handler;
mod errors;
mod fan_out;
mod features;
mod handler;
mod header;
mod item_view;
mod list_result;
mod pages;
mod ranking_cache;
mod request_state;
mod requests;
mod resource_watch;
mod rules;
mod selected_handler;
mod session;
mod subscriptions;
mod tagging_peer;
mod variant_handler;
mod variant_set;
mod vary_server;
mod view;

pub use self::active_variant::ActiveVariant;
pub use self::answer::answer;
pub use self::build_error::{BuildDiagnostic, BuildError};
pub use self::builder::Builder;
pub use self::features::{Features, declared_by, features};
pub use self::item_view::{PromptView, ResourceView, ToolView};
pub use self::variant_handler::VariantHandler;
pub use self::vary_server::VaryServer;
pub use self::view::View;
