//! Shapes results for a client's features.
//!
//! Source: the content negotiation extension, "How Servers Respond Differently", with the rules of the tool result
//! clarification on who reads which field.

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

pub use self::alternative::{Alternative, OutputSchema, ToolOutput};
pub use self::answer::{Answer, HINTS};
pub use self::applied::{Applied, META_APPLIED, Report, Shaped};
pub use self::compact::{
    Bounds, Compacted, Compaction, CustomText, TEXTS_PATH, Whole, compact_shaped,
    compact_tool_result,
};
pub use self::prompt::{PromptAlternative, PromptError, Role, prompt_result};
pub use self::resource::{
    MAX_MEDIA_TYPE, MediaType, MediaTypeError, Rendering, Representation, RepresentationError,
    Representations, resource_result,
};
pub use self::tool_result::{Policy, ToolFacts, tool_result};
