//! What one variant's view makes of a server's items and of calls to them.
//!
//! | question | here |
//! |---|---|
//! | which items does the view show? | [`Selection`], [`Rule`], [`Pattern`], [`Hints`] |
//! | how does it show one, and what becomes of a call to it? | [`PreparedTool`], [`PreparedPrompt`], [`ResourceOverride`] |
//! | what does it call a resource, and what is that to the server? | [`UriMap`], [`UriTemplate`] |
//! | which URIs name the same, and which name nothing that can be decided? | [`normal_uri`], [`uri_identity`], [`check_uri`] |
//! | which keywords may its schemas have? | [`Dialect`] |
//! | what is wrong with a call's arguments? | [`Fault`] |
//! | what is wrong with the view? | [`Mistake`], [`collisions`], [`unknown_items`] |
//! | what is shorter and accepts the same? | [`derive`](mod@derive) |
//!
//! Everything is JSON text as a gateway carries it: what is not changed stays as it was written. What a
//! server wrote is not trusted: whatever its schemas are, nothing here fails on them, takes more than
//! time in proportion to them, or looks outside of them.

mod arguments;
mod check;
pub mod derive;
mod dialect;
mod fault;
mod hint;
mod mistake;
mod normal;
mod output;
mod prompt;
mod resource;
mod select;
mod tool;
mod uri;
mod uri_check;
mod uri_match;

pub use arguments::ArgumentOverride;
pub use check::MOST_VALUES;
pub use dialect::Dialect;
pub use fault::Fault;
pub use hint::{Hint, Hints, Wanted};
pub use mistake::{Mistake, collisions, unknown_items};
pub use normal::{normal_uri, uri_identity};
pub use output::OutputCheck;
pub use prompt::{PreparedPrompt, PromptOverride};
pub use resource::ResourceOverride;
pub use select::{Candidate, MAX_PATTERN, Pattern, PatternError, Rule, Selection};
pub use tool::{Description, PreparedTool, ResultFields, SchemaStyle, Style, ToolOverride};
pub use uri::{UriError, UriMap, UriTemplate};
pub use uri_check::{UriFault, check_uri};
