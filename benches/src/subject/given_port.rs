//! Peers, and programs that serve at the port that they are given, and do not print it.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::{AddressSource, Programs, Running, START, Upstream};
use crate::configurations::{ServerTarget, mcp_proxy_config};
use crate::endpoint::Endpoint;

impl Programs {
    /// Starts `mcp-proxy`.
    pub(super) fn mcp_proxy(&self, ways: &[ServerTarget]) -> io::Result<Running> {
        let Some(program) = &self.mcp_proxy else {
            return Err(io::Error::other("mcp-proxy is not installed"));
        };
        // It does not print its address, so a port is chosen for it.
        let place = unused_endpoint()?;
        let file = self.scratch.join("mcp-proxy.toml");
        fs::write(&file, mcp_proxy_config(place.address, ways))?;
        let arguments = ["--config".to_owned(), file.display().to_string()];
        self.start(
            program,
            &arguments,
            &[self.cores.subject],
            AddressSource::Nothing(place),
        )
    }

    /// Starts FastMCP's proxy, which prints its address.
    pub(super) fn fastmcp(&self, ways: &[ServerTarget]) -> io::Result<Running> {
        let Some(python) = &self.fastmcp else {
            return Err(io::Error::other("FastMCP is not installed"));
        };
        let script = ["-c", include_str!("fastmcp_proxy.py")].map(str::to_owned);
        let urls = ways.iter().flat_map(|target| target.to_args("--to").pop());
        let arguments: Vec<_> = script.into_iter().chain(urls).collect();
        let cores = [self.cores.subject];
        self.start(python, &arguments, &cores, AddressSource::Output)
    }

    /// Starts `supergateway` with sessions: without, it starts the server for each request.
    pub(super) fn supergateway(&self, ways: &[ServerTarget]) -> io::Result<Running> {
        let (Some(program), [ServerTarget::Command(server)]) = (&self.supergateway, ways) else {
            return Err(io::Error::other("supergateway needs one server over stdio"));
        };
        let place = Endpoint {
            path: "/mcp".to_owned(),
            ..unused_endpoint()?
        };
        let port = place.address.port();
        let options = format!(
            "--outputTransport streamableHttp --stateful --logLevel none --port {port} --stdio"
        );
        let options = options.split(' ').map(str::to_owned);
        let arguments: Vec<_> = options.chain([server.join(" ")]).collect();
        let says = AddressSource::Nothing(place);
        self.start(program, &arguments, &[self.cores.subject], says)
    }

    /// Starts a Redis that keeps nothing.
    pub(super) fn store(&self) -> io::Result<Running> {
        let place = unused_endpoint()?;
        let port = place.address.port();
        let arguments = format!("--bind 127.0.0.1 --port {port} --appendonly no --save");
        let arguments: Vec<_> = arguments
            .split(' ')
            .chain([""])
            .map(str::to_owned)
            .collect();
        let says = AddressSource::Nothing(place);
        let cores = [self.cores.load];
        self.start(Path::new("redis-server"), &arguments, &cores, says)
    }
}

impl Upstream {
    /// Where the store of the gateway is, or the collector of its spans.
    pub(crate) fn beside_at(&self) -> io::Result<SocketAddr> {
        let beside = self.beside.as_ref().map(|it| it.endpoint.address);
        beside.ok_or_else(|| io::Error::other("the row has nothing beside the gateway"))
    }
}

/// Where a program will serve that does not choose its port itself.
fn unused_endpoint() -> io::Result<Endpoint> {
    Ok(Endpoint {
        address: TcpListener::bind("127.0.0.1:0")?.local_addr()?,
        path: "/".to_owned(),
        headers: String::new(),
    })
}

/// Waits until the address accepts connections.
pub(super) fn wait_until_reachable(place: Endpoint) -> io::Result<Endpoint> {
    let deadline = Instant::now() + START;
    while TcpStream::connect(place.address).is_err() {
        if Instant::now() > deadline {
            return Err(io::Error::other(format!(
                "nothing listens on {}",
                place.address
            )));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(place)
}
