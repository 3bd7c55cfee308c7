//! Two gateways behind HAProxy are replaced one after the other, while clients of both eras send requests.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mcp_vary_testkit::http_client::{HttpRequest, RawHttp};
use mcp_vary_testkit::message::{initialize, modern, notification, request};
use mcp_vary_testkit::wait::until;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::program::{Server, VARY, signal};

/// A port that was free a moment ago: HAProxy must know where the gateways will listen.
pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A place for a gateway: its ports, which the next gateway there uses, too.
struct Place {
    name: &'static str,
    clients: u16,
    probes: u16,
}

impl Place {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            clients: free_port(),
            probes: free_port(),
        }
    }

    /// Starts a gateway, and waits until it serves.
    fn start(&self, configuration: &Path) -> Server {
        let (clients, probes) = (self.clients.to_string(), self.probes.to_string());
        let path = configuration.to_str().unwrap();
        Server::start(&["serve", "--listen", &clients, "--probes", &probes, path])
    }

    /// Whether its gateway is ready.
    async fn is_ready(&self) -> bool {
        let address = SocketAddr::from(([127, 0, 0, 1], self.probes));
        let get = HttpRequest::new("").line("GET /readyz HTTP/1.1");
        if tokio::net::TcpStream::connect(address).await.is_err() {
            return false;
        }
        RawHttp::connect(address).await.ask(&get).await.status == 200
    }
}

/// HAProxy in front of the gateways, until this is dropped.
struct Proxy {
    process: Child,
    address: SocketAddr,
    folder: PathBuf,
}

impl Proxy {
    async fn before(places: &[Place; 2], folder: PathBuf) -> Self {
        let port = free_port();
        let servers = places.each_ref().map(|place| {
            let (name, clients, probes) = (place.name, place.clients, place.probes);
            format!("  server {name} 127.0.0.1:{clients} check port {probes}\n")
        });
        let page = include_str!("../../../../docs/how-to/service.md");
        let (_, configuration) = page.split_once("```text\ndefaults\n").unwrap();
        let (configuration, _) = configuration.split_once("  server ").unwrap();
        let configuration = format!("defaults\n{configuration}")
            .replace("bind :8800", &format!("bind 127.0.0.1:{port}"));
        let path = folder.join("haproxy.cfg");
        fs::write(&path, configuration + &servers.concat()).unwrap();
        let started = Command::new("haproxy")
            .args(["-db", "-f"])
            .arg(&path)
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("haproxy.log")).unwrap())
            .spawn();
        let missing = "haproxy is missing; on Debian, type as root: apt-get update && apt-get install -y haproxy";
        let process = started.expect(missing);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let proxy = Self {
            process,
            address,
            folder,
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while tokio::net::TcpStream::connect(address).await.is_err() {
            let log = fs::read_to_string(proxy.folder.join("haproxy.log"));
            assert!(Instant::now() < deadline, "it does not listen: {log:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        proxy
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// What clients counted, and whether they go on.
#[derive(Default)]
struct Load {
    requests: AtomicUsize,
    /// Streams that were opened, and those that a gateway ended.
    opened: AtomicUsize,
    ended: AtomicUsize,
    stops: AtomicBool,
}

impl Load {
    fn goes_on(&self) -> bool {
        !self.stops.load(Ordering::Relaxed)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Reads a stream to its end, and opens it again.
    async fn listen(&self, proxy: SocketAddr, open: HttpRequest) {
        while self.goes_on() {
            let mut http = RawHttp::connect(proxy).await;
            http.send(&open.bytes()).await;
            let head = http.head().await;
            assert_eq!(head.status, 200, "a stream is opened");
            self.opened.fetch_add(1, Ordering::Relaxed);
            // The last ones are open when the test ends.
            while http.written_event().await.is_some() {}
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Calls a tool and lists tools in turn, each with an answer.
    async fn ask(&self, proxy: SocketAddr, session: Option<String>) {
        let mut http = RawHttp::connect(proxy).await;
        let mut id = 0;
        while self.goes_on() {
            id += 1;
            let (method, params) = match id % 2 {
                0 => ("tools/list", json!({})),
                _ => (
                    "tools/call",
                    json!({"name": "get_weather", "arguments": {"location": "Bern"}}),
                ),
            };
            let request = match &session {
                Some(session) => {
                    HttpRequest::of(session, request(json!(id), method, params).to_string())
                }
                None => HttpRequest::modern(&modern(json!(id), method, params, &json!({}))),
            };
            let response = http.ask(&request).await;
            let text = response.text();
            assert_eq!(response.status, 200, "request {id}: {text}");
            let answer = response.answer();
            assert!(answer["result"].is_object(), "request {id}: {text}");
            assert_eq!(answer["id"], json!(id), "{text}");
            self.requests.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Opens a session of 2025-11-25.
async fn session(proxy: SocketAddr) -> String {
    let mut http = RawHttp::connect(proxy).await;
    let first = initialize("2025-11-25", &json!({}));
    let opened = http.ask(&HttpRequest::new(first.to_string())).await;
    let id = opened.header("mcp-session-id").unwrap().to_owned();
    let ready: Value = notification("notifications/initialized", json!({}));
    let ready = http.ask(&HttpRequest::of(&id, ready.to_string())).await;
    assert_eq!(ready.status, 202);
    id
}

/// Starts four clients of each revision, and four streams of each.
async fn start(load: &Arc<Load>, proxy: SocketAddr) -> (Vec<JoinHandle<()>>, Vec<JoinHandle<()>>) {
    let (mut clients, mut streams) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        for session in [Some(session(proxy).await), None] {
            let load = Arc::clone(load);
            clients.push(tokio::spawn(async move { load.ask(proxy, session).await }));
        }
        let listen = json!({"notifications": {"toolsListChanged": true}});
        let listen = modern(json!(1), "subscriptions/listen", listen, &json!({}));
        let get = HttpRequest::of(&session(proxy).await, "")
            .line("GET /mcp HTTP/1.1")
            .with("Accept", "text/event-stream");
        for open in [HttpRequest::modern(&listen), get] {
            let load = Arc::clone(load);
            streams.push(tokio::spawn(async move { load.listen(proxy, open).await }));
        }
    }
    (clients, streams)
}

/// Ends a gateway, and starts its successor. Prints how long each step took.
#[expect(
    clippy::print_stdout,
    reason = "the times are for the person who runs the test"
)]
async fn replace(place: &Place, server: &mut Server, configuration: &Path, load: &Load) {
    let before = load.requests();
    let began = Instant::now();
    signal("TERM", server.child.id());
    while place.is_ready().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let not_ready = began.elapsed();
    while server.child.try_wait().unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let ended = began.elapsed();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    *server = tokio::task::block_in_place(|| place.start(configuration));
    while !place.is_ready().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let replaced = began.elapsed();
    // HAProxy sends requests there again before the other one is replaced.
    tokio::time::sleep(Duration::from_millis(500)).await;
    println!(
        "{}: not ready after {not_ready:.1?}, ended after {ended:.1?}, its successor ready after \
         {replaced:.1?}; {} requests meanwhile",
        place.name,
        load.requests() - before,
    );
}

/// Replaces both gateways until clients have sent this many requests, at least once.
#[expect(
    clippy::print_stdout,
    reason = "the counts are for the person who runs the test"
)]
async fn replaced_under_load(least: usize) {
    let folder = std::env::temp_dir().join(format!("vary-rolling-{}-{least}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let configuration = folder.join("vary.yaml");
    let text = format!(
        "servers: {{sky: {{command: {VARY:?}, args: [weather]}}}}\n\
         keys: [a-key-for-both-gateways-0123456789abcdef]\nlimits: {{drain-delay: 2s, drain: 20s}}\n"
    );
    fs::write(&configuration, text).unwrap();
    let places = [Place::new("first"), Place::new("second")];
    let mut servers = places.each_ref().map(|it| it.start(&configuration));
    let proxy = Proxy::before(&places, folder).await;
    let load = Arc::new(Load::default());
    let (clients, streams) = start(&load, proxy.address).await;
    let mut rounds = 0;
    while rounds == 0 || load.requests() < least {
        rounds += 1;
        for (place, server) in places.iter().zip(&mut servers) {
            replace(place, server, &configuration, &load).await;
        }
    }
    let count = || [&load.opened, &load.ended].map(|it| it.load(Ordering::Relaxed));
    let are_back = async || {
        let [opened, ended] = count();
        opened == ended + streams.len()
    };
    until(are_back).await;
    let [opened, ended] = count();
    load.stops.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    println!(
        "{} requests, none failed; streams: {opened} opened, {ended} ended",
        load.requests()
    );
    assert!(load.requests() >= least);
    // Each gateway ended its streams, and each of them came back.
    assert!(ended >= streams.len(), "{ended} of {} ended", streams.len());
    for stream in streams {
        assert!(!stream.is_finished(), "it is open");
        stream.abort();
    }
}

/// OP-7
#[tokio::test(flavor = "multi_thread")]
async fn no_request_fails_while_gateways_are_replaced() {
    replaced_under_load(1_000).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes a minute"]
async fn no_request_of_20_000_fails_while_gateways_are_replaced() {
    replaced_under_load(20_000).await;
}
