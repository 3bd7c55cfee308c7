//! Traces, through a real gateway, to a collector that reads OTLP itself.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod traces {
    mod collector;
    mod context;
    mod sampling;
    mod spans;
    mod traced;
}
