//! Start, reload, status and logs: what operators configure and see.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod operations {
    mod broken_lists;
    mod commands;
    mod embed;
    #[cfg(debug_assertions)]
    mod locks;
    mod reload;
    mod request_lines;
    mod secrets;
    mod starting;
    mod status;
    mod undeclared;
}
