//! `vary open`: the page of a running gateway, in the browser.

pub(crate) mod args;

use std::time::Duration;

use http::{Method, StatusCode};
use mcp_vary_operator::AdminToken;

use self::args::Open;
use crate::admin::page_address;
use crate::failure::{Failure, Verdict};
use crate::login::browser;
use crate::operate::{written_token, wrong_token};
use crate::operator_client::{self, GatewayAddress, about};
use crate::operator_token;
use crate::print::servers::plural;
use crate::print::{self, sanitize};
use crate::stop::Stop;

/// Opens the page, or prints its address.
pub(crate) async fn run(args: Open, mut stop: Stop) -> Result<Verdict, Failure> {
    let address = match &args.address {
        Some(typed) => with_page(GatewayAddress::parse(typed)?)?,
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
    let token = token.map(|token| token.for_page());
    stop.unless_requested(check(&address, token.as_ref()))
        .await?;
    let token = token.ok_or_else(|| wrong_token(&address))?;
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

/// The address of the page, if the address for clients was typed.
fn with_page(address: GatewayAddress) -> Result<GatewayAddress, Failure> {
    let Some(socket) = address.of_clients() else {
        return Ok(address);
    };
    let about = about(&socket);
    let admin = about["admin"].as_str().map(str::to_owned);
    admin.map(GatewayAddress::Tcp).ok_or_else(|| {
        Failure::command(format!(
            "the gateway at {address} has no page; start it with `--admin 8801`"
        ))
    })
}

/// The address of the running gateway of this user, or the default one.
fn running() -> Result<GatewayAddress, Failure> {
    let sockets = operator_client::running();
    match &operator_token::running()[..] {
        [] if sockets.is_empty() => Ok(GatewayAddress::Default),
        [] => Err(Failure::command(format!(
            "none of your {} has a page; start one with `--admin 8801`",
            plural(sockets.len(), "running gateway")
        ))),
        [one] => Ok(GatewayAddress::Tcp(one.to_string())),
        several => {
            let comment = |admin: &str| {
                let mut sockets = sockets.iter();
                let socket = sockets.find(|socket| about(socket)["admin"] == admin)?;
                let known = GatewayAddress::Socket(socket.clone()).known_by()?;
                Some(format!("  # {known}"))
            };
            let lines = several.iter().map(|address| {
                let comment = comment(&address.to_string()).unwrap_or_default();
                format!("  vary open {address}{comment}")
            });
            let lines: Vec<_> = lines.collect();
            Err(Failure::command(sanitize(&format!(
                "{} gateways with a page are running; name one of them:\n{}",
                several.len(),
                lines.join("\n")
            ))))
        }
    }
}

/// Whether the page is there, and accepts the token.
async fn check(address: &GatewayAddress, token: Option<&AdminToken>) -> Result<(), Failure> {
    let token = token.map(AdminToken::expose);
    let request = address.request(Method::GET, "/api/status", token);
    let answer = tokio::time::timeout(TIMEOUT, request).await;
    let late = || Err(format!("it did not answer within {TIMEOUT:?}"));
    let no_page = |why: &str| {
        Failure::command(format!(
            "no page at {address}: {why}; `vary open` finds a gateway that was started with `--admin 8801`"
        ))
    };
    match answer.unwrap_or_else(|_| late()) {
        Ok((StatusCode::OK, _)) => Ok(()),
        Ok((StatusCode::UNAUTHORIZED, _)) => Err(wrong_token(address)),
        Ok((status, _)) => Err(no_page(&format!(
            "it answers {status}, as the address for clients does"
        ))),
        // What follows is about other commands.
        Err(why) => Err(no_page(why.split("; ").next().unwrap_or_default())),
    }
}

/// A gateway of this machine answers at once.
const TIMEOUT: Duration = Duration::from_secs(10);
