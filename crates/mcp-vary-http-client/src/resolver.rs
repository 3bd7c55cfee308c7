//! What looks up the names of hosts.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

/// Of the addresses of a host, in lower case, those that may be connected to; or why none may.
pub type AddressFilter =
    Arc<dyn Fn(&str, Vec<SocketAddr>) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// The system's look-up. The connection uses the addresses that were checked.
#[derive(Clone, Default)]
pub struct Resolver {
    /// All addresses may be connected to without one.
    pub filter: Option<AddressFilter>,
    /// The host of a proxy, in lower case. It may be anywhere, since the operator named it.
    pub proxy: Option<String>,
}

// A filter has nothing to show.
mcp_vary_base::debug_by_name!(Resolver);

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let Self { filter, proxy } = self.clone();
        Box::pin(async move {
            let host = name.as_str().to_ascii_lowercase();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let permitted = match filter {
                Some(filter) if proxy.as_ref() != Some(&host) => filter(&host, found)?,
                _ => found,
            };
            Ok(permitted.into_iter())
        })
    }
}
