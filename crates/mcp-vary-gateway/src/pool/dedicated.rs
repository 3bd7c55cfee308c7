//! Dedicated connections: each serves one client only.
//!
//! Over stdio, and on the stream that a legacy HTTP server opens by itself, a server request (sampling, elicitation,
//! roots) does not say which call it belongs to. A client that accepts server requests therefore shares the catalog of
//! its class, but calls legacy servers over a connection that no other client uses at the time: a session has one of
//! its connection; a request without a session leases one until the response.

mod client_lists;
mod connection;
mod lease;
mod listener;
mod mirror;
mod pool;
mod table;

pub(crate) use self::client_lists::{ClientLists, ConnectionObserver};
pub(super) use self::connection::ConnectSpec;
pub(crate) use self::lease::{DedicatedLease, KeepAliveLease};
pub(crate) use self::listener::wait;
pub(crate) use self::pool::DedicatedPool;
