//! One pair: a real server of one era and transport, Vary before it, and clients of one era and transport.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_vary_gateway::{Config, Environment, Gateway, Limits, Target, UpstreamConfig};
use mcp_vary_testkit::wait::soon;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

use crate::client::{Client, Link};

/// Which protocol somebody speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Era {
    /// 2025-11-25.
    Legacy,
    /// 2026-07-28.
    Modern,
}

impl Era {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// What messages travel by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wire {
    Http,
    Stdio,
}

/// One side of a pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Side {
    pub(crate) era: Era,
    pub(crate) wire: Wire,
}

/// What either side can be, in the order of the table.
pub(crate) const SIDES: [Side; 4] = [
    Side::new(Era::Legacy, Wire::Http),
    Side::new(Era::Legacy, Wire::Stdio),
    Side::new(Era::Modern, Wire::Http),
    Side::new(Era::Modern, Wire::Stdio),
];

impl Side {
    const fn new(era: Era, wire: Wire) -> Self {
        Self { era, wire }
    }

    pub(crate) fn name(self) -> String {
        let wire = match self.wire {
            Wire::Http => "HTTP",
            Wire::Stdio => "stdio",
        };
        format!("{} {wire}", self.era.name())
    }
}

/// Vary between the two sides.
pub(crate) struct Pair {
    pub(crate) client: Side,
    pub(crate) server: Side,
    gateway: Arc<Gateway>,
    address: SocketAddr,
    /// What the server lists.
    pub(crate) listed: Arc<Listed>,
    /// How many calls the server should have seen cancelled so far.
    cancelled: AtomicU64,
    /// A server over HTTP; one on pipes is Vary's child.
    _process: Option<Child>,
}

/// What the fixture of one era lists to a client that asks it without Vary.
pub(crate) struct Listed {
    lists: BTreeMap<&'static str, Value>,
}

impl Listed {
    /// Asks for all lists.
    pub(crate) async fn by(era: Era) -> Self {
        let (_process, address) = endpoint(&["--era", era.name()]).await;
        let mut client = Client::begin(era, Link::Http(address), json!({})).await;
        let mut lists = BTreeMap::new();
        for (method, key) in LISTS {
            let mut answer = client.ask(method, json!({})).await.answer;
            lists.insert(key, answer["result"][key].take());
        }
        Self { lists }
    }

    pub(crate) fn list(&self, key: &str) -> &Value {
        &self.lists[key]
    }
}

/// The methods that list, and the members of their results that are lists.
pub(crate) const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

impl Pair {
    pub(crate) async fn start(client: Side, server: Side, listed: Arc<Listed>) -> Self {
        let options = [
            "--era",
            server.era.name(),
            "--page-size",
            PAGE_OF_THE_SERVER,
        ];
        let (target, process) = match server.wire {
            Wire::Stdio => {
                let options = ["--stdio"].into_iter().chain(options).map(str::to_owned);
                (Target::command(FIXTURE, options), None)
            }
            Wire::Http => {
                let (process, address) = endpoint(&options).await;
                let url = format!("http://{address}/mcp").parse();
                (Target::http(url.expect("an address")), Some(process))
            }
        };
        let gateway = Gateway::start(config(target)).await;
        let gateway = gateway.expect("the fixture is there");
        Self {
            client,
            server,
            address: serve(&gateway).await,
            gateway,
            listed,
            cancelled: AtomicU64::new(0),
            _process: process,
        }
    }

    /// The same again, with a server that no client has used yet.
    pub(crate) async fn anew(&self) -> Self {
        Self::start(self.client, self.server, Arc::clone(&self.listed)).await
    }

    /// A client of this pair that can be asked nothing.
    pub(crate) async fn client(&self) -> Client {
        self.client_that_can(json!({})).await
    }

    /// A client of this pair with these capabilities.
    pub(crate) async fn client_that_can(&self, capabilities: Value) -> Client {
        let link = match self.client.wire {
            Wire::Http => Link::Http(self.address),
            Wire::Stdio => Link::pipes_to(&self.gateway),
        };
        Client::begin(self.client.era, link, capabilities).await
    }

    /// Waits until the server has seen one more call cancelled.
    pub(crate) async fn sees_one_more_cancelled(&self) {
        let expected = self.cancelled.fetch_add(1, Ordering::Relaxed) + 1;
        let requested = json!({"at_least": expected});
        let mut client = self.client().await;
        let result = client.call("cancelled_count", requested).await;
        assert_eq!(result["structuredContent"]["cancelled"], expected);
    }

    /// Whether the server has seen no more calls cancelled than it should have.
    pub(crate) async fn sees_no_more_cancelled(&self) -> bool {
        let expected = self.cancelled.load(Ordering::Relaxed);
        let mut client = self.client().await;
        let result = client.call("cancelled_count", json!({})).await;
        result["structuredContent"]["cancelled"] == expected
    }

    pub(crate) async fn end(&self) {
        soon(self.gateway.close()).await;
    }
}

fn config(target: Target) -> Config {
    let random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("randomness");
    let outside = Environment::new(|| 1_000_000, random);
    let limits = Limits::default()
        .with_drain(Duration::from_millis(50))
        // However slow the machine, it is not the clock that makes an answer a stream.
        .with_stream_after(Duration::from_secs(3_600));
    let config = Config::new(UpstreamConfig::new("fixture", target), outside).with_limits(limits);
    config.with_page_size(PAGE_OF_VARY.try_into().expect("some"))
}

async fn serve(gateway: &Arc<Gateway>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let gateway = Arc::clone(gateway);
    tokio::spawn(async move { gateway.serve_http(listener, std::future::pending()).await });
    address
}

/// The fixture over HTTP; it ends with its input.
async fn endpoint(options: &[&str]) -> (Child, SocketAddr) {
    let mut command = Command::new(FIXTURE);
    command.args(["--http", "127.0.0.1:0"]).args(options);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.kill_on_drop(true).spawn().expect("it starts");
    let output = process.stdout.take().expect("standard output is piped");
    let line = soon(BufReader::new(output).lines().next_line()).await;
    let line = line.ok().flatten().expect("it says where it listens");
    let address = line.strip_prefix("listening on http://");
    let address = address.and_then(|remaining| remaining.strip_suffix("/mcp")?.parse().ok());
    (process, address.expect("it says an address"))
}

const FIXTURE: &str = env!("CARGO_BIN_EXE_fixture-server");

/// The pages of both are others, so that neither can be taken for the other.
const PAGE_OF_THE_SERVER: &str = "3";
const PAGE_OF_VARY: usize = 4;
