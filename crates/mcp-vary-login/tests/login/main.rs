//! Logins at scripted servers: each rule of the specification, each failure, and processes that end in between.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod discovery;
mod exchange;
mod flow;
mod kills;
mod person;
mod processes;
mod refresh;
mod refusals;
mod scene;
mod service;
