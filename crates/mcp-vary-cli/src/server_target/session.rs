//! The target of `inspect` and `call`: a server that supports the extensions, or Vary in front of one that does not.

use std::sync::Arc;

use mcp_vary::extension::{CONTENT_NEGOTIATION, SERVER_VARIANTS, settings};
use mcp_vary::hints::VariantHints;
use mcp_vary::variant::{ServerVariant, VariantId};
use mcp_vary_config::VariantSpans;
use mcp_vary_gateway::{
    ClientDescription, Config, Explanation, Gateway, ServedItem, UpstreamConfig,
};
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::revision::Revision;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::client::{Client, ClientIdentity};
use crate::credentials::{LoginMode, file_with_logins, with_logins};
use crate::environment::environment;
use crate::failure::Failure;
use crate::print::{notice, sanitize};
use crate::serving::chain;
use crate::serving::server_summary::ServerSummary;
use crate::serving::start_report::unmatched_warnings;
use crate::serving::{self, Serving};
use crate::stop::Stop;
use crate::{file, server_target};

use super::args::ServerTarget;

/// A server with both extensions.
#[derive(Debug)]
pub(crate) struct TargetSession {
    /// The server that clients connect to.
    server: UpstreamConfig,
    /// The servers themselves, without Vary in front of them.
    pub(crate) summary: ServerSummary,
    /// Vary in front of the server, if the server needs it.
    serving: Option<Serving>,
    /// The name of the file with the servers, and where its variants are.
    spans: Option<(String, VariantSpans)>,
    /// The last client.
    client: Mutex<Option<Arc<Client>>>,
}

/// What a call needs of the servers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needed<'a> {
    pub(crate) tool: &'a str,
    pub(crate) variant: Option<&'a str>,
}

impl TargetSession {
    /// Connects to the servers of `named`. Waits until they have what is `needed`, or for all servers without it.
    pub(crate) async fn open(
        named: &ServerTarget,
        needed: Option<Needed<'_>>,
        mode: LoginMode,
        stop: &mut Stop,
    ) -> Result<Self, Failure> {
        let mut spans = None;
        let config = match named {
            ServerTarget::File(file) => {
                let read = file.read()?;
                spans = Some((file.name(), read.places.clone()));
                file_with_logins(read, mode)?
            }
            ServerTarget::Url { url, headers, ca } => {
                let server = server_target::url(url, headers, ca.as_deref())?;
                with_logins(Config::new(server, environment()?), mode)
            }
            ServerTarget::Command(command) => {
                Config::new(server_target::command(command)?, environment()?)
            }
        };
        let config = file::with_full_start_wait(config);
        let connected = Self::connect(config, needed, stop).await;
        let mut session = connected.map_err(|failure| match named {
            ServerTarget::File(_) => failure,
            _ => failure.without_file(),
        })?;
        session.spans = spans;
        Ok(session)
    }

    /// Warns of each selection or override of the file that matches nothing.
    pub(crate) fn warn_unmatched(&self) {
        if let (Some((name, spans)), Some(serving)) = (&self.spans, &self.serving) {
            let warnings = unmatched_warnings(serving.gateway(), name, spans);
            for line in warnings.lines().filter(|line| !line.is_empty()) {
                notice(line);
            }
        }
    }

    /// Says which variant a client with a name of its own gets that selects none, and why. Only the gateway of a
    /// configuration knows that.
    pub(crate) fn note_selection(&self, identity: &ClientIdentity, selected: Option<&str>) {
        let (Some(client), None, Some(serving)) = (&identity.name, selected, &self.serving) else {
            return;
        };
        let capabilities: Value =
            serde_json::from_str(&identity.capabilities()).unwrap_or_default();
        let revision = Revision::LATEST_LEGACY.as_str();
        let initialize = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client});
        let description = ClientDescription {
            initialize: Some(initialize.to_string()),
            ..ClientDescription::default()
        };
        let Ok(found) = serving.gateway().explain_client(&description) else {
            return;
        };
        let step = |name: &str| found.steps.iter().find(|entry| entry.step == name);
        let decided = found.steps.iter().find(|step| step.decided);
        if let Some((variant, decided)) = found.variant.as_ref().zip(decided) {
            // Whoever tries a name asks why no rule matches it.
            let rule = match step("rule") {
                Some(rule) if decided.step == "ranking" => format!("{}; ", rule.detail),
                _ => String::new(),
            };
            let why = format!("{rule}{}", decided.detail);
            let name = &client.name;
            notice(&sanitize(&format!("note: {name} gets {variant}: {why}")));
        }
    }

    async fn connect(
        config: Config,
        needed: Option<Needed<'_>>,
        stop: &mut Stop,
    ) -> Result<Self, Failure> {
        let config = chain::with_ancestors(config)?;
        let only = match &config.servers[..] {
            [server] => Some(server.clone()),
            _ => None,
        };
        let listener = serving::listen("127.0.0.1:0", "--listen").await?;
        let serving = Serving::begin(config, listener).await?;
        let gateway = serving.gateway();
        serving::wait(gateway, stop, |gateway| has(gateway, needed)).await?;
        let summary = ServerSummary::from_gateway(gateway);
        let handshake = summary
            .servers
            .iter()
            .find_map(|server| server.handshake.as_deref());
        let is_enough = handshake.is_some_and(knows_extensions);
        if is_enough && let Some(server) = only {
            stop.unless_requested(serving.stop()).await?;
            return Ok(Self {
                server,
                summary,
                serving: None,
                spans: None,
                client: Mutex::default(),
            });
        }
        Ok(Self {
            server: server_target::url(&serving.url(), &[], None)?,
            summary,
            serving: Some(serving),
            spans: None,
            client: Mutex::default(),
        })
    }

    /// Notes on standard error how processes of servers ended, with their last output.
    pub(crate) fn note_ended_servers(&self) {
        let gateway = self.serving.as_ref().map(Serving::gateway);
        for server in gateway.into_iter().flat_map(|gateway| gateway.servers()) {
            if let Some(end) = server.last_end {
                notice(&sanitize(&format!("note: server `{}` {end}", server.name)));
            }
        }
    }

    /// Whether its servers are known, and not only those that a gateway names.
    pub(crate) const fn knows_servers(&self) -> bool {
        self.serving.is_some()
    }

    /// Every configured variant, the best for these hints first; `None` if the server itself defines the variants.
    pub(crate) fn configured(&self, hints: Option<&VariantHints>) -> Option<Vec<ServerVariant>> {
        let serving = self.serving.as_ref()?;
        let mut variants = serving.gateway().variants();
        let explanation = serving
            .gateway()
            .explain(hints.unwrap_or(&VariantHints::default()));
        let ranking = explanation.ranking.entries();
        variants.sort_by_key(|variant| ranking.iter().position(|entry| entry.id == variant.id));
        Some(variants)
    }

    /// The tools of each variant, as JSON texts: of every configured one, or of those that the server offers.
    pub(crate) async fn tools_by_variant(
        &self,
        client: &Client,
    ) -> Result<Vec<(VariantId, Vec<String>)>, Failure> {
        if let Some(serving) = &self.serving {
            return Ok(serving.gateway().tools());
        }
        let mut all = Vec::new();
        for variant in client.variants() {
            let tools = client.tools(Some(variant.id.as_str())).await?;
            all.push((variant.id, tools));
        }
        Ok(all)
    }

    /// The tools of all servers as they list them: server, name and definition. `None` if the target is a gateway itself.
    pub(crate) fn server_tools(&self) -> Option<Vec<(String, String, String)>> {
        let gateway = self.serving.as_ref()?.gateway();
        let servers = self.summary.servers.iter();
        let tools = servers.flat_map(|server| {
            let listed = gateway.server_tools(&server.name).into_iter();
            listed.map(|(name, json)| (server.name.clone(), name, json))
        });
        Some(tools.collect())
    }

    /// The ranking of the variants for these hints, with reasons; `None` if the server ranks them itself.
    pub(crate) fn explain(&self, hints: &VariantHints) -> Option<Explanation> {
        let serving = self.serving.as_ref()?;
        Some(serving.gateway().explain(hints))
    }

    /// Connects a new client, and closes the last one.
    pub(crate) async fn client(&self, identity: &ClientIdentity) -> Result<Arc<Client>, Failure> {
        let mut current = self.client.lock().await;
        if let Some(last) = current.as_ref() {
            last.close().await;
        }
        let client = Arc::new(Client::connect(self.server.clone(), identity).await?);
        *current = Some(Arc::clone(&client));
        Ok(client)
    }

    /// Waits until the server has ended; a signal ends the wait.
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

/// Whether a server has the tool `needed`.
fn has(gateway: &Gateway, needed: Option<Needed<'_>>) -> bool {
    let Some(Needed { tool, variant }) = needed else {
        return false;
    };
    let is_tool = |it: &ServedItem| it.list == "tools/list" && *it.id == *tool;
    // Servers have variants of their own, which are known later than their tools.
    let is_variant = |wanted: &str| gateway.variants().iter().any(|it| it.id.as_str() == wanted);
    variant.is_none_or(is_variant) && gateway.served().iter().any(is_tool)
}

/// Whether a server is a Vary, or another implementation of one of the extensions.
fn knows_extensions(handshake: &Handshake) -> bool {
    let capabilities: Value = serde_json::from_str(&handshake.capabilities).unwrap_or_default();
    [SERVER_VARIANTS, CONTENT_NEGOTIATION]
        .iter()
        .any(|id| settings(&capabilities, id).is_some())
}
