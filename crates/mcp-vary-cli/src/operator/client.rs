//! Requests to the operator's listener of a running gateway.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

use http::header::{AUTHORIZATION, USER_AGENT};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use mcp_vary_base::io_error;
use mcp_vary_base::tasks::spawn;
use mcp_vary_base::user_agent;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

use crate::environment::{path_variable, state_directory};
use crate::failure::Failure;
use crate::print::sanitize;
use crate::print::servers::first_names;

/// Where a running gateway answers its operator.
#[derive(Clone, Debug)]
pub(crate) enum GatewayAddress {
    /// `HOST:PORT`.
    Tcp(String),
    /// A socket in the state directory.
    Socket(PathBuf),
    /// The default of `HOST:PORT`: nothing was typed, and there is no socket.
    Default,
}

impl GatewayAddress {
    /// What was typed; without it, the running gateway of this user. `command` is named in messages.
    pub(crate) async fn find(typed: Option<&str>, command: &str) -> Result<Self, Failure> {
        if let Some(typed) = typed {
            let address = Self::parse(typed)?;
            return Ok(address.of_clients().map_or(address, Self::Socket));
        }
        match &running()[..] {
            [] => Ok(Self::Default),
            [one] => Ok(Self::Socket(one.clone())),
            several => {
                let mut lines = String::new();
                for path in several {
                    let description = about(path);
                    let named = match url_of(&description).and_then(|url| url.port_u16()) {
                        Some(port) => port.to_string(),
                        None => path.display().to_string(),
                    };
                    let file = description["file"].as_str().map(str::to_owned);
                    let comment: Vec<_> = served_at(path).await.into_iter().chain(file).collect();
                    let _ = write!(lines, "\n  vary {command} {named}");
                    if !comment.is_empty() {
                        let _ = write!(lines, "  # {}", sanitize(&comment.join(": ")));
                    }
                }
                Err(Failure::command(format!(
                    "{} gateways are running; name one of them:{lines}",
                    several.len(),
                )))
            }
        }
    }

    /// The address that [`Self::find`] returns.
    ///
    /// # Errors
    ///
    /// If nothing was typed, and no gateway is running.
    pub(crate) async fn find_running(typed: Option<&str>, command: &str) -> Result<Self, Failure> {
        let address = Self::find(typed, command).await?;
        // Nobody typed the default address, so a message about it would say little.
        if matches!(address, Self::Default) && TcpStream::connect(DEFAULT).await.is_err() {
            return Err(Failure::command(not_running()));
        }
        Ok(address)
    }

    /// What was typed: the `--admin` address as `HOST:PORT`, a port or the URL, or the path of a socket.
    pub(crate) fn parse(typed: &str) -> Result<Self, Failure> {
        if typed.parse::<u16>().is_ok() {
            return Ok(Self::Tcp(format!("127.0.0.1:{typed}")));
        }
        if typed.parse::<u64>().is_ok() {
            return Err(Failure::command(format!("{typed}: ports end at 65535")));
        }
        let path = Path::new(typed);
        if cfg!(unix) && path.extension().is_some_and(|end| end == "sock") {
            return Ok(Self::Socket(path.to_owned()));
        }
        let uri = typed.parse::<Uri>().ok();
        let authority = uri.as_ref().and_then(Uri::authority);
        match authority {
            Some(authority) if authority.port_u16().is_some() => {
                Ok(Self::Tcp(authority.to_string()))
            }
            _ => Err(Failure::command(format!(
                "`{typed}` is not an address; write HOST:PORT, such as 127.0.0.1:8801, or a port"
            ))),
        }
    }

    /// The socket of this user's gateway that serves clients at this address.
    pub(crate) fn of_clients(&self) -> Option<PathBuf> {
        let Self::Tcp(typed) = self else {
            return None;
        };
        let (host, port) = typed.rsplit_once(':')?;
        let is_local = matches!(host, "127.0.0.1" | "localhost" | "[::1]");
        let serves = |path: &PathBuf| {
            let url = url_of(&about(path));
            let authority = url.as_ref().and_then(Uri::authority);
            authority.is_some_and(|served| {
                let is_port = || served.port().is_some_and(|number| number.as_str() == port);
                served.as_str() == typed || is_local && is_port()
            })
        };
        running().into_iter().find(serves)
    }

    /// What is known of a gateway of this user.
    pub(crate) fn about(&self) -> Option<Value> {
        let about = match self {
            Self::Socket(path) => about(path),
            Self::Tcp(authority) => {
                let mut all = running().into_iter().map(|path| about(&path));
                all.find(|about| about["admin"] == **authority)?
            }
            Self::Default => return None,
        };
        about.is_object().then_some(about)
    }

    /// By what the user knows a gateway of theirs: its address for clients, and its file.
    pub(crate) fn known_by(&self) -> Option<String> {
        let about = self.about()?;
        let url = about["url"]
            .as_str()
            .unwrap_or("a client's standard streams");
        let file = about["file"].as_str().map(|file| format!(", {file}"));
        Some(format!("{url}{}", file.unwrap_or_default()))
    }

    /// The name of the host, and what is connected to.
    pub(crate) fn authority(&self) -> &str {
        match self {
            Self::Tcp(authority) => authority,
            Self::Socket(_) => "localhost",
            Self::Default => DEFAULT,
        }
    }

    /// Sends a request without a body, and returns the answer, which must come within `limit`.
    pub(crate) async fn request(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        limit: Duration,
    ) -> Result<(StatusCode, Bytes), String> {
        self.send(method, path, token, Bytes::new(), limit).await
    }

    /// Sends a request with this body, and returns the answer, which must come within `limit`.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: Bytes,
        limit: Duration,
    ) -> Result<(StatusCode, Bytes), String> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.authority())
            .header(USER_AGENT, user_agent::USER_AGENT);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let built = request.body(Full::new(body));
        let request = built.map_err(|error| format!("the token cannot be sent: {error}"))?;
        let answered = tokio::time::timeout(limit, self.answer_to(request)).await;
        answered.unwrap_or_else(|_| Err(format!("it did not answer within {limit:?}")))
    }

    async fn answer_to(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), String> {
        #[cfg(unix)]
        if let Self::Socket(path) = self {
            let socket = UnixStream::connect(path).await;
            let ended = |error| format!("{}; that gateway has ended", io_error::describe(&error));
            return exchange(socket.map_err(ended)?, request).await;
        }
        let connected = TcpStream::connect(self.authority()).await;
        let socket = connected.map_err(|error| self.not_connected(&error))?;
        exchange(socket, request).await
    }

    fn not_connected(&self, error: &io::Error) -> String {
        let why = io_error::describe(error);
        match self {
            _ if !has_directory() => format!("{why}; {HOMELESS}"),
            Self::Default => not_running(),
            _ => {
                let known = running_gateways();
                if known.is_empty() {
                    return format!(
                        "{why}; no gateway of this user is running here: it has ended, or was not started. `vary serve FILE` starts \
                         one; that of another user is reached by the address of its `--admin`"
                    );
                }
                format!("{why}; your running gateways: {}", known.join("; "))
            }
        }
    }
}

/// That no gateway was found, and what to do.
fn not_running() -> String {
    if !has_directory() {
        return HOMELESS.to_owned();
    }
    if is_in_use() {
        return ENDED.to_owned();
    }
    "no gateway of this user is running here: `vary up` starts one for your clients, `vary serve FILE` another; that of \
     another user is reached by the address of its `--admin`"
        .to_owned()
}

/// The running gateways of this user, as the user knows them.
pub(crate) fn running_gateways() -> Vec<String> {
    let all = running().into_iter();
    all.filter_map(|path| GatewayAddress::Socket(path).known_by())
        .collect()
}

/// Where the gateway of this description serves clients over HTTP.
fn url_of(description: &Value) -> Option<Uri> {
    description["url"].as_str()?.parse().ok()
}

/// The file that the gateway of this user serves whose address for clients is `url`, without links.
pub(crate) fn served_file(url: &str) -> Option<PathBuf> {
    let socket = GatewayAddress::parse(url).ok()?.of_clients()?;
    let description = about(&socket);
    std::fs::canonicalize(description["file"].as_str()?).ok()
}

/// What to do if nothing answers at `url`, where a gateway was expected. `command` connects to another URL.
pub(crate) fn unanswered(url: &str, command: impl Fn(&str) -> String) -> String {
    let all = running().into_iter();
    let addresses = all.filter_map(|path| about(&path)["url"].as_str().map(str::to_owned));
    let urls: Vec<_> = addresses.collect();
    let number = url.parse::<Uri>().ok().and_then(|url| url.port_u16());
    let port = number.map_or_else(String::new, |number| format!(" --listen {number}"));
    let fix = match &urls[..] {
        [] => format!("start the gateway with: vary serve FILE{port}"),
        [one] => format!(
            "your gateway runs at {one}; to connect that: {}",
            command(one)
        ),
        several => {
            let commands = several.iter().map(|url| format!("\n  {}", command(url)));
            format!(
                "to connect one of your running gateways:{}",
                commands.collect::<String>()
            )
        }
    };
    format!("nothing answers at {url}; {fix}")
}

/// The status of the gateway at a socket; `None` if it does not say so at once.
pub(crate) async fn status_at(path: &Path) -> Option<Value> {
    let socket = GatewayAddress::Socket(path.to_owned());
    let request = socket.request(Method::GET, "/status", None, SOON);
    let (_, status) = request.await.ok()?;
    serde_json::from_slice(&status).ok()
}

/// The servers behind the gateway at a socket; `None` if it does not say so at once.
async fn served_at(path: &Path) -> Option<String> {
    let status = status_at(path).await?;
    let servers = status["servers"].as_array().into_iter().flatten();
    let names: Vec<_> = servers
        .filter_map(|server| server["name"].as_str().map(str::to_owned))
        .collect();
    Some(first_names(&names))
}

/// The time in which a gateway says what it serves.
const SOON: Duration = Duration::from_secs(1);

/// Sends a request over a connection of its own.
async fn exchange<S>(
    socket: S,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), String>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let no_http = |error: hyper::Error| format!("it does not speak HTTP: {error}");
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await;
    let (mut client, connection) = handshake.map_err(no_http)?;
    // The task ends when the client is dropped. The body arrives through it, too.
    spawn(connection);
    let response = client.send_request(request).await.map_err(no_http)?;
    let status = response.status();
    let collected = Limited::new(response.into_body(), MAX_BYTES)
        .collect()
        .await;
    let body = collected.map_err(|error| format!("its answer cannot be read: {error}"))?;
    Ok((status, body.to_bytes()))
}

impl fmt::Display for GatewayAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "{}", path.display()),
            _ => f.write_str(self.authority()),
        }
    }
}

#[cfg(unix)]
pub(crate) use crate::operator::socket::{about, has_directory, running};

/// There are no sockets on this system.
#[cfg(not(unix))]
pub(crate) const fn has_directory() -> bool {
    true
}

/// There are no sockets on this system.
#[cfg(not(unix))]
pub(crate) const fn running() -> Vec<PathBuf> {
    Vec::new()
}

/// There are no sockets on this system.
#[cfg(not(unix))]
pub(crate) const fn about(_: &Path) -> Value {
    Value::Null
}

/// Whether `vary up` is in use, so that its gateway should run.
pub(crate) fn is_in_use() -> bool {
    let journal = state_directory(&path_variable).map(|state| state.join("vary").join(JOURNAL));
    let text = journal.and_then(|path| std::fs::read(path).ok());
    let journal: Option<Value> = text.and_then(|text| serde_json::from_slice(&text).ok());
    journal.is_some_and(|journal| !journal["manager"].is_null())
}

/// The file below the state directory in which `vary up` records what it wrote.
pub(crate) const JOURNAL: &str = "up.json";

/// What to do if the gateway of `vary up` does not run.
pub(crate) const ENDED: &str = "Vary is not running; start it again: vary up";

/// What to do so that the gateway that `about` describes has a page.
pub(crate) fn page_fix(about: &Value) -> String {
    match (&about["url"], about["file"].as_str()) {
        (Value::String(_), Some(file)) => format!(
            "take `admin: off` out of {file}, or leave out `--admin off`, and start Vary again"
        ),
        _ => "end it (Ctrl-C), start it again with `--admin 8801` added".to_owned(),
    }
}

/// Where a gateway is looked for that has no socket.
const DEFAULT: &str = "127.0.0.1:8801";

/// Why an answer is not that of an operator's listener to `vary COMMAND`.
pub(crate) fn not_the_operators(status: StatusCode, command: &str) -> String {
    let fix = if has_directory() {
        format!(
            "the operator's address has another port, which `vary serve` prints; then: vary {command} ADDRESS"
        )
    } else {
        HOMELESS.to_owned()
    };
    format!(
        "it answers {status}: this is the address for clients of a running Vary, or another program; {fix}"
    )
}

/// Why the gateways of this user are not found without a state directory.
pub(crate) const HOMELESS: &str = "`HOME` is not set, so your running gateways cannot be found: set it (`export \
                                   HOME=/srv/NAME`), or name the address of `--admin`";

/// The maximum size of an answer in bytes.
const MAX_BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_what_a_person_writes() {
        for (typed, expected) in [
            ("8801", Some("127.0.0.1:8801")),
            ("localhost:1", Some("localhost:1")),
            ("http://127.0.0.1:8801/status", Some("127.0.0.1:8801")),
            ("[::1]:80", Some("[::1]:80")),
            ("localhost", None),
            ("/state/7.sock", Some("/state/7.sock")),
            ("/state/7", None),
            ("", None),
            ("99999", None),
        ] {
            let address = GatewayAddress::parse(typed).ok().map(|it| it.to_string());
            assert_eq!(address.as_deref(), expected, "{typed}");
        }
    }
}
