//! A result, the client's features and what is known of its source → the result for that client.
//!
//! Source: the content negotiation extension, "How Servers Respond Differently", with the rules of
//! the tool result clarification on which field is for whom.

mod repeat;
mod tool_result;

pub use self::tool_result::{Applied, META_APPLIED, Policy, Shaped, ToolFacts, tool_result};
