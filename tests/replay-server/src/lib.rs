//! An MCP server made of a recorded list of tools, for examples and tests.
//!
//! It lists what a [`Recording`] holds, and answers each call with the result that is recorded for it or
//! with an echo of what arrived, so that a client behind a gateway sees what reached the server. It
//! speaks both eras, on standard input and output and on streamable HTTP.

mod answer;
mod http;
mod recording;
mod stdio;

pub use answer::{ARRIVED, Era, Replay};
pub use http::serve_http;
pub use recording::{Mistakes, Recording};
pub use stdio::serve_stdio;
