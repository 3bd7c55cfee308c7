//! How a request goes on after its method was handled.

use mcp_vary_wire::response::Reply;

use crate::audit::RequestRecord;
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

impl Dispatch {
    /// Records the outcome, as far as it is known. That of a request in flight comes with its response.
    pub(crate) fn record(&self, record: &RequestRecord) {
        match self {
            Self::Done(reply) => record.finish(reply),
            Self::InFlight(_) => {}
            Self::Listen(_) => record.opened_stream(),
        }
    }
}
