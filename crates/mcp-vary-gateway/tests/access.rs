//! What access rules hide is answered as what does not exist.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "a message is written where it is sent"
)]

mod support;

mod access {
    mod calls;
    mod connections;
    mod groups;
    mod hidden_servers;
    mod links;
    mod logs;
    mod non_interference;
    mod tasks;
    mod variants;
    mod visibility;
}
