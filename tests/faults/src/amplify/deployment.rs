//! The gateways of a case, and the store that they share.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Stdio;

use serde_json::json;
use tokio::process::Child;

use super::AmplifyPrograms;
use super::cases::Case;
use super::client::Client;
use super::server::Server;
use crate::gateway::Gateway;
use crate::process::{self, until};

/// The gateway of a case, and another one if the case needs two replicas. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Deployment {
    /// Clients of the gateway that is measured.
    pub(super) client: Client,
    _gateways: Vec<Gateway>,
    _store: Option<Store>,
}

/// A `redis-server`, until this is dropped.
#[derive(Debug)]
struct Store {
    url: String,
    _server: Child,
}

impl Deployment {
    /// Starts what the case needs before `server`.
    pub(super) async fn start(
        programs: &AmplifyPrograms,
        case: &Case,
        server: &Server,
    ) -> Result<Self, String> {
        let store = if case.is_replicated {
            Some(Store::start().await?)
        } else {
            None
        };
        let arguments = [configuration(programs, case, server, store.as_ref())?];
        let mut gateway = Gateway::on_http(&programs.vary, &arguments)?;
        let address = address_of(&mut gateway).await?;
        let page = match case.config.get("admin") {
            Some(_) => Some(gateway.admin().await?),
            None => None,
        };
        let mut client = Client::new(&address, page, gateway.process());
        let mut gateways = vec![gateway];
        if store.is_some() {
            let mut other = Gateway::on_http(&programs.vary, &arguments)?;
            client.replica = Some(address_of(&mut other).await?);
            gateways.push(other);
            for gateway in &gateways {
                until_connected(gateway).await?;
            }
        }
        Ok(Self {
            client,
            _gateways: gateways,
            _store: store,
        })
    }
}

impl Store {
    async fn start() -> Result<Self, String> {
        let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        // The system gives these to no connection.
        let port = (6_400..6_900).find(is_free).ok_or("no port is free")?;
        let mut redis = process::command("redis-server");
        redis
            .args(["--bind", "127.0.0.1", "--save", "", "--port"])
            .arg(port.to_string())
            .stdout(Stdio::null());
        let failed = |error: io::Error| format!("`redis-server` does not run: {error}");
        let server = redis.spawn().map_err(failed)?;
        until(|| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(failed)).await?;
        Ok(Self {
            url: format!("redis://127.0.0.1:{port}"),
            _server: server,
        })
    }
}

/// The path of the configuration, which is written.
fn configuration(
    programs: &AmplifyPrograms,
    case: &Case,
    server: &Server,
    store: Option<&Store>,
) -> Result<String, String> {
    let mut config = case.config.clone();
    config["servers"] = json!({"s": {"url": server.url()}});
    if let Some(store) = store {
        config["store"] = json!(store.url);
        config["keys"] = json!(["a-key-for-all-replicas-0123456789abcdef"]);
        config["log"] = json!({"level": "info"});
    }
    fs::create_dir_all(&programs.scratch).map_err(|error| error.to_string())?;
    let path = programs.scratch.join("amplify.json");
    fs::write(&path, config.to_string()).map_err(|error| error.to_string())?;
    Ok(path.display().to_string())
}

/// Where a gateway serves, HOST:PORT.
async fn address_of(gateway: &mut Gateway) -> Result<String, String> {
    let url = gateway.url().await?;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    Ok(address.to_owned())
}

/// Waits until a gateway has connected to the store.
async fn until_connected(gateway: &Gateway) -> Result<(), String> {
    until(|| {
        let printed = gateway.said();
        let is_connected = printed.contains("store connected");
        is_connected.then_some(()).ok_or(printed)
    })
    .await
}
