//! MCP content negotiation and server variants as values: values in, values out.
//!
//! No IO, no clock, no randomness, no SDK: functions take these as arguments. Peers are not trusted: reading their
//! input cannot fail or panic, and obeys the limits that each module names.
//!
//! # What does the client want?
//!
//! A client declares feature tags and hints in its capabilities. Reading them cannot fail: what cannot be used is
//! ignored and reported.
//!
//! ```
//! use mcp_vary::extension::declared;
//! use mcp_vary::feature::{Features, Format};
//!
//! let capabilities = serde_json::json!({"extensions": {
//!     "io.modelcontextprotocol/content-negotiation": {"features": ["agent", "format=json"]},
//! }});
//! let features = declared::<Features>(&capabilities).value;
//! assert!(features.agent());
//! assert_eq!(features.choose_format(&Format::ALL), Some(Format::Json));
//! ```
//!
//! # What does this client get?
//!
//! A result is shaped for the features of the client, and everything else in it stays as it was written.
//!
//! ```
//! use mcp_vary::feature::Features;
//! use mcp_vary::shape::{Policy, Shaped, ToolFacts, tool_result};
//!
//! let result = r#"{"content": [{"type": "text", "text": "{\"c\": 8.0}"}], "structuredContent": {"c": 8.0}}"#;
//! let (features, _ignored) = Features::from_tags(["agent", "format=json"]);
//! let shaped = tool_result(result, &features, ToolFacts::default(), &Policy::default());
//! let Shaped::Changed { result, .. } = shaped else { panic!("it is shaped") };
//! assert_eq!(result, r#"{"content":[],"structuredContent":{"c": 8.0}}"#);
//! ```
//!
//! # Which variants are there, and in which order?
//!
//! ```
//! use mcp_vary::hints::VariantHints;
//! use mcp_vary::rank::{DEFAULT_ADVERTISED, Weights, rank};
//! use mcp_vary::variant::{ServerVariant, Variants};
//!
//! let offered = vec![
//!     ServerVariant::new("standard".parse()?, "All tools, as they are"),
//!     ServerVariant::new("compact".parse()?, "All tools in few words").with_hint("contextSize", "compact"),
//! ];
//! let (variants, _warnings) = Variants::new(offered, "2026-11-20".parse()?)?;
//! let (hints, _ignored) = VariantHints::from_pairs([("contextSize", "compact")]);
//! let ranking = rank(&variants, &hints, &Weights::default());
//! let (advertised, more) = ranking.advertise(DEFAULT_ADVERTISED);
//! assert_eq!(advertised, ["compact", "standard"]);
//! assert!(!more);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # All modules
//!
//! | question | module |
//! |---|---|
//! | what did the peer declare, and where? | [`extension`], [`ignored`] |
//! | how does the client want its content? | [`feature`], [`predicate`] |
//! | what does the server offer, and in which order for this client? | [`variant`], [`hints`], [`rank`] |
//! | how is a result shaped? | [`shape`], [`render`], [`json`] |
//! | who reads which field of a result? | [`visibility`] |
//! | which errors and cursors does the client get? | [`error`], [`error_code`], [`cursor`] |
//! | how does a variant present items and map calls? | the crate `mcp-vary-view` |
//! | which state does a request carry into its next round? | [`state`] |

pub mod cursor;
pub mod error;
pub mod error_code;
pub mod extension;
pub mod feature;
mod feature_tag;
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
