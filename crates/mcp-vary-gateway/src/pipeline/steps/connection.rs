//! The connection on which a request goes to its server.

use std::sync::Arc;

use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_upstream::SupervisedConnection;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;

use crate::pipeline::request_context::RequestContext;
use crate::pool::dedicated::DedicatedLease;
use crate::pool::source::ServerSource;
use crate::session::BASE_CLASS;

/// The connection on which a request goes to its server.
pub(crate) struct RequestConnection {
    pub(crate) connection: Arc<SupervisedConnection>,
    /// Its lease, if the client has it for itself.
    pub(crate) dedicated: Option<DedicatedLease>,
}

impl RequestConnection {
    /// The connection that the clients of a class share.
    pub(crate) fn shared(source: &ServerSource) -> Self {
        Self {
            connection: Arc::clone(&source.connection),
            dedicated: None,
        }
    }

    /// The client's dedicated connection if the server could send requests before it answers, else that of the class.
    pub(crate) async fn to(
        context: &RequestContext<'_>,
        server: ServerIndex,
    ) -> Result<Self, RpcError> {
        Ok(match dedicated(context, server).await? {
            None => Self::shared(context.class.source(server)),
            Some(lease) => Self {
                connection: Arc::clone(lease.connection()),
                dedicated: Some(lease),
            },
        })
    }
}

/// Leases the client's dedicated connection, if the server could send requests before it answers.
///
/// Modern servers send requests in results. A server that speaks both eras can send them to a client with a session
/// directly, as it would without a gateway.
pub(crate) async fn dedicated(
    context: &RequestContext<'_>,
    server: ServerIndex,
) -> Result<Option<DedicatedLease>, RpcError> {
    if !context.class.accepts_server_requests {
        return Ok(None);
    }
    let shared = context.class.shared().source(server);
    let upstream = shared.connection.ready().await?;
    if upstream.handshake().era() == Era::Modern {
        let may_be_legacy = || shared.connection.server_facts().may_support(Era::Legacy);
        if context.client.session.is_none() || !may_be_legacy() {
            return Ok(None);
        }
    }
    let pool = &context.snapshot.pool;
    let lease = pool.lease_dedicated(&context.class, server, context.client)?;
    lease.ready().await?;
    lease.mirror_subscriptions(shared).await;
    Ok(Some(lease))
}

/// The capabilities that a server of `era` gets with the request, if they may differ from those of the class: a
/// class may have clients with other capabilities, and a server without sessions gets those of each client.
pub(crate) fn sent_capabilities(
    context: &RequestContext<'_>,
    server: ServerIndex,
    era: Era,
) -> Option<Arc<str>> {
    let forwardable = &*context.client.forwardable;
    let may_differ = era == Era::Modern && forwardable != BASE_CLASS;
    let pool = &context.snapshot.pool;
    may_differ.then(|| pool.capabilities_for(&context.class, server, forwardable))
}
