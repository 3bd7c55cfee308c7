//! The arguments of `vary login` and `vary logout`.

use std::path::PathBuf;

use clap::Parser;

/// Log in to a server
///
/// Opens the browser at the server's authorization server, and stores the tokens for all commands of this user. `vary serve`
/// notices a login while it runs, and refreshes the tokens before they end. The program in BROWSER opens the address, else the
/// one of the system.
///
/// The tokens are in files that only you can read, below XDG_STATE_HOME or ~/.local/state. They are sealed with a key of the
/// system's keyring, if there is one.
#[derive(Debug, Parser)]
#[command(
    override_usage = "vary login [OPTIONS] <SERVER | URL>\n       vary login --list",
    after_help = "Examples:\n  \
        vary login https://mcp.example.com/mcp\n  \
        vary login github\n  \
        vary login --no-browser https://mcp.example.com/mcp\n  \
        vary login --list\n\n\
        With --list --json: [{server, issuer, scope, expires, refreshed, ended}], or {error} for a login that cannot be read. \
        `expires` is in seconds since 1970-01-01 UTC, or null."
)]
pub(crate) struct Login {
    /// The URL of a server, or its name in the file
    #[arg(
        value_name = "SERVER | URL",
        required_unless_present = "list",
        conflicts_with = "list"
    )]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) file: ServerFile,
    /// Show who is logged in, and until when
    #[arg(long)]
    pub(crate) list: bool,
    /// Print JSON
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
    /// Print the address instead of opening it, and read from standard input the one that the browser shows at the end
    #[arg(long, conflicts_with = "device")]
    pub(crate) no_browser: bool,
    /// Print a code to enter on another device, if the authorization server supports it
    #[arg(long)]
    pub(crate) device: bool,
    /// A scope to request, beside those that the server asks for; may be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,
    /// The id of a client that you registered, or the URL of its metadata document [default: register one]
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// A file with the secret of that client
    #[arg(long, value_name = "FILE", requires = "client_id")]
    pub(crate) client_secret_file: Option<PathBuf>,
    /// The port of the redirect http://127.0.0.1:PORT/callback, if the client was registered with one [default: any]
    #[arg(long, value_name = "PORT")]
    pub(crate) redirect_port: Option<u16>,
    /// The authorization server, if the server names several or it is in a private network
    #[arg(long, value_name = "URL")]
    pub(crate) issuer: Option<String>,
    /// A file with the certificate of a further authority to trust [default: `ca` of the server in the file]
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}

/// Log out of a server
///
/// Removes the tokens of the server, and asks the authorization server to revoke them.
#[derive(Debug, Parser)]
#[command(after_help = "Example:\n  vary logout https://mcp.example.com/mcp")]
pub(crate) struct Logout {
    /// The URL of a server, or its name in the file
    #[arg(value_name = "SERVER | URL")]
    pub(crate) server: String,
    #[command(flatten)]
    pub(crate) file: ServerFile,
}

/// The file that has the names of servers.
#[derive(clap::Args, Debug)]
pub(crate) struct ServerFile {
    /// The file with the server [default: ./vary.yaml or ./.mcp.json]
    #[arg(long = "file", value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,
}
