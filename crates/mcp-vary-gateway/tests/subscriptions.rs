//! Notifications of changes, and lists that differ by connection.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "a message is written where it is sent"
)]

mod support;

mod subscriptions {
    mod closed_connections;
    mod dedicated;
    mod growing_lists;
    mod interrupted_streams;
    mod many_classes;
    mod notifications;
    mod upstream_variants;
}
