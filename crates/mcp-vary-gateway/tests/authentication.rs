//! Who may use the gateway over HTTP, and that what belongs to one principal is unknown to another.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "a message is written where it is sent"
)]

mod support;

mod authentication {
    mod binding;
    mod clients;
    mod credentials;
    mod isolation;
    mod keys_of_issuers;
    mod streams;
}
