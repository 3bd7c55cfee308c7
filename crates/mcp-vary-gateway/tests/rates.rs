//! Rate limits, for clients of both eras on both transports. Time passes only when a test says so.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod rates {
    mod calls;
    mod clients;
    mod failures;
    mod operations;
    mod tasks;
    mod variants;
    mod who;
}
