//! How a request goes on after its method was handled.

use mcp_vary_wire::response::Reply;

use crate::pipeline::exchange::InFlightRequest;
use crate::subscriptions::ListenStream;

/// How a request goes on after its method was handled.
#[derive(Debug)]
pub(crate) enum Dispatch {
    /// The gateway answered.
    Done(Reply),
    /// The server works on it.
    InFlight(Box<InFlightRequest>),
    /// The client is notified of changes until it leaves or the gateway ends the stream.
    Listen(Box<ListenStream>),
}
