//! What a server says arrives as it was said, and what a client says too; between the eras only what
//! they disagree on changes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod eras;
mod lists;
mod messages;
mod support;
