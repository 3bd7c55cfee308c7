//! The methods: what each one checks, and how it is answered or forwarded.
//!
//! Some methods the gateway [answers](crate::pipeline::request_context::RequestContext::answer) itself. The others
//! check that their item exists in the active variant, replace the variant's names by the server's, and are
//! [forwarded](crate::pipeline::steps::forward) with a plan that turns the answer into the client's. What several of
//! them do is in [`steps`](crate::pipeline::steps); no method calls another.

pub(crate) mod completion;
pub(crate) mod extensions;
pub(crate) mod initialize;
pub(crate) mod lists;
pub(crate) mod logging;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod subscriptions;
pub(crate) mod tasks;
pub(crate) mod tools;

pub(crate) use self::extensions::forward_notification;
pub(crate) use crate::pipeline::request_context::Dispatch;
