//! Shared by the tests of several crates: scripted servers, raw clients, generators of values.
//!
//! Everything here speaks JSON and HTTP only. It uses none of the crates under test, so each of them can use it in its
//! tests. Every wait has a limit: a test fails instead of hanging.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "a message is written where it is sent"
)]
#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "only the tests of this workspace use it"
)]

pub mod authorization_server;
pub mod captured_log;
pub mod cases;
pub mod changing_server;
pub mod client;
pub mod credentials;
pub mod defaults;
pub mod era;
pub mod generate;
pub mod http_client;
pub mod lenient_path;
pub mod login_server;
pub mod message;
pub mod model_server;
pub mod notification_client;
pub mod places_server;
pub mod prelude;
pub mod process;
pub mod raw_request;
pub mod recordings;
pub mod script;
pub mod scripted_server;
pub mod session_server;
pub mod stdio_pipe;
pub mod table;
pub mod trace_collector;
pub mod wait;
