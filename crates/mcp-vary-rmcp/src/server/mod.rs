//! Servers that negotiate content and offer variants.
//!
//! # What a handler keeps
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
//! # What rmcp 3.8 does not let us do
//!
//! | what | where in rmcp | instead |
//! |---|---|---|
//! | ignore settings that are no object | `ExtensionCapabilities`, `model/capabilities.rs`: objects only | rmcp refuses the message |
//! | keep a legacy client's features where there are no sessions (`legacy_session_mode(false)`) | `peer_info_for_stateless_request`, `transport/streamable_http_server/tower.rs`: default capabilities | the client has no features, and the default ranking |
//! | acknowledge only what exists in the variant of a `subscriptions/listen` | `accepted_subscription_filter`, `handler/server.rs`: no context | all that a handler accepts is acknowledged; what a view hides is never sent |
//! | refuse such a request before it is acknowledged | the same | the error comes after the acknowledgement |
//! | check `Mcp-Param-*` headers against the tool of the variant | `get_tool`, `handler/server.rs`: no context | checked where all variants have the same tool |
//!
//! | answer too many switches with HTTP status 429 and `Retry-After` | `jsonrpc_http_status`, `transport/streamable_http_server/tower.rs`: a status for the SDK's own codes only | status 200, and the seconds in the error's data |
//!
//! # Resources that have gone
//!
//! A resource that a client is subscribed to can disappear from its variant's list. When the
//! handler reports the changed list, the subscription ends: the client receives the list change and
//! no more updates of that resource. Resources that were never listed, such as those that only a
//! tool links to, exist as long as the handler and the [`View`]'s URI filter accept them.

mod answer;
mod builder;
mod dyn_handler;
mod errors;
mod features;
mod handler;
mod header;
mod pages;
mod request_state;
mod resource_watch;
mod selection;
mod session;
mod tagging_peer;
mod variant_handler;
mod variant_set;
mod vary_server;
mod view;

pub use self::answer::answer;
pub use self::builder::{BuildDiagnostic, BuildError, Builder};
pub use self::features::{Features, declared_by, features};
pub use self::selection::{SelectionOutcome, SelectionSource, VariantSelection};
pub use self::variant_handler::VariantHandler;
pub use self::vary_server::{ActiveVariant, VaryServer};
pub use self::view::{PromptView, ResourceView, ToolView, View};
pub use crate::switch_limit::SwitchLimit;
