//! Tasks of servers, in both of their dialects.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod tasks {
    mod extension_over_core;
    mod passthrough;
    mod status;
}
