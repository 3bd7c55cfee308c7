//! Shapes results for a client's features.
//!
//! Source: the content negotiation extension, "How Servers Respond Differently", with the rules of the tool result
//! clarification on who reads which field.

mod alternative;
mod answer;
pub(crate) mod applied;
mod compact;
pub(crate) mod content;
mod covers;
mod prompt;
pub(crate) mod repeat;
mod resource;
mod rewrite;
pub(crate) mod tool_facts;
mod tool_result;

pub use self::alternative::{Alternative, OutputSchema, ReadableResult, ToolOutput};
pub use self::answer::{Answer, HINTS};
pub use self::applied::{Applied, META_APPLIED, Report, Shaped};
pub use self::compact::{
    Bounds, Compacted, Compaction, CustomText, TEXTS_PATH, Whole, compact_shaped,
    compact_tool_result,
};
pub use self::prompt::{PromptAlternative, PromptError, Role, prompt_result, replace_prompt};
pub use self::resource::{
    MAX_MEDIA_TYPE, MediaType, MediaTypeError, Rendering, Representation, RepresentationError,
    Representations, resource_result,
};
pub use self::tool_facts::ToolFacts;
pub use self::tool_result::{Policy, tool_result};
