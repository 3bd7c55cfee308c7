//! The gateway with the fixture in its process, and its clients.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fixture_server::Options;
use mcp_vary_config::Source;
use mcp_vary_gateway::{Config, Environment, Gateway, Target};
use mcp_vary_testkit::client::{Client, ClientKind, Endpoint};
use mcp_vary_testkit::message::{modern, request};
use mcp_vary_testkit::stdio_pipe::StdioPipe;
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Clients over HTTP, of each era.
pub(crate) const KINDS: [ClientKind; 2] = [ClientKind::HttpLegacy, ClientKind::HttpModern];

/// The gateway, and the tasks of the fixture.
pub(crate) struct Embedded {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) pipes: Pipes,
    address: SocketAddr,
}

/// The tasks that serve pipes, in the order in which the gateway opened these.
#[derive(Clone, Default)]
pub(crate) struct Pipes(Arc<Mutex<Vec<JoinHandle<()>>>>);

impl Pipes {
    /// Serves a new pipe with a fixture of its own, and returns the end of the gateway.
    pub(crate) fn open(&self) -> DuplexStream {
        self.serve(|mut pipe| async move {
            // The fixture has another pipe, so that nothing is flushed or answered when this task is aborted.
            let (mut relay, server) = tokio::io::duplex(1 << 16);
            let relaying = tokio::io::copy_bidirectional(&mut pipe, &mut relay);
            tokio::select! {
                _ = fixture_server::serve(Options::default(), server) => {}
                _ = relaying => {}
            }
        })
    }

    /// Serves a new pipe, and returns the end of the gateway.
    pub(crate) fn serve<F>(&self, serve: impl FnOnce(DuplexStream) -> F) -> DuplexStream
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (gateway, server) = tokio::io::duplex(1 << 16);
        let task = tokio::spawn(serve(server));
        self.0.lock().expect("no test panics with it").push(task);
        gateway
    }

    /// How many pipes the gateway has opened.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().expect("no test panics with it").len()
    }

    /// Whether the server has ended on all pipes.
    pub(crate) fn have_ended(&self) -> bool {
        let tasks = self.0.lock().expect("no test panics with it");
        tasks.iter().all(JoinHandle::is_finished)
    }

    /// Ends the server on all pipes, as a panic would.
    pub(crate) fn abort(&self) {
        let tasks = self.0.lock().expect("no test panics with it");
        tasks.iter().for_each(JoinHandle::abort);
    }
}

/// A configuration file with the server `fixture`, which is in this process.
pub(crate) fn config(text: &str, target: Target) -> Config {
    let text =
        format!("servers: {{fixture: {{command: in-process, trust-annotations: on}}}}\n{text}");
    let file = Source::new("vary.yaml", &text).read(&|_| None);
    let file = file.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("randomness");
    let mut config = file.into_config(Environment::new(|| 1_800_000_000, random));
    config.limits = config.limits.with_drain(Duration::from_millis(50));
    config.servers[0].target = target;
    config
}

impl Embedded {
    /// The fixture behind the policy of a configuration file without servers.
    pub(crate) async fn with(policy: &str) -> Self {
        let pipes = Pipes::default();
        let opened = pipes.clone();
        let target = Target::in_process(move || opened.open());
        Self::start(config(policy, target), pipes).await
    }

    pub(crate) async fn start(config: Config, pipes: Pipes) -> Self {
        let gateway = Gateway::start(config).await.expect("the server is there");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let serving = Arc::clone(&gateway);
        tokio::spawn(async move { serving.serve_http(listener, std::future::pending()).await });
        Self {
            gateway,
            pipes,
            address,
        }
    }

    /// A client without a key.
    pub(crate) async fn client(&self, kind: ClientKind) -> Client {
        Client::open(self, kind, &json!({})).await
    }

    /// The client with the key of `name`: `ci` or `bob`.
    pub(crate) async fn client_of(&self, kind: ClientKind, name: &str) -> Client {
        let key = if name == "ci" { KEY_OF_CI } else { KEY_OF_BOB };
        let credential = format!("Bearer {key}");
        let headers = [("Authorization", credential.as_str())];
        Client::open_with(self, kind, &json!({}), &headers).await
    }
}

impl Endpoint for Embedded {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn open_pipe(&self) -> StdioPipe {
        let gateway = Arc::clone(&self.gateway);
        StdioPipe::connect(|read, write, stopped| async move {
            gateway.serve_stdio(read, write, stopped).await
        })
    }
}

/// Keys for `ci`, whose group is `sre`, and `bob`. Clients without a key are served as well.
pub(crate) const KEYS: &str = "
auth:
  anonymous: on
  keys:
    - {name: ci, sha256: cc5ef2baf01a5ed39ba97ea303038b1e0307e17217dedc31afe78cb7bf0a1bf2, claims: {groups: [sre]}}
    - {name: bob, sha256: 28f5cb1f22d85156acf541e8cb8007b50aa716d7d305ea813b6d163e31733098}
";

const KEY_OF_CI: &str = mcp_vary_testkit::credentials::KEY_OF_CI;
const KEY_OF_BOB: &str = mcp_vary_testkit::credentials::KEY_OF_NOBODY;

/// A client on pipes, which has begun as its kind does.
pub(crate) async fn piped(embedded: &Embedded, kind: ClientKind) -> StdioPipe {
    let pipe = embedded.open_pipe();
    if kind.is_modern() {
        return pipe;
    }
    pipe.initialize("2025-11-25", &json!({})).await
}

/// A call of a client of this kind, with a token for progress.
pub(crate) fn call(kind: ClientKind, id: u32, name: &str, arguments: &Value) -> String {
    let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": "token"}});
    let method = "tools/call";
    if kind.is_modern() {
        return modern(json!(id), method, params, &json!({})).to_string();
    }
    request(json!(id), method, params).to_string()
}

/// Clients on pipes, of each era.
pub(crate) const PIPED: [ClientKind; 2] = [ClientKind::StdioLegacy, ClientKind::StdioModern];
