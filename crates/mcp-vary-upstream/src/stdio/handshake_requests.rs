//! The requests of the handshake with a process, and their answers.

use super::{Connection, Exchange};
use crate::connect_error::ConnectError;
use crate::error::UpstreamError;
use crate::handshake;
use crate::message::{Answer, Message, Request, RequestKind};
use mcp_vary_wire::revision::Revision;

pub(super) async fn discover(connection: &Connection) -> Result<Exchange, ConnectError> {
    let shared = &connection.shared;
    let info = shared.client_info.as_deref();
    let params = handshake::discover_params(&shared.capabilities, info);
    Ok(send(connection, "server/discover", Some(params)).await?)
}

pub(super) async fn initialize(
    connection: &Connection,
    revision: Revision,
) -> Result<Exchange, ConnectError> {
    let shared = &connection.shared;
    let info = shared.client_info.as_deref();
    let params = handshake::initialize_params(revision, &shared.capabilities, info);
    Ok(send(connection, "initialize", Some(params)).await?)
}

/// Servers register tools right after `notifications/initialized`. Once they answer another request, this is done.
pub(super) async fn ping(connection: &Connection) -> Result<(), ConnectError> {
    let mut exchange = send(connection, "ping", None).await?;
    let limit = connection.shared.limits.first_ping();
    match tokio::time::timeout(limit, answer(&mut exchange)).await {
        // Some servers leave an empty `result` out.
        Ok(Ok(_) | Err(UpstreamError::Unreadable { .. })) => {}
        Ok(Err(error)) => return Err(error.into()),
        Err(_elapsed) => {
            tracing::warn!(server = %connection.shared.server, "ping after initialize unanswered");
            connection.liveness().set_ignores_ping();
        }
    }
    Ok(())
}

async fn send(
    connection: &Connection,
    method: &'static str,
    params: Option<String>,
) -> Result<Exchange, UpstreamError> {
    let request = Request::new(method, params);
    let exchange = connection.request(request, RequestKind::Handshake).await?;
    connection.shared.progress.note_sent(exchange.id, method);
    Ok(exchange)
}

pub(super) async fn answer(exchange: &mut Exchange) -> Result<Answer, UpstreamError> {
    loop {
        if let Message::Answer(answer) = exchange.next().await? {
            exchange.shared.progress.note_answered(exchange.id);
            return Ok(answer);
        }
    }
}
