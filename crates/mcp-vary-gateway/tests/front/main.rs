//! The fronts as clients meet them: a real socket, real pipes, and every byte of a client's choosing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "what a client sends is written where it is sent"
)]
#![allow(
    dead_code,
    reason = "the scripted endpoint serves several test binaries"
)]

#[path = "../http_peer/mod.rs"]
mod http_peer;

mod applied;
mod apps;
mod asked;
mod background_logs;
mod bad_input;
mod batches;
mod bounds;
mod caching;
mod cancel;
mod choosing;
mod confined_uris;
mod confinement;
mod core_tasks;
mod crossed;
mod crowded;
mod eras;
mod floods;
mod growing;
mod hearsay;
mod http;
mod kept;
mod laws;
mod limits;
mod log;
mod logging;
mod lookalikes;
mod many_classes;
mod mapping;
mod naming;
mod negotiation;
mod notifications;
mod offers;
mod pages;
mod read_result;
mod reload;
mod required;
mod results;
mod returning;
mod rounds;
mod rows;
mod rules;
mod secrets;
mod seed;
mod server;
mod servers;
mod sessions;
mod stage;
mod starting;
mod status;
mod stdio;
mod streams;
mod summaries;
mod support;
mod task_status;
mod tasks;
mod told;
mod unadvertised;
mod undeclared;
mod uris;
mod variants;
mod views;
mod visibility;
