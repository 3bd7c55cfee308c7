//! Each example, loaded as it stands, on a pipe and on HTTP, with clients of both eras.
#![expect(clippy::unwrap_used, reason = "a helper of tests panics as they do")]

mod mapping;
mod model_optimised;
mod phases;
mod programs;
mod research;
mod support;
mod toolsets;
mod trading;
mod weather;
