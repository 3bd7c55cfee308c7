//! `vary open`: the page of a running gateway, in the browser.

use std::time::Duration;

use clap::Parser;
use http::{Method, StatusCode};
use mcp_vary_operator::AdminToken;

use crate::admin::page_address;
use crate::failure::{Failure, Verdict};
use crate::login::browser;
use crate::operate::{written_token, wrong_token};
use crate::operator_client::{GatewayAddress, not_the_operators};
use crate::operator_token;
use crate::print::{self, sanitize};
use crate::stop::Stop;

/// Open the page of a running gateway in the browser
///
/// The page shows the calls of clients as they come, what each variant lists and costs, and which client gets what and why. It
/// changes nothing. The gateway must have an `--admin` address.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  vary open\n  vary open 8801 --print")]
pub(crate) struct Open {
    /// Print the address of the page instead of opening it. It contains a token for the page
    #[arg(long)]
    pub(crate) print: bool,
    /// `admin-token` of the gateway's configuration; without it, the token that the gateway wrote for its user
    #[arg(
        long,
        env = "VARY_ADMIN_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub(crate) token: Option<String>,
    /// The `--admin` address of the gateway, as HOST:PORT, a port or the URL [default: that of the running gateway of this
    /// user, or 127.0.0.1:8801]
    #[arg(value_name = "ADDR")]
    pub(crate) address: Option<String>,
}

/// Opens the page, or prints its address.
pub(crate) async fn run(args: Open, mut stop: Stop) -> Result<Verdict, Failure> {
    let address = match &args.address {
        Some(typed) => GatewayAddress::parse(typed)?,
        None => running()?,
    };
    if let GatewayAddress::Socket(path) = &address {
        let path = path.display();
        return Err(Failure::command(format!(
            "a browser cannot open the socket {path}; start Vary with `--admin 8801`, and write `vary open 8801`"
        )));
    }
    let token = args.token.or_else(|| written_token(&address));
    let token = token.map(|token| token.parse::<AdminToken>()).transpose();
    let token = token.map_err(|error| Failure::command(format!("the token {error}")))?;
    let token = token.ok_or_else(|| wrong_token(&address))?.for_page();
    stop.unless_requested(check(&address, &token)).await?;
    let url = page_address(address.authority(), token.expose());
    if args.print {
        print::data(&format!("{}\n", sanitize(&url)))?;
        return Ok(Verdict::Fine);
    }
    browser::open(&url).map_err(Failure::command)?;
    print::notice(&sanitize(&format!(
        "opening http://{address}/ in the browser"
    )));
    Ok(Verdict::Fine)
}

/// The address of the running gateway of this user, or the default one.
fn running() -> Result<GatewayAddress, Failure> {
    match &operator_token::running()[..] {
        [] => Ok(GatewayAddress::Default),
        [one] => Ok(GatewayAddress::Tcp(one.to_string())),
        several => {
            let lines = several.iter();
            let lines: Vec<_> = lines
                .map(|address| format!("  vary open {address}"))
                .collect();
            Err(Failure::command(format!(
                "{} gateways are running; name one of them:\n{}",
                several.len(),
                lines.join("\n")
            )))
        }
    }
}

/// Whether the page is there, and accepts the token.
async fn check(address: &GatewayAddress, token: &AdminToken) -> Result<(), Failure> {
    let request = address.request(Method::GET, "/api/status", Some(token.expose()));
    let answer = tokio::time::timeout(TIMEOUT, request).await;
    let late = || Err(format!("it did not answer within {TIMEOUT:?}"));
    let unanswered = |why| Failure::command(format!("no answer from {address}: {why}"));
    match answer.unwrap_or_else(|_| late()).map_err(unanswered)?.0 {
        StatusCode::OK => Ok(()),
        StatusCode::UNAUTHORIZED => Err(wrong_token(address)),
        status => Err(unanswered(not_the_operators(status, "open"))),
    }
}

/// A gateway of this machine answers at once.
const TIMEOUT: Duration = Duration::from_secs(10);
