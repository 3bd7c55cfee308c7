//! A server of the SDK with the gateway in front of it, in one program: access rules and rate limits that the server does not
//! know.
//!
//! ```sh
//! cargo run -p library-examples --bin embedded
//! ```

use std::error::Error;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use mcp_vary_config::Source;
use mcp_vary_gateway::{Config, Environment, Gateway, Target};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::schemars::{self, JsonSchema};
use rmcp::{ServerHandler, ServiceExt as _, tool, tool_handler, tool_router};
use serde::Deserialize;
use tokio::io::DuplexStream;
use tokio::net::TcpListener;

/// Everybody may read, and who has the key of `ci` may write, which is what `vary key new ci` prints.
const POLICY: &str = "
servers:
  notes: {command: in-process, trust-annotations: on}
auth:
  anonymous: on
  keys: [{name: ci, sha256: cc5ef2baf01a5ed39ba97ea303038b1e0307e17217dedc31afe78cb7bf0a1bf2}]
access:
  - {when: {anyone: on}, allow: [{readOnlyHint: true}]}
  - {when: {key: ci}, allow: [{tools: '*'}]}
rates:
  - {name: calls, rate: 10/h, burst: 3}
";

/// Serves until Ctrl-C.
///
/// # Errors
///
/// When the port is in use.
#[tokio::main]
pub async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let gateway = Gateway::start(configure()?).await?;
    let listener = TcpListener::bind("127.0.0.1:8800").await?;
    writeln!(io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    let interrupted = async {
        // Without a handler of signals, the program ends at once.
        let _ = tokio::signal::ctrl_c().await;
    };
    let served = gateway.serve_http(listener, interrupted).await;
    gateway.close().await;
    Ok(served?)
}

/// The policy, with a pipe in place of the command.
///
/// # Errors
///
/// When the policy has mistakes.
pub fn configure() -> Result<Config, Box<dyn Error + Send + Sync>> {
    let file = Source::new("policy.yaml", POLICY).read(&|_variable| None)?;
    let mut config = file.into_config(environment());
    let notes = Notes::default();
    for server in &mut config.servers {
        let notes = notes.clone();
        server.target = Target::in_process(move || open(notes.clone()));
    }
    Ok(config)
}

/// Serves a new connection of the gateway, and returns its end of the pipe.
fn open(notes: Notes) -> DuplexStream {
    let (gateway, server) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        // The gateway opens another pipe when this one is closed.
        if let Ok(running) = notes.serve(server).await {
            let _ = running.waiting().await;
        }
    });
    gateway
}

/// The server: what it keeps is the same for all connections.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// What to remember
    text: String,
}

#[tool_router]
impl Notes {
    /// Lists all notes.
    #[tool(annotations(read_only_hint = true))]
    fn list_notes(&self) -> String {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.join("\n")
    }

    /// Adds a note.
    #[tool]
    fn add_note(&self, Parameters(note): Parameters<Note>) -> String {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(note.text);
        format!("there are {} notes", notes.len())
    }
}

#[tool_handler]
impl ServerHandler for Notes {}

/// The clock and the randomness of this machine, which the gateway takes as arguments.
fn environment() -> Environment {
    #[expect(clippy::disallowed_methods, reason = "a program reads the clock")]
    let now = || {
        let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs())
    };
    // With predictable bytes, sessions could be forged.
    let random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("the system gives randomness");
    Environment::new(now, random)
}
