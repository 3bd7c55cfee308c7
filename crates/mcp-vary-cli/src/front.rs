//! What `inspect` and `call` look at: a server that knows the extensions, or Vary in front of one that
//! does not.

use std::sync::Arc;

use mcp_vary::extension::{CONTENT_NEGOTIATION, SERVER_VARIANTS, settings};
use mcp_vary_gateway::revision::Revision;
use mcp_vary_gateway::upstream::Hello;
use mcp_vary_gateway::{Config, UpstreamConfig};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::args::ClientArgs;
use crate::client::{Client, Persona};
use crate::failure::Failure;
use crate::outside::outside;
use crate::print::Progress;
use crate::serving::{self, Serving};
use crate::stop::Stop;
use crate::target;

/// A server with both extensions.
#[derive(Debug)]
pub(crate) struct Front {
    /// Where clients connect to.
    server: UpstreamConfig,
    /// What the server itself said, not Vary in front of it.
    pub(crate) info: Option<Value>,
    pub(crate) revision: Revision,
    /// Vary in front of it, when it needs one.
    serving: Option<Serving>,
    /// The last client of it.
    client: Mutex<Option<Arc<Client>>>,
}

impl Front {
    /// The server at `url` or of `command`, as typed.
    pub(crate) async fn typed(
        args: &ClientArgs,
        url: Option<&str>,
        command: &[String],
    ) -> Result<Self, Failure> {
        let server = match url {
            Some(url) => target::url(url, &args.headers)?,
            None => target::command(command)?,
        };
        Self::open(server).await
    }

    async fn open(server: UpstreamConfig) -> Result<Self, Failure> {
        let _progress = Progress::show(&format!("connecting to {} ...", server.name));
        let listener = serving::listen("127.0.0.1:0").await?;
        let serving = Serving::start(Config::new(server.clone(), outside()?), listener).await?;
        let servers = serving.gateway().servers();
        let Some(hello) = servers.iter().find_map(|server| server.hello.as_deref()) else {
            return Err(Failure::command(format!(
                "server `{}` said nothing",
                server.name
            )));
        };
        let info = hello
            .server_info
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok());
        let revision = hello.revision;
        if knows_extensions(hello) {
            serving.stop().await?;
            return Ok(Self {
                server,
                info,
                revision,
                serving: None,
                client: Mutex::default(),
            });
        }
        Ok(Self {
            server: target::url(&serving.url(), &[])?,
            info,
            revision,
            serving: Some(serving),
            client: Mutex::default(),
        })
    }

    /// A client of it, after the last one has been closed.
    pub(crate) async fn client(&self, persona: &Persona) -> Result<Arc<Client>, Failure> {
        let mut current = self.client.lock().await;
        if let Some(last) = current.as_ref() {
            last.close().await;
        }
        let client = Arc::new(Client::connect(self.server.clone(), persona).await?);
        *current = Some(Arc::clone(&client));
        Ok(client)
    }

    /// Lets the server end by itself, unless a signal asks for more haste.
    pub(crate) async fn close(self, stop: &mut Stop) -> Result<(), Failure> {
        tokio::select! {
            closed = self.close_all() => closed,
            () = stop.asked() => Ok(()),
        }
    }

    async fn close_all(self) -> Result<(), Failure> {
        if let Some(last) = self.client.into_inner() {
            last.close().await;
        }
        match self.serving {
            Some(serving) => serving.stop().await,
            None => Ok(()),
        }
    }
}

/// Whether a server is a Vary, or another implementation of one of the extensions.
fn knows_extensions(hello: &Hello) -> bool {
    let capabilities: Value = serde_json::from_str(&hello.capabilities).unwrap_or_default();
    [SERVER_VARIANTS, CONTENT_NEGOTIATION]
        .iter()
        .any(|id| settings(&capabilities, id).is_some())
}
