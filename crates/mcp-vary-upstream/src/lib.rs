//! One connection to one MCP server, shared by many clients: bytes in, bytes out.
//!
//! Only the envelope of a message is decoded; the rest passes as bytes. [`UpstreamConnection::connect`] finds out the
//! server's era by the specification's rules. After that each [`Request`] becomes an [`Exchange`]: notifications in
//! order, then exactly one answer.

#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]

mod answer_memory;
pub mod chain;
mod clients;
pub mod command_line;
mod config;
mod connect_error;
mod connection;
pub mod endpoint_url;
mod error;
mod handshake;
mod handshake_progress;
pub mod header_command;
mod http;
mod list_changes;
mod liveness;
pub mod log_level;
mod mailbox;
mod message;
mod outgoing_chain;
pub mod secret;
mod secrets;
pub mod sent_request;
mod server_facts;
mod server_headers;
mod server_log_level;
mod server_requests;
mod stdio;
mod supervised;
mod transport;
mod upstream_variant;

pub use self::answer_memory::AnswerMemory;
pub use self::config::{
    InProcess, Isolation, LastOutput, Limits, Processes, RetryPolicy, Target, UpstreamConfig,
};
pub use self::connect_error::{ConnectError, RAISE_START_TIMEOUT};
pub use self::connection::UpstreamConnection;
pub use self::error::{UpstreamError, without_server};
pub use self::handshake::Opening;
pub use self::message::{Answer, CallerId, Event, Message, NotificationSink, OutOfBand, Request};
pub use self::server_facts::ServerFacts;
pub use self::server_headers::{
    ClaimFault, ClaimProblem, HeaderSource, HeaderTemplate, HeaderTemplateError, MAX_HEADER,
    TemplatePart,
};
pub use self::server_log_level::ServerLogLevel;
pub use self::server_requests::ServerRequest;
#[doc(hidden)]
pub use self::stdio::{guard_servers, read_lines, set_server_guard};
pub use self::supervised::{
    CONNECT_TARGET, ConcurrencyLimit, ConnectAttempts, ConnectionState, SubscribeError,
    Subscription, SupervisedConnection,
};
pub use self::transport::Exchange;
