//! Servers that negotiate content and offer variants.
//!
//! # What a handler keeps
//!
//! Behind [`Vary`] a handler has what it had: HTTP headers and whatever else is in the context's
//! `extensions`, the client's own capabilities, cancellation, progress, and requests to the client.
//! It finds its variant in the `extensions`, as [`ActiveVariant`]. What it tells a client of a
//! change leaves tagged with the variant, if it uses the peer of a request under that variant: the
//! peer of `on_initialized` belongs to none.
//!
//! With variants, a legacy session costs one task for each that was used in it (without sessions, a
//! legacy request costs one), and so does a modern `subscriptions/listen`; other modern requests
//! cost none. Build a server once and serve its clones: one that is built for each connection draws
//! a cursor key for each, unless it is given some.
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
//! What a client is subscribed to may vanish from its variant's list. A handler that says so, by
//! telling of a changed list, ends the subscription with that: its client hears of the change, and of
//! the resource nothing more. What was never listed, such as a resource that only a tool links to,
//! is there for as long as the handler and the [`View`]'s rule for URIs say so.

mod answer;
mod builder;
mod face;
mod features;
mod handler;
mod header;
mod inner;
mod list;
mod offers;
mod selection;
mod session;
mod state;
mod tag;
mod vary;
mod view;
mod watch;
mod wire;

pub use self::answer::answer;
pub use self::builder::{BuildError, BuildMistake, Builder};
pub use self::face::Face;
pub use self::features::{Features, declared_by, features};
pub use self::selection::{Chooser, Outcome, Selection};
pub use self::vary::{ActiveVariant, Vary};
pub use self::view::{PromptView, ResourceView, ToolView, View};
pub use crate::limit::SwitchLimit;
