//! The two doors that clients come in by.

pub(crate) mod admin;
mod batch;
mod deadline;
pub(crate) mod guard;
pub(crate) mod http;
pub(crate) mod post;
pub(crate) mod sse;
pub(crate) mod stdio;
#[cfg(test)]
mod telling_tests;

use std::sync::Arc;

use crate::params::Params;
use crate::reply::{Failure, Reply};
use crate::revision::Era;
use crate::session::{Place, Refused, Session};
use crate::setup::Setup;
use crate::wire::Message;

/// Takes the place of a request in its session.
pub(crate) fn begin(gateway: &Setup, session: &Arc<Session>, id: &str) -> Result<Place, Reply> {
    session
        .begin(id, gateway.config.limits.in_flight)
        .map_err(|refused| {
            let why = match refused {
                Refused::IdInUse => "the id belongs to a request that is not answered yet",
                Refused::TooMany => {
                    "too many requests of this session are in flight; wait for answers"
                }
            };
            Failure::invalid_request(why).reply(Some(id), Era::Legacy)
        })
}

/// Acts on a notification; what is unknown is ignored, as JSON-RPC says.
pub(crate) fn heard(session: &Session, message: &Message<'_>, params: &Params<'_>) {
    if message.method.as_deref() == Some("notifications/cancelled")
        && let Some(id) = params.members.get("requestId")
    {
        session.cancel(id);
    }
}
