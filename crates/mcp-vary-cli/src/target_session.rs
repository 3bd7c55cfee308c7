//! What `inspect` and `call` look at: a server that knows the extensions, or Vary in front of one that
//! does not.

use std::sync::Arc;

use mcp_vary::extension::{CONTENT_NEGOTIATION, SERVER_VARIANTS, settings};
use mcp_vary::hints::VariantHints;
use mcp_vary::variant::ServerVariant;
use mcp_vary_gateway::{Config, Explanation, Gateway, Served, UpstreamConfig};
use mcp_vary_wire::handshake::Hello;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::args::ClientArgs;
use crate::client::{Client, ClientIdentity};
use crate::environment::environment;
use crate::failure::Failure;
use crate::server_summary::ServerSummary;
use crate::serving::{self, Serving};
use crate::stop::Stop;
use crate::{chain, file, target};

/// A server with both extensions.
#[derive(Debug)]
pub(crate) struct TargetSession {
    /// Where clients connect to.
    server: UpstreamConfig,
    /// What is behind, not Vary in front of it.
    pub(crate) summary: ServerSummary,
    /// Vary in front of it, when it needs one.
    serving: Option<Serving>,
    /// The last client of it.
    client: Mutex<Option<Arc<Client>>>,
}

impl TargetSession {
    /// The server at `url` or of `command`, or the servers of a configuration, as typed. Servers are waited for until
    /// one has the tool `needed`, or all if none is named.
    pub(crate) async fn from_args(
        args: &ClientArgs,
        url: Option<&str>,
        command: &[String],
        needed: Option<&str>,
        stop: &mut Stop,
    ) -> Result<Self, Failure> {
        if let Some(path) = &args.config {
            let file = file::read(path, None)?;
            let config = file::with_full_start_wait(file.into_config(environment()?));
            return Self::open(config, needed, stop).await;
        }
        let server = match url {
            Some(url) => target::url(url, &args.headers)?,
            None => target::command(command)?,
        };
        Self::open(Config::new(server, environment()?), needed, stop).await
    }

    async fn open(config: Config, needed: Option<&str>, stop: &mut Stop) -> Result<Self, Failure> {
        let config = chain::with_ancestors(config)?;
        let only = match &config.servers[..] {
            [server] => Some(server.clone()),
            _ => None,
        };
        let listener = serving::listen("127.0.0.1:0", "--listen").await?;
        let serving = Serving::begin(config, listener).await?;
        let gateway = serving.gateway();
        serving::wait(gateway, stop, |gateway| has_tool(gateway, needed)).await?;
        let behind = ServerSummary::from_gateway(gateway);
        let hello = behind
            .servers
            .iter()
            .find_map(|server| server.hello.as_deref());
        if let (Some(server), true) = (only, hello.is_some_and(knows_extensions)) {
            stop.unless_requested(serving.stop()).await?;
            return Ok(Self {
                server,
                summary: behind,
                serving: None,
                client: Mutex::default(),
            });
        }
        Ok(Self {
            server: target::url(&serving.url(), &[])?,
            summary: behind,
            serving: Some(serving),
            client: Mutex::default(),
        })
    }

    /// Every variant that is configured, the best for a client of these hints first; `None` where the server itself
    /// says which there are.
    pub(crate) fn configured(&self, hints: Option<&VariantHints>) -> Option<Vec<ServerVariant>> {
        let serving = self.serving.as_ref()?;
        let mut variants = serving.gateway().variants();
        let explanation = serving
            .gateway()
            .explain(hints.unwrap_or(&VariantHints::default()));
        let ranking = explanation.ranking.entries();
        variants.sort_by_key(|variant| ranking.iter().position(|it| it.id == variant.id));
        Some(variants)
    }

    /// How variants rank for a client of these hints, and why; `None` where the server ranks them itself.
    pub(crate) fn explain(&self, hints: &VariantHints) -> Option<Explanation> {
        let serving = self.serving.as_ref()?;
        Some(serving.gateway().explain(hints))
    }

    /// A client of it, after the last one has been closed.
    pub(crate) async fn client(&self, persona: &ClientIdentity) -> Result<Arc<Client>, Failure> {
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
            () = stop.requested() => Ok(()),
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

/// Whether some server has the tool `needed`, by whatever name it is offered.
fn has_tool(gateway: &Gateway, needed: Option<&str>) -> bool {
    let is_needed = |it: &Served| it.list == "tools/list" && Some(&*it.id) == needed;
    needed.is_some() && gateway.served().iter().any(is_needed)
}

/// Whether a server is a Vary, or another implementation of one of the extensions.
fn knows_extensions(hello: &Hello) -> bool {
    let capabilities: Value = serde_json::from_str(&hello.capabilities).unwrap_or_default();
    [SERVER_VARIANTS, CONTENT_NEGOTIATION]
        .iter()
        .any(|id| settings(&capabilities, id).is_some())
}
