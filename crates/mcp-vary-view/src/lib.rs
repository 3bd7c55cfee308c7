//! How one variant presents a server's items, and how it maps calls back to the server.
//!
//! | question | here |
//! |---|---|
//! | which items does the view show? | [`Selection`], [`Rule`], [`Pattern`], [`ToolHints`] |
//! | how does it present an item, and how is a call mapped back? | [`Style`], [`PreparedTool`], [`PreparedPrompt`], [`ResourceOverride`] |
//! | which URI does a resource have in the view, and which on the server? | [`UriMap`], [`UriTemplate`] |
//! | which URIs are equivalent, and which are ambiguous? | [`normal_uri`], [`uri_identity`], [`check_uri`] |
//! | which schema keywords are allowed? | [`Dialect`] |
//! | what is wrong with a call's arguments? | [`ArgumentError`] |
//! | what does a peer's JSON show to a reader? | [`escape_invisible`] |
//! | what is wrong with the configured view? | [`ViewDiagnostic`], [`collisions`], [`unknown_items`] |
//! | what does `describe_tools` answer, and what gets a call that does not fit? | [`describe_named_tools`], [`refused_call`] |
//! | what is a schema that clients refuse repaired to? | [`repair_schema`] |
//! | what does a model get of a tool? | [`model_tool`], [`model_result`] |
//! | what is shorter and accepts the same arguments? | [`derive`](mod@derive), [`directory()`] |
//!
//! Everything is JSON text as a gateway carries it: unchanged parts stay as written. Servers are not trusted: no
//! schema makes these functions fail, take more than linear time, or read anything outside of the schema.

mod arguments;
mod call_check;
mod changes;
mod check;
pub mod derive;
mod describe;
mod diagnostic;
mod dialect;
mod directory;
mod fault;
mod hint;
mod model;
mod normal;
mod on_demand;
mod output;
mod prompt;
mod repair;
mod resource;
mod select;
mod style;
mod tool;
mod uri;
mod uri_check;
mod uri_forms;
mod uri_match;
mod word_list;

pub use arguments::ArgumentOverride;
pub use call_check::escape_invisible;
pub use check::MAX_CHECKED_VALUES;
pub use describe::{
    DescribedTools, INVALID_ARGUMENTS, SearchArguments, describe_named_tools, refused_call,
    search_arguments, wrong_arguments,
};
pub use diagnostic::{ViewDiagnostic, collisions, unknown_items};
pub use dialect::Dialect;
pub use directory::{
    DEFAULT_SEARCH_ABOVE, DIRECTORY, describe_tools, directory, is_worth_describing, search_tools,
};
pub use fault::{ArgumentError, nearest};
pub use hint::{HintCondition, ToolHint, ToolHints};
pub use model::{model_block, model_result, model_tool};
pub use normal::{normal_uri, uri_identity};
pub use output::OutputCheck;
pub use prompt::{PreparedPrompt, PromptOverride};
pub use repair::{SchemaUse, repair_schema};
pub use resource::ResourceOverride;
pub use select::{Candidate, MAX_PATTERN, Pattern, PatternError, Rule, Selection};
pub use style::{ArgumentCheck, Description, ListedArguments, ResultFields, SchemaStyle, Style};
pub use tool::{PreparedTool, ToolOverride};
pub use uri::{UriError, UriMap, UriTemplate};
pub use uri_check::{UriRejection, check_uri};
