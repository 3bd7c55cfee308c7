//! The options of `vary open`.

use clap::Parser;

/// Open the page of a running gateway in the browser
///
/// The page shows the calls of clients as they come, what each variant lists and costs, and which client gets what and why. It
/// changes nothing. A gateway that serves over HTTP has one, unless `admin` is `off`.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  vary open\n  vary open 8801 --print")]
pub(crate) struct Open {
    /// Print the address of the page instead of opening it. It works once, within a minute
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
