//! `vary reload` and `vary drain`: commands for a running gateway.

use std::net::ToSocketAddrs as _;
use std::time::Duration;

use clap::Parser;
use http::{Method, StatusCode};
use mcp_vary_operator::Command;
use serde_json::Value;

use crate::failure::{Failure, Verdict};
use crate::operator;
use crate::operator::client::{GatewayAddress, not_the_operators};
use crate::print::{self, sanitize};
use crate::stop::Stop;

/// Options of the commands for a running gateway.
#[derive(Debug, Parser)]
pub(crate) struct Operate {
    /// `admin-token` of the gateway's configuration; without it, the token that the gateway wrote for its user
    #[arg(
        long,
        env = "VARY_ADMIN_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub(crate) token: Option<String>,
    /// The gateway: its `--admin` address as HOST:PORT, a port or the URL, or its socket [default: the running gateway of
    /// this user, or 127.0.0.1:8801]
    #[arg(value_name = "ADDR")]
    pub(crate) address: Option<String>,
}

/// Sends `command`, and prints what came of it.
pub(crate) async fn run(
    command: Command,
    args: Operate,
    mut stop: Stop,
) -> Result<Verdict, Failure> {
    let name = command.path().trim_start_matches('/');
    let address = GatewayAddress::find_running(args.address.as_deref(), name).await?;
    // Known as long as it runs.
    let known = address.known_by().filter(|_| command == Command::Drain);
    let token = args.token.or_else(|| written_token(&address));
    let request = address.request(Method::POST, command.path(), token.as_deref(), TIMEOUT);
    let answered = async {
        let answer = request.await;
        answer.map_err(|why| Failure::command(format!("no answer from {address}: {why}")))
    };
    let (status, body) = stop.unless_requested(answered).await?;
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    match (status, answer["message"].as_str(), answer["error"].as_str()) {
        (StatusCode::OK, Some(message), _) => {
            let gateway = known.map_or_else(String::new, |known| format!("{known}: "));
            print::data(&sanitize(&format!("{gateway}{message}\n")))?;
            Ok(Verdict::Fine)
        }
        (StatusCode::UNPROCESSABLE_ENTITY, _, Some(why)) => Err(Failure::looked_at(why)),
        (StatusCode::UNAUTHORIZED, ..) => Err(wrong_token(&address)),
        (_, _, Some(why)) => Err(Failure::command(why)),
        _ => {
            let why = not_the_operators(status, name);
            Err(Failure::command(format!("no answer from {address}: {why}")))
        }
    }
}

/// The failure of a command whose token the gateway at `address` does not accept.
pub(crate) fn wrong_token(address: &GatewayAddress) -> Failure {
    Failure::command(format!("{address} {WRONG_TOKEN}"))
}

/// What is wrong where the token is, and what to do.
pub(crate) const WRONG_TOKEN: &str = "does not accept the token; set VARY_ADMIN_TOKEN to `admin-token` of its configuration, or, if the \
     gateway is of another user, run this command as that user";

/// The token that the gateway at `address` wrote for this user. A socket needs none.
pub(crate) fn written_token(address: &GatewayAddress) -> Option<String> {
    if let GatewayAddress::Socket(_) = address {
        return None;
    }
    let addresses = address.authority().to_socket_addrs().ok()?;
    addresses.into_iter().find_map(operator::token::read)
}

/// A reload connects to new servers before it answers.
const TIMEOUT: Duration = Duration::from_secs(300);
