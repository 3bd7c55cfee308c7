//! `vary open`: the page of a running gateway, in the browser.

pub(crate) mod args;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use http::{Method, StatusCode};
use mcp_vary_operator::{AdminToken, PAGE_CODE};
use serde_json::Value;

use self::args::Open;
use crate::commands::operate::{written_token, wrong_token};
use crate::credentials::browser;
use crate::failure::{Failure, Verdict};
use crate::operator;
use crate::operator::client::{
    ENDED, GatewayAddress, HOMELESS, about, has_directory, is_in_use, page_fix,
};
use crate::print::{self, sanitize};
use crate::stop::Stop;

/// Opens the page, or prints its address.
pub(crate) async fn run(args: Open, mut stop: Stop) -> Result<Verdict, Failure> {
    let address = match &args.address {
        Some(typed) => with_page(GatewayAddress::parse(typed)?)?,
        None => running()?,
    };
    if let GatewayAddress::Socket(path) = &address {
        let shown = path.display();
        return Err(Failure::command(format!(
            "a browser cannot open the socket {shown}; start Vary with `--admin 8801`, and write `vary open 8801`"
        )));
    }
    let text = args.token.or_else(|| written_token(&address));
    let parsed = text.map(|text| text.parse::<AdminToken>()).transpose();
    let token = parsed.map_err(|error| Failure::command(format!("the token {error}")))?;
    let page_token = token.map(|token| token.for_page());
    let code = stop
        .unless_requested(page_code(&address, page_token.as_ref()))
        .await?;
    // A browser sends what follows the `#` to nobody.
    let url = format!("http://{}/#code={code}", address.authority());
    if args.print {
        print::data(&format!("{}\n", sanitize(&url)))?;
        return Ok(Verdict::Fine);
    }
    let opened = async {
        let opening = browser::open(&url).await;
        opening.map_err(|why| Failure::command(sanitize(&not_opened(&why, &url))))
    };
    stop.unless_requested(opened).await?;
    print::notice(&sanitize(&format!(
        "opening http://{address}/ in the browser"
    )));
    Ok(Verdict::Fine)
}

/// That no browser opens the page, and what to open. Without a terminal, its code would stay in a log.
fn not_opened(why: &str, url: &str) -> String {
    if io::stderr().is_terminal() {
        return format!("{why}; open this within a minute: {url}");
    }
    format!("{why}; `vary open --print` prints the address to open")
}

/// The address of the page, if the address for clients was typed.
fn with_page(address: GatewayAddress) -> Result<GatewayAddress, Failure> {
    let Some(socket) = address.of_clients() else {
        return Ok(address);
    };
    let description = about(&socket);
    let admin = description["admin"].as_str().map(str::to_owned);
    admin.map(GatewayAddress::Tcp).ok_or_else(|| {
        Failure::command(format!(
            "the gateway at {address} has no page; {}, then `vary open` finds its page. Until then, `vary status` shows the \
             same as text",
            page_fix(&description)
        ))
    })
}

/// The address of the running gateway of this user, or the default one.
fn running() -> Result<GatewayAddress, Failure> {
    let gateways = operator::client::running().len();
    match &pages()[..] {
        [] if gateways == 0 => Ok(GatewayAddress::Default),
        [] => Err(Failure::command(no_page())),
        [one] => Ok(GatewayAddress::Tcp(one.clone())),
        several => Err(Failure::command(format!(
            "{} gateways with a page are running; name one of them:{}",
            several.len(),
            commands(several)
        ))),
    }
}

/// The addresses of the running gateways of this user that have a page.
fn pages() -> Vec<String> {
    let written = operator::token::running();
    let mut all: Vec<_> = written.iter().map(ToString::to_string).collect();
    // One whose token is in its configuration has written none.
    let abouts = operator::client::running().into_iter();
    all.extend(abouts.filter_map(|path| Some(about(&path)["admin"].as_str()?.to_owned())));
    all.sort();
    all.dedup();
    all
}

/// A line for each page: the command that opens it, and by what the user knows its gateway.
fn commands(pages: &[String]) -> String {
    let command = |address: &String| {
        let known = GatewayAddress::Tcp(address.clone()).known_by();
        let comment = known.map(|known| format!("  # {known}"));
        format!("\n  vary open {address}{}", comment.unwrap_or_default())
    };
    sanitize(&pages.iter().map(command).collect::<String>())
}

/// That no running gateway has a page, and what to do.
fn no_page() -> String {
    match &operator::client::running()[..] {
        [] if !has_directory() => HOMELESS.to_owned(),
        [] if is_in_use() => ENDED.to_owned(),
        [] => "no gateway of this user is running here; `vary up` starts one with a page for your clients, `vary serve FILE` \
               another"
            .to_owned(),
        [one] => {
            let known_by = GatewayAddress::Socket(one.clone()).known_by();
            let known = known_by.map_or_else(String::new, |known| format!(" at {known}"));
            sanitize(&format!(
                "your gateway{known} runs without a page; {}, then `vary open` finds its page. Until then, `vary status` shows \
                 the same as text",
                page_fix(&about(one))
            ))
        }
        several => format!(
            "none of your {} running gateways has a page; start one again with `--admin 8801`",
            several.len()
        ),
    }
}

/// Which pages there are, for a message that there is none at an address.
fn other_pages() -> String {
    match &pages()[..] {
        [] => no_page(),
        [page] => format!(
            "a gateway with a page runs elsewhere:{}",
            commands(std::slice::from_ref(page))
        ),
        pages => format!("gateways with a page run elsewhere:{}", commands(pages)),
    }
}

/// A code for the address of the page, which works once.
async fn page_code(
    address: &GatewayAddress,
    token: Option<&AdminToken>,
) -> Result<String, Failure> {
    let exposed = token.map(AdminToken::expose);
    let request = address.request(Method::POST, PAGE_CODE, exposed, TIMEOUT);
    let no_page = |why: &str| Failure::command(no_page_at(address, why, &other_pages()));
    let (status, body) = request
        .await
        // What follows is about other commands.
        .map_err(|why| no_page(why.split("; ").next().unwrap_or_default()))?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match (status, body["code"].as_str()) {
        (StatusCode::OK, Some(code)) => Ok(code.to_owned()),
        (StatusCode::UNAUTHORIZED, _) => Err(wrong_token(address)),
        _ => Err(no_page(&format!(
            "it answers {status}: this is the address for clients of a running Vary, or another program; the page has \
             another port"
        ))),
    }
}

/// The message that there is no page at `address`, with the reason and the fix. A fix that begins with the reason stands alone.
fn no_page_at(address: &GatewayAddress, why: &str, fix: &str) -> String {
    if fix.starts_with(why) {
        return format!("no page at {address}: {fix}");
    }
    format!("no page at {address}: {why}; {fix}")
}

/// A gateway of this machine answers at once.
const TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_vary_is_not_running_is_reported_once() {
        let address = GatewayAddress::Default;
        assert_eq!(
            no_page_at(&address, "Vary is not running", ENDED),
            "no page at 127.0.0.1:8801: Vary is not running; start it again: vary up"
        );
        assert_eq!(
            no_page_at(&address, "connection refused", "start it"),
            "no page at 127.0.0.1:8801: connection refused; start it"
        );
    }
}
