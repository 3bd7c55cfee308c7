//! Who may use the gateway over HTTP, and that what belongs to one principal is unknown to another.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod authentication {
    mod binding;
    mod clients;
    mod credentials;
    mod full_servers;
    mod isolation;
    mod keys_of_issuers;
    mod questions;
    mod secrecy;
    mod streams;
    mod table;
    mod team;
    mod unread_answers;
}
