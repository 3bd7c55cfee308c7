//! Tasks of servers, in both of their dialects.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "a message is written where it is sent"
)]

mod support;

mod tasks {
    mod core_over_extension;
    mod extension_over_core;
    mod passthrough;
    mod status;
}
