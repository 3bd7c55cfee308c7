//! A result, the client's features and what is known of its source → the result for that client.
//!
//! Source: the content negotiation extension, "How Servers Respond Differently", with the rules of
//! the tool result clarification on which field is for whom.

mod alternative;
mod answer;
mod applied;
mod compact;
mod content;
mod prompt;
mod repeat;
mod resource;
mod rewrite;
mod tool_result;

pub(crate) use self::applied::meta;
pub(crate) use self::content::{blocks, text_of, texts};
pub(crate) use self::repeat::{Relation, candidates, relations, relations_to};

pub use self::alternative::{Alternative, OutputSchema, Said};
pub use self::answer::{Answer, HINTS};
pub use self::applied::{Applied, META_APPLIED, Report, Shaped};
pub use self::compact::{
    Bounds, Compacted, Compaction, TEXTS, Whole, Words, compact_shaped, compact_tool_result,
};
pub use self::prompt::{PromptAlternative, PromptError, Role, prompt_result};
pub use self::resource::{
    MAX_MEDIA_TYPE, MediaType, MediaTypeError, Rendering, Representation, RepresentationError,
    Representations, resource_result,
};
pub use self::tool_result::{Policy, ToolFacts, tool_result};
