//! The address of a server in the process of the gateway.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

/// A function that opens a pipe to a server in this process.
///
/// It is equal to its clones alone: a configuration with another one has other connections.
#[derive(Clone)]
pub struct InProcess(Arc<dyn Fn() -> Box<dyn Pipe> + Send + Sync>);

/// The gateway's end of a pipe.
pub(crate) trait Pipe: AsyncRead + AsyncWrite + Send + Unpin {}

impl<P: AsyncRead + AsyncWrite + Send + Unpin> Pipe for P {}

impl InProcess {
    pub(super) fn new<P>(open: impl Fn() -> P + Send + Sync + 'static) -> Self
    where
        P: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self(Arc::new(move || Box::new(open())))
    }

    pub(crate) fn open(&self) -> Box<dyn Pipe> {
        (self.0)()
    }
}

impl Eq for InProcess {}

impl PartialEq for InProcess {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

mcp_vary_base::debug_by_name!(InProcess);
