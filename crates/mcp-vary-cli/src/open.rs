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
use crate::operator_client::GatewayAddress;
use crate::operator_token;
use crate::print::{self, sanitize};
use crate::stop::Stop;

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
