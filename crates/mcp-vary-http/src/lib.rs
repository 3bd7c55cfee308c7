//! The parts of an HTTP server that know nothing of a gateway.
//!
//! | question | here |
//! |---|---|
//! | which connection is closed when there are too many? | [`connections`] |
//! | how long may a client take? | [`ConnectionTimer`], [`WriteTimeout`] |
//! | who is the client of a connection? | [`tls`], with the subject of its certificate |
//! | what may a client have missed? | [`replay`]: event streams that can be resumed |

mod client_certificate;
mod connection_timer;
pub mod connections;
pub mod replay;
pub mod tls;
mod write_timeout;

pub use self::connection_timer::{ConnectionSleep, ConnectionTimer};
pub use self::write_timeout::WriteTimeout;
