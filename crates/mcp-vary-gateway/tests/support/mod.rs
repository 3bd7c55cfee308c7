//! A gateway in front of a scripted server.

#![allow(dead_code, unused_imports, reason = "no test binary needs all of it")]

pub(crate) mod people;

use std::net::SocketAddr;

use mcp_vary::json::Json;
use mcp_vary_config::Source;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) use mcp_vary::variant::ServerVariant;
pub(crate) use mcp_vary_gateway::{
    Config, Environment, Gateway, Limits, Reloaded, Target, UpstreamConfig, VariantConfig,
};
pub(crate) use mcp_vary_testkit::prelude::*;

/// A gateway that serves HTTP, and the server behind it.
pub(crate) struct Harness {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) peer: ScriptedServer,
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
}

impl Harness {
    /// With the defaults, in front of a legacy server.
    pub(crate) async fn start() -> Self {
        Self::with(|config| config).await
    }

    /// With another configuration, in front of a legacy server.
    pub(crate) async fn with(adapt: impl FnOnce(Config) -> Config) -> Self {
        Self::before(Era::Legacy, adapt).await
    }

    /// With these changes of the configuration, in front of a legacy server.
    pub(crate) async fn of(edit: impl FnOnce(&mut Config)) -> Self {
        Self::with(edited(edit)).await
    }

    /// With these changes of the configuration, in front of `peer`.
    pub(crate) async fn edited(peer: ScriptedServer, edit: impl FnOnce(&mut Config)) -> Self {
        Self::behind_one(peer, edited(edit)).await
    }

    /// In front of a server of `era`.
    pub(crate) async fn before(era: Era, adapt: impl FnOnce(Config) -> Config) -> Self {
        Self::behind_one(places_server::start(era).await, adapt).await
    }

    /// In front of `peer`.
    pub(crate) async fn behind_one(
        peer: ScriptedServer,
        adapt: impl FnOnce(Config) -> Config,
    ) -> Self {
        let config = config(Target::http(peer.url.clone()));
        Self::behind(peer, adapt(config)).await
    }

    /// With the defaults, in front of a server with this script.
    pub(crate) async fn scripted(
        script: impl Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        Self::behind_one(ScriptedServer::start(script).await, |config| config).await
    }

    /// With the defaults, in front of the server that `script` describes.
    pub(crate) async fn of_server(script: Script) -> Self {
        Self::with_server(script, |config| config).await
    }

    /// With another configuration, in front of the server that `script` describes.
    pub(crate) async fn with_server(script: Script, adapt: impl FnOnce(Config) -> Config) -> Self {
        Self::behind_one(script.start().await, adapt).await
    }

    /// With these variants, in front of the server that `script` describes.
    pub(crate) async fn of_variants(script: Script, variants: Vec<VariantConfig>) -> Self {
        let adapt = |config: Config| config.with_variants_of(variants).unwrap();
        Self::with_server(script, adapt).await
    }

    /// With these `rules` for the results of tools, in front of the server that `script` describes.
    pub(crate) async fn ruled(script: Script, rules: &str) -> Self {
        let rules = mcp_vary_config::read_results(rules).unwrap();
        Self::with_server(script, edited(|config| config.results = rules)).await
    }

    /// With this file, whose servers are the one that `script` describes.
    pub(crate) async fn configured(script: Script, file: &str) -> Self {
        let peer = script.start().await;
        let config = of_file(&format!(
            "servers: {{a: {{url: \"{}\"}}}}\n{file}",
            peer.url
        ));
        Self::behind(peer, config).await
    }

    /// In front of the servers `one` and `two`, of which it returns the second.
    pub(crate) async fn behind_two(
        [one, two]: [ScriptedServer; 2],
        adapt: impl FnOnce(Config) -> Config,
    ) -> (Self, ScriptedServer) {
        let config = adapt(before(&[("one", &one), ("two", &two)]));
        (Self::behind(one, config).await, two)
    }

    /// In front of the servers of `config`. `peer` is one of them.
    pub(crate) async fn behind(peer: ScriptedServer, config: Config) -> Self {
        let gateway = Gateway::start(config).await.unwrap();
        let (address, stop) = serve(&gateway).await;
        Self {
            gateway,
            peer,
            address,
            stop,
        }
    }

    /// In front of the servers of `config`, none of which is scripted.
    pub(crate) async fn alone(config: Config) -> Self {
        Self::behind(ScriptedServer::start(|_| None).await, config).await
    }

    /// In front of `server`, after the gateway has subscribed to its changes.
    pub(crate) async fn changing(server: &ChangingServer) -> Self {
        Self::changing_with(server, |config| config).await
    }

    /// The same with another configuration.
    pub(crate) async fn changing_with(
        server: &ChangingServer,
        adapt: impl FnOnce(Config) -> Config,
    ) -> Self {
        let harness = Self::behind_one(server.start().await, adapt).await;
        server.wait_for_listener().await;
        harness
    }

    /// With these changes of the configuration, in front of `server` as above.
    pub(crate) async fn changing_edited(
        server: &ChangingServer,
        edit: impl FnOnce(&mut Config),
    ) -> Self {
        Self::changing_with(server, edited(edit)).await
    }

    /// Stops serving gracefully.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// The address of a listener for operators.
    pub(crate) async fn operators(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let gateway = Arc::clone(&self.gateway);
        tokio::spawn(async move { gateway.serve_admin(listener, std::future::pending()).await });
        address
    }

    /// A connection with a modern call that the server does not answer, its `count`th.
    pub(crate) async fn unanswered(&self, count: usize) -> RawHttp {
        let mut http = self.connect().await;
        let call = modern(json!(1), "tools/call", tool("wait"), &json!({}));
        http.send(&HttpRequest::modern(&call).bytes()).await;
        soon(self.peer.wait_for("tools/call", count)).await;
        http
    }

    /// Sends a call in a session that the server does not answer.
    pub(crate) async fn wait_in(&self, client: &mut LegacyClient, id: u64) {
        let wait = client.post(&request(json!(id), "tools/call", tool("wait")));
        client.http.send(&wait.bytes()).await;
        soon(self.peer.wait_for("tools/call", 1)).await;
    }

    /// A connection of a client.
    pub(crate) async fn connect(&self) -> RawHttp {
        RawHttp::connect(self.address).await
    }

    /// What answers a new client that declares nothing.
    pub(crate) async fn ask(&self, kind: ClientKind, method: &str, params: Value) -> Value {
        kind.ask(self, &json!({}), method, params).await
    }

    /// What answers a new client that declares these feature tags, or nothing.
    pub(crate) async fn ask_with(
        &self,
        kind: ClientKind,
        tags: &[&str],
        method: &str,
        params: Value,
    ) -> Value {
        let capabilities = match tags {
            [] => json!({}),
            tags => features(tags),
        };
        kind.ask(self, &capabilities, method, params).await
    }

    /// The result for a new client that declares these feature tags, or nothing.
    pub(crate) async fn result_of(
        &self,
        kind: ClientKind,
        tags: &[&str],
        method: &str,
        params: Value,
    ) -> Value {
        let mut answer = self.ask_with(kind, tags, method, params).await;
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].take()
    }

    /// What answers a new modern client over HTTP that selects a variant.
    pub(crate) async fn ask_under(&self, variant: &str, method: &str, params: Value) -> Value {
        self.ask_modern(method, under(variant, params)).await
    }

    /// What answers a new modern client over HTTP.
    pub(crate) async fn ask_modern(&self, method: &str, params: Value) -> Value {
        self.ask(ClientKind::HttpModern, method, params).await
    }

    /// The status for operators, as JSON.
    pub(crate) fn status(&self) -> Value {
        serde_json::to_value(self.gateway.status()).unwrap()
    }

    /// Goes on with another configuration, which is valid.
    pub(crate) async fn reload(&self, config: Config) -> Reloaded {
        self.gateway.reload(config).await.unwrap()
    }

    /// Checks that new clients are served.
    pub(crate) async fn still_serves(&self, after: &str) {
        self.is_unharmed(&mut self.connect().await, after).await;
    }

    /// Checks that the connection still works, and that another client is served.
    pub(crate) async fn is_unharmed(&self, http: &mut RawHttp, after: &str) {
        let list = modern(json!("after"), "tools/list", json!({}), &json!({}));
        let answer = http.ask(&HttpRequest::modern(&list)).await;
        assert_eq!(answer.status, 200, "the same connection, after {after}");
        assert_eq!(answer.json()["id"], "after", "{after}");
        let mut other = LegacyClient::open(self, "2025-11-25", &json!({})).await;
        let answer = other.ask("ping", json!({})).await;
        assert_eq!(
            answer.json()["result"],
            json!({}),
            "another client, after {after}"
        );
    }
}

impl Endpoint for Harness {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn open_pipe(&self) -> StdioPipe {
        open_pipe(&self.gateway)
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What answers a new client with these capabilities.
pub(crate) async fn ask_as(
    harness: &Harness,
    kind: ClientKind,
    capabilities: &Value,
    method: &str,
    params: Value,
) -> Value {
    kind.ask(harness, capabilities, method, params).await
}

/// What answers a new modern client over HTTP with these capabilities.
pub(crate) async fn ask_modern_as(
    harness: &Harness,
    capabilities: &Value,
    method: &str,
    params: Value,
) -> Value {
    ask_as(
        harness,
        ClientKind::HttpModern,
        capabilities,
        method,
        params,
    )
    .await
}

/// A client that listens to every list and to these resources, in the variant it gets.
pub(crate) async fn listening(
    harness: &Harness,
    kind: ClientKind,
    uris: &[&str],
) -> NotificationClient {
    NotificationClient::listening(harness, kind, everything(uris), None).await
}

/// A client on pipes that has sent nothing yet.
pub(crate) fn open_pipe(gateway: &Arc<Gateway>) -> StdioPipe {
    let gateway = Arc::clone(gateway);
    StdioPipe::connect(|read, write, stopped| async move {
        gateway.serve_stdio(read, write, stopped).await
    })
}

/// A client on pipes that has sent `initialize`.
pub(crate) async fn legacy_pipe(
    gateway: &Arc<Gateway>,
    revision: &str,
    capabilities: &Value,
) -> StdioPipe {
    let pipe = open_pipe(gateway);
    pipe.initialize(revision, capabilities).await
}

/// The configuration for one server.
pub(crate) fn config(target: Target) -> Config {
    let environment = Environment::new(|| 1_000_000, |bytes| getrandom::fill(bytes).unwrap());
    Config::new(UpstreamConfig::new("peer", target), environment).with_limits(limits())
}

/// A server that is a script in `tests/servers`.
pub(crate) fn of_script(name: &str) -> Target {
    let script = format!("{}/tests/servers/{name}", env!("CARGO_MANIFEST_DIR"));
    Target::command("python3", [script])
}

/// The configuration that this file makes.
pub(crate) fn of_file(text: &str) -> Config {
    let file = Source::new("vary.yaml", text).read(&|_| None);
    let file = file.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let environment = Environment::new(|| 0, |bytes| getrandom::fill(bytes).unwrap());
    file.into_config(environment).with_limits(limits())
}

/// A configuration after `edit`.
pub(crate) fn edited(edit: impl FnOnce(&mut Config)) -> impl FnOnce(Config) -> Config {
    move |mut config| {
        edit(&mut config);
        config
    }
}

/// The configuration for several servers.
pub(crate) fn before(servers: &[(&str, &ScriptedServer)]) -> Config {
    let configs = servers
        .iter()
        .map(|(name, peer)| UpstreamConfig::new(*name, Target::http(peer.url.clone())));
    let mut all = config(Target::command("none", []));
    all.servers = configs.collect();
    all
}

/// A variant of which only the id matters.
pub(crate) fn variant(id: &str) -> VariantConfig {
    VariantConfig::new(ServerVariant::new(id.parse().unwrap(), "For tests."))
}

/// Limits of the gateway that no slow answer exceeds.
pub(crate) fn limits() -> Limits {
    Limits::default()
        .with_drain(Duration::from_millis(50))
        .with_stream_after(Duration::from_secs(3_600))
}

/// Serves HTTP on a free port until the token is cancelled.
pub(crate) async fn serve(gateway: &Arc<Gateway>) -> (SocketAddr, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let (gateway, stopped) = (Arc::clone(gateway), stop.clone().cancelled_owned());
    tokio::spawn(async move { gateway.serve_http(listener, stopped).await.unwrap() });
    (address, stop)
}

/// A JSON string, for the override of a value.
pub(crate) fn json_text(value: &'static str) -> Option<Json<'static>> {
    Some(Json::String(value.into()))
}
