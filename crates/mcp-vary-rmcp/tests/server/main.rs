//! Servers behind `Vary` as an rmcp client sees them: both eras, on a pipe and on HTTP.

mod negotiation;
mod notifications;
mod shop;
mod support;
mod variants;
