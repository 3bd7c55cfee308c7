//! The configuration of a connection: the server, its address and its limits.

mod in_process;
mod limits;
mod target;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use mcp_vary::variant::VariantId;
use mcp_vary_base::caller_token::CallerToken;
use mcp_vary_base::environment::Variables;
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_base::setters;
use mcp_vary_http_client::client_certificate::ClientCertificate;
use mcp_vary_http_client::credential_source::{ClientCredentials, Credential, CredentialSource};
use mcp_vary_wire::counters::Counters;

pub use self::in_process::InProcess;
pub use self::limits::Limits;
pub use self::target::Target;
use super::connect_error::ConnectError;
use super::server_headers::{ClaimFault, HeaderSource, HeaderTemplate};
use crate::outgoing_chain::OutgoingChain;

mcp_vary_base::defaults! {
    /// One server: its name in logs and errors, where it is, and its limits.
    #[derive(Clone, Debug)]
    pub struct UpstreamConfig {
        /// The server `name` at `target`, with the default limits.
        pub fn new(name: impl Into<String>, target: Target);
        /// The name that the operator gave it.
        pub name: String = name.into(),
        /// Its address.
        pub target: Target = target,
        /// The command of the target as an error shows it.
        pub command_line: Option<crate::command_line::CommandLine> = None,
        /// The headers whose values come from the claims of its clients. Each client has connections of its own then.
        pub claim_headers: Vec<(HeaderName, HeaderTemplate)> = Vec::new(),
        /// The headers whose sources are asked for each HTTP request. Connections of another client can have other sources.
        pub credentials: Vec<Credential> = Vec::new(),
        /// The credentials of each client. Each principal has connections of its own then.
        pub client_credentials: Option<Arc<dyn ClientCredentials>> = None,
        /// Why no connection is opened; `None` for an ordinary server.
        pub refusal: Option<ConnectError> = None,
        /// Its limits.
        pub limits: Limits = Limits::default(),
        /// The client capabilities that are declared to it, JSON text; `{}` by default.
        pub capabilities: String = "{}".to_owned(),
        /// The `clientInfo` that is declared to it, JSON text; that of the gateway by default.
        pub client_info: Option<String> = None,
        /// Which clients share a connection to it.
        pub isolation: Isolation = Isolation::default(),
        /// How many processes of a program there may be, or pipes to a server in this process.
        pub processes: Processes = Processes::default(),
        /// Whether this is a connection beside the first one to the server.
        pub is_further: bool = false,
        /// Which calls are retried if the server is lost while it works on them.
        pub retry: RetryPolicy = RetryPolicy::default(),
        /// The variant of it that all requests select, of a server that offers variants itself; its default without one.
        pub variant: Option<VariantId> = None,
        /// Whether the feature tags of clients are forwarded to it, so that it shapes its results itself.
        pub passthrough: bool = false,
        /// The extensions whose settings are forwarded to it if a client declares them, by identifier.
        pub forwarded_extensions: Vec<String> = DEFAULT_FORWARDED.map(str::to_owned).to_vec(),
        /// The methods of extensions that are forwarded although the client's variant hides something.
        pub allowed_methods: Vec<String> = Vec::new(),
        /// Whether each connection serves one client only, so that server requests can be forwarded to it.
        pub is_dedicated: bool = false,
        /// Whether clients lease such a connection one after the other, so that a server request belongs to the current lease.
        pub is_pooled: bool = false,
        /// Whether a server of both eras is used in the legacy era.
        pub legacy_first: bool = false,
        /// How long a new, unknown process waits for its first request, until the era of the first client is known.
        pub era_wait: Duration = Duration::ZERO,
        /// Fills bytes with randomness, so that many gateways do not reconnect to a server at the same moment. The default
        /// is not random: pauses between attempts are then as long as they can be.
        pub fill_random: fn(&mut [u8]) = |bytes| bytes.fill(u8::MAX),
        /// The environment variables that name proxies. The default has none.
        pub variables: Variables = |_| None,
        /// The file of further authorities, in PEM, whose certificates are trusted.
        pub ca: Option<PathBuf> = None,
        /// Whether it is reached over HTTP with SSE, the transport of 2024-11-05, without trying streamable HTTP first.
        pub is_sse: bool = false,
        /// The certificate that is shown to the server.
        pub client_certificate: Option<ClientCertificate> = None,
        /// Counts dropped messages.
        pub counters: Arc<Counters> = Arc::default(),
        /// What its processes wrote last, for the operator.
        pub last_output: Arc<ScopedLock<LastOutput>> = Arc::default(),
        /// Why it refused `notifications/initialized`, as logged last.
        pub refused_notification: Arc<ScopedLock<Option<String>>> = Arc::default(),
        /// The gateways in front of it.
        pub chain: OutgoingChain = OutgoingChain::default(),
        /// Set if the server is a gateway that leads back to this one.
        pub loop_error: Arc<OnceLock<ConnectError>> = Arc::default(),
    }
}

/// Which clients share a connection to a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Isolation {
    /// All clients where they are not authenticated. Else those of one principal, unless the server is stateless:
    /// reached over HTTP in the modern era.
    #[default]
    Automatic,
    /// All clients with the same capabilities, whoever they are.
    Shared,
    /// Those of one principal. Clients that are not authenticated share one.
    Principal,
    /// None: each session has its own connection. Clients without sessions share one, each principal its own.
    Session,
}

/// How many processes of a program there may be, or pipes to a server in this process.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Processes {
    /// As many as clients with different capabilities, principals or sessions need.
    #[default]
    Several,
    /// One, which all clients share. A server request goes to the client of the only calls in flight, if there is one.
    One,
    /// One, since the gateway has only one client, whose capabilities it is started with.
    OneClient {
        /// Whether the client has a session, so that a server request may belong to no call.
        has_session: bool,
        /// Whether no other process may run beside it.
        is_only: bool,
    },
}

/// Which calls are sent once more when a server is lost while it works on them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RetryPolicy {
    /// None, since the server may have run them already.
    #[default]
    Never,
    /// Calls of tools with `idempotentHint` or `readOnlyHint`, once, if the client has received nothing of the call yet.
    Idempotent,
}

/// What the processes of a server wrote last.
#[derive(Debug, Default)]
pub struct LastOutput {
    /// The last line on standard error, or on standard output if it is not a message.
    pub line: Option<String>,
    /// How a process last ended by itself, with its last lines; `None` if none has.
    pub end: Option<String>,
    /// The last lines on standard error of the process that ended last, by itself or not: at most five, without
    /// secrets.
    pub stderr: Vec<String>,
}

impl UpstreamConfig {
    setters! {
        /// The same server, with these declared client capabilities: the JSON text of an object.
        with_capabilities(capabilities: impl Into<String>): capabilities = capabilities.into();
        /// The same server, to which a client with this `clientInfo` connects: the JSON text of an object.
        with_client_info(info: impl Into<String>): client_info = Some(info.into());
        /// The same server with another `isolation`.
        with_isolation(isolation: Isolation): isolation = isolation;
        /// The same server with other limits.
        with_limits(limits: Limits): limits = limits;
    }

    /// The same server on dedicated connections: server requests then arrive as
    /// [`Message::Request`](super::Message::Request) or [`Event::ServerRequest`](super::Event::ServerRequest).
    #[must_use]
    pub fn dedicated(mut self) -> Self {
        self.is_dedicated = true;
        self
    }

    /// Whether all clients share one process of a program, or one pipe.
    pub const fn has_one_process(&self) -> bool {
        self.target.is_local() && !matches!(self.processes, Processes::Several)
    }

    /// Whether `other` is the same server with the same settings, so that it can use the same connection.
    pub fn is_same_connection(&self, other: &Self) -> bool {
        let Self {
            name,
            target,
            claim_headers,
            credentials,
            client_credentials,
            limits,
            capabilities,
            client_info,
            isolation,
            processes,
            retry,
            variant,
            passthrough,
            forwarded_extensions,
            is_dedicated,
            is_pooled,
            legacy_first,
            ca,
            is_sse,
            client_certificate,
            // Requests are checked against the configuration of their moment, not that of the connection.
            allowed_methods: _,
            // Concerns the start alone.
            era_wait: _,
            // Concerns errors alone.
            is_further: _,
            // Follow from the target and the client of a connection.
            command_line: _,
            refusal: _,
            fill_random: _,
            variables: _,
            counters: _,
            last_output: _,
            refused_notification: _,
            chain: _,
            loop_error: _,
        } = self;
        *name == other.name
            && *target == other.target
            && *claim_headers == other.claim_headers
            && *credentials == other.credentials
            && identity(client_credentials) == identity(&other.client_credentials)
            && *limits == other.limits
            && *capabilities == other.capabilities
            && *client_info == other.client_info
            && *isolation == other.isolation
            && *processes == other.processes
            && *retry == other.retry
            && *variant == other.variant
            && *passthrough == other.passthrough
            && *forwarded_extensions == other.forwarded_extensions
            && *is_dedicated == other.is_dedicated
            && *is_pooled == other.is_pooled
            && *legacy_first == other.legacy_first
            && *ca == other.ca
            && *is_sse == other.is_sse
            && *client_certificate == other.client_certificate
    }

    /// The same server with one more header.
    ///
    /// Others than endpoints have no headers: a fixed one is left out there, and one with claims makes the server unusable.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, source: HeaderSource) -> Self {
        match (source, &mut self.target) {
            (HeaderSource::Fixed(mut value), Target::Http { headers, .. }) => {
                value.set_sensitive(true);
                headers.append(name, value);
            }
            (HeaderSource::Fixed(_), Target::Command { .. } | Target::InProcess(_)) => {}
            (HeaderSource::Claims(template), _) => self.claim_headers.push((name, template)),
        }
        self
    }

    /// The same server, with a header whose values come from `source`. Programs have no headers.
    #[must_use]
    pub fn with_credential(
        mut self,
        header: HeaderName,
        source: Arc<dyn CredentialSource>,
    ) -> Self {
        self.credentials.push(Credential { header, source });
        self
    }

    /// The same server, to which each client has credentials of its own. Programs have none.
    #[must_use]
    pub fn with_client_credentials(mut self, credentials: Arc<dyn ClientCredentials>) -> Self {
        self.client_credentials = Some(credentials);
        self
    }

    /// Whether some header has the claims of a client in it.
    pub const fn needs_claims(&self) -> bool {
        !self.claim_headers.is_empty()
    }

    /// Whether each client has connections of its own, since its claims or its credentials are in the headers.
    pub const fn is_per_client(&self) -> bool {
        self.needs_claims() || self.client_credentials.is_some()
    }

    /// Whether its clients share lists that are read for all of them.
    pub fn shares_lists(&self) -> bool {
        let of_clients = self.client_credentials.as_ref();
        of_clients.is_some_and(|credentials| credentials.for_lists().is_some())
    }

    /// The configuration of the connection that reads the lists of all clients, without headers that have claims; `None` if
    /// each client has the lists of its own connections.
    pub fn for_lists(&self) -> Option<Self> {
        let source = self.client_credentials.as_ref()?.for_lists()?;
        let mut config = self.clone();
        config.client_credentials = None;
        Some(config.with_credential(AUTHORIZATION, source))
    }

    /// The configuration of connections for a client with these `values`, one for each header with claims, and this token.
    ///
    /// A connection with a claim that gives no value, without a token that is needed, or without a client, is never opened,
    /// and says why.
    pub fn for_client(
        &self,
        values: Option<Result<&[HeaderValue], &ClaimFault>>,
        caller: Option<&CallerToken>,
    ) -> Self {
        let mut config = self.clone();
        let source = self.client_credentials.as_ref().zip(caller);
        let of_client = source.map(|(credentials, caller)| credentials.for_client(caller));
        let has_no_token = self.client_credentials.is_some() && of_client.is_none();
        if let Some(source) = of_client {
            config = config.with_credential(AUTHORIZATION, source);
        }
        let why = match (values, &mut config.target) {
            (_, Target::Command { .. }) => Some("has no headers, since it is a program".to_owned()),
            (_, Target::InProcess(_)) => {
                Some("has no headers, since it is in this process".to_owned())
            }
            (None, Target::Http { .. }) if has_no_token => Some(
                "takes the token of its user in exchange; the gateway connects to it for each user"
                    .to_owned(),
            ),
            (None, Target::Http { .. }) => Some(
                "needs the claims of its users; the gateway connects to it for each user"
                    .to_owned(),
            ),
            (Some(_), Target::Http { .. }) if has_no_token => Some(NO_TOKEN.to_owned()),
            (Some(Err(fault)), Target::Http { .. }) => {
                Some(format!("cannot be used by this client: {fault}"))
            }
            (Some(Ok(values)), Target::Http { headers, .. }) => {
                for ((name, _), value) in self.claim_headers.iter().zip(values) {
                    headers.insert(name, value.clone());
                }
                None
            }
        };
        config.refusal = why.map(|why| ConnectError::UnusableClaims {
            server: self.name.as_str().into(),
            why: why.into(),
        });
        config
    }
}

/// What of credentials of clients a reload compares.
fn identity(credentials: &Option<Arc<dyn ClientCredentials>>) -> Option<&str> {
    credentials
        .as_ref()
        .map(|credentials| credentials.identity())
}

/// Why a client without an access token cannot use a server.
const NO_TOKEN: &str = "cannot be used by this client: the server gets a token in exchange for the access token of its user, and \
     this client was not recognised by an access token";

/// MCP Apps: servers list other tools to clients that can show them. Tasks: servers create tasks only for clients that
/// support them.
const DEFAULT_FORWARDED: [&str; 2] = [
    "io.modelcontextprotocol/ui",
    mcp_vary_wire::task_dialect::TASKS_EXTENSION,
];
