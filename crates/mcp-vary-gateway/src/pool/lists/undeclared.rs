//! Lists that a server has without declaring them
//! ([0029](../../../../../docs/decisions/0029-undeclared-capabilities.md)).

use std::sync::Arc;
use std::time::Duration;

use mcp_vary_base::tasks::spawn;
use mcp_vary_catalog::listing::{ListKind, Listing};
use mcp_vary_upstream::UpstreamConnection;
use mcp_vary_wire::response::RpcError;
use tokio::time::timeout;
use tracing::{debug, info};

use super::list_reading::{self, ReadError};
use super::reader::ListReader;
use super::source::ServerSource;

/// How long a request waits for a server that may not have the list. A later response is merged, too.
const UNDECLARED_WAIT: Duration = Duration::from_secs(1);
/// A server that has not responded by then does not have the list.
const UNDECLARED_LIMIT: Duration = Duration::from_secs(10);

/// Requests a list that the server does not declare, once for all connections.
///
/// A server that is not connected gets the request when it connects.
pub(super) async fn request(source: &Arc<ServerSource>, kind: ListKind) {
    if !source.lists().is_undecided(kind) {
        return;
    }
    let upstream = source.reader.connection.current();
    let Some(upstream) = upstream.filter(|_| source.snapshot().handshake.is_some()) else {
        source.revalidation.add_requested([kind]);
        return;
    };
    let lock = source.connection.server_facts().probe_lock(kind.method());
    let Ok(guard) = timeout(UNDECLARED_WAIT, lock.lock_owned()).await else {
        return;
    };
    let source = Arc::clone(source);
    // A separate task: the client may leave, and the response is for all clients.
    let probe = spawn(async move {
        probe(&source, &upstream, kind).await;
        drop(guard);
    });
    let _ = timeout(UNDECLARED_WAIT, probe).await;
}

/// Requests the lists that clients requested while the server was not connected.
pub(super) fn send_requested(source: &Arc<ServerSource>) {
    for kind in source.revalidation.take_requested() {
        let source = Arc::clone(source);
        spawn(async move { request(&source, kind).await });
    }
}

async fn probe(source: &ServerSource, upstream: &UpstreamConnection, kind: ListKind) {
    let reader = &source.reader;
    if !reader.stored.is_undecided(kind) {
        return;
    }
    let learned = source.connection.server_facts();
    let method = kind.method();
    let known = learned.undeclared_methods().has(method);
    let listing = match known {
        Some(_) => None,
        None => read(reader, upstream, kind).await,
    };
    // A list that the server refuses to show is one that it may have.
    let has = known.unwrap_or(listing.is_some());
    if known.is_none() && !matches!(listing, Some(Err(_))) {
        learned.undeclared_methods().note(method, has);
    }
    if let Some(listing) = listing {
        let outcome = listing.map_err(RpcError::from);
        reader.store_undeclared(upstream, kind, outcome).await;
    }
    reader.stored.note_undeclared(kind, has);
    if known == Some(true) {
        reader.read_if(upstream, kind, |_| true).await;
    }
    if has {
        source.revalidation.add_found(kind);
    }
}

/// The list, if the server has it, or why it does not say so. Errors are not warnings: the server never declared the
/// list.
async fn read(
    reader: &ListReader,
    upstream: &UpstreamConnection,
    kind: ListKind,
) -> Option<Result<Listing, ReadError>> {
    let server = reader.server();
    let list = kind.method();
    let limit = UNDECLARED_LIMIT.min(reader.connection.config().limits.handshake);
    let reading = list_reading::read_list(upstream, kind, reader.views());
    let listing = match timeout(limit, reading).await {
        Ok(Ok(listing)) => listing,
        Ok(Err(failure)) if failure.is_unauthorized() => return Some(Err(failure)),
        Ok(Err(failure)) => {
            let failure = RpcError::from(failure);
            let error = failure.message();
            debug!(
                server,
                list, error, "the server lacks a list that it does not declare"
            );
            return None;
        }
        Err(_elapsed) => {
            debug!(
                server,
                list, "no answer about a list that the server does not declare"
            );
            return None;
        }
    };
    let items = listing.items.len();
    info!(
        server,
        list, items, "the server has a list that it does not declare"
    );
    Some(Ok(listing))
}
