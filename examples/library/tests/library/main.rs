//! Each example, over a pipe and HTTP, with clients of both eras.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod embedded;
mod mapping;
mod model_optimised;
mod phases;
mod programs;
mod research;
mod support;
mod toolsets;
mod trading;
mod weather;
