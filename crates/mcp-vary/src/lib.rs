//! MCP content negotiation and server variants as values: values in, values out.
//!
//! No IO, no clock, no randomness, no SDK. What needs them takes them as arguments. What a peer
//! wrote is never trusted: reading it cannot fail or panic, and keeps the limits that each module names.
//!
//! | question | module |
//! |---|---|
//! | what did the peer declare, and where? | [`extension`], [`ignored`] |
//! | how does the client want its content? | [`feature`], [`predicate`] |
//! | what does the server offer, and what comes first for this client? | [`variant`], [`hints`], [`rank`] |
//! | what becomes of a result? | [`shape`], [`render`], [`json`] |
//! | which field of a result is for whom, and do they agree? | [`visibility`] |
//! | what is the client told when it asks for what is not there? | [`error`], [`cursor`] |
//! | what does one variant make of an item and of a call? | the crate `mcp-vary-view` |
//! | what of a request comes back in its next round? | [`state`] |
//!
//! # Examples
//!
//! ```
//! use mcp_vary::extension::declared;
//! use mcp_vary::feature::{Features, Format};
//! use mcp_vary::hints::VariantHints;
//! use mcp_vary::rank::{ADVERTISED, Weights, rank};
//! use mcp_vary::variant::{ServerVariant, Variants};
//!
//! let offered = vec![
//!     ServerVariant::new("standard".parse()?, "All tools, as they are"),
//!     ServerVariant::new("compact".parse()?, "All tools in few words").with_hint("contextSize", "compact"),
//! ];
//! let (variants, _warnings) = Variants::new(offered, "2026-11-20".parse()?)?;
//!
//! let capabilities = serde_json::json!({"extensions": {
//!     "io.modelcontextprotocol/content-negotiation": {"features": ["agent", "format=json"]},
//!     "io.modelcontextprotocol/server-variants": {"variantHints": {"hints": {"contextSize": "compact"}}},
//! }});
//! let features = declared::<Features>(&capabilities).value;
//! assert_eq!(features.choose_format(&Format::ALL), Some(Format::Json));
//!
//! let hints = declared::<VariantHints>(&capabilities).value;
//! let ranking = rank(&variants, &hints, &Weights::default());
//! let (advertised, more) = ranking.advertise(ADVERTISED);
//! assert_eq!(advertised, ["compact", "standard"]);
//! assert!(!more);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cursor;
pub mod error;
pub mod extension;
pub mod feature;
pub mod hints;
pub mod ignored;
pub mod predicate;
pub mod rank;
pub mod render;
pub mod shape;
pub mod state;
pub mod task;
pub mod text;
pub mod variant;
pub mod visibility;

pub use mcp_vary_json as json;
