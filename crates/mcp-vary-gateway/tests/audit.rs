//! What the audit log says of requests, credentials, variants and reloads; and what it never says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "a message is written where it is sent"
)]

mod support;

mod audit {
    mod full_queue;
    mod operations;
    mod outcomes;
    mod principals;
    mod recorded;
    mod requests;
    mod secrets;
    mod server_changes;
    mod variants;
}
