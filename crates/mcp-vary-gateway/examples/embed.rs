//! A gateway inside another program: one server with two variants, over HTTP until Ctrl-C.
//!
//! ```sh
//! cargo run -p mcp-vary-gateway --example embed -- npx -y @modelcontextprotocol/server-everything
//! ```

use std::error::Error;
use std::time::UNIX_EPOCH;

use mcp_vary::variant::ServerVariant;
use mcp_vary_gateway::{Base, Config, Environment, Gateway, Target, UpstreamConfig, VariantConfig};
use tokio::net::TcpListener;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the address is the output")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments
        .next()
        .ok_or("name a command that starts an MCP server over stdio")?;
    let config = configure(Target::command(program, arguments))?;
    let listener = TcpListener::bind("127.0.0.1:8800").await?;
    println!("http://{}/mcp/v/reviewer", listener.local_addr()?);
    let interrupted = async {
        // Without a handler of signals, the program ends at once.
        let _ = tokio::signal::ctrl_c().await;
    };
    run(config, listener, interrupted).await
}

/// The server with all its tools, and with those that only read.
pub(crate) fn configure(server: Target) -> Result<Config, Box<dyn Error>> {
    let everything = ServerVariant::new("everything".parse()?, "All tools");
    let reviewer = ServerVariant::new("reviewer".parse()?, "Tools that only read");
    let variants = vec![
        VariantConfig::new(everything),
        VariantConfig::new(reviewer).with_base(Base::ReadOnly),
    ];
    let config = Config::new(UpstreamConfig::new("server", server), environment());
    Ok(config.with_variants_of(variants)?)
}

/// Connects to the server, then serves clients until `shutdown` is ready.
pub(crate) async fn run(
    config: Config,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Box<dyn Error>> {
    let gateway = Gateway::start(config).await?;
    let served = gateway.serve_http(listener, shutdown).await;
    gateway.close().await;
    Ok(served?)
}

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
