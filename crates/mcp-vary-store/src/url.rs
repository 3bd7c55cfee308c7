//! The address of a store.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, ProtocolVersion, RedisResult,
};

use crate::sentinels::{SENTINEL_TIMEOUT, Sentinels};

/// The address of a store: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, or `rediss://` for TLS.
///
/// Or that of the Redis Sentinels that know where it is:
/// `redis+sentinel://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...]/NAME[/DATABASE]`, or `rediss+sentinel://`.
///
/// # Examples
///
/// ```
/// use mcp_vary_store::StoreUrl;
///
/// let url: StoreUrl = "rediss://vary:secret@redis.internal/2".parse()?;
/// // Neither text has the user or the password.
/// assert_eq!(url.to_string(), "rediss://redis.internal:6379/2");
/// assert_eq!(format!("{url:?}"), "StoreUrl(rediss://redis.internal:6379/2)");
///
/// let url: StoreUrl = "redis+sentinel://vary:secret@one,two:7000/main".parse()?;
/// assert_eq!(url.to_string(), "redis+sentinel://one:26379,two:7000/main/0");
///
/// let error = "http://vary:secret@redis".parse::<StoreUrl>().unwrap_err();
/// assert!(!error.to_string().contains("secret"));
/// # Ok::<(), mcp_vary_store::StoreUrlError>(())
/// ```
#[derive(Clone)]
pub struct StoreUrl {
    text: String,
    place: Place,
}

/// Where a store is.
#[derive(Clone)]
enum Place {
    Server(Box<ConnectionInfo>),
    Sentinels(Sentinels),
}

/// A text is not the address of a store. The message does not repeat it, since it may have a password.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "it is not the address of a store; write `redis://USER:PASSWORD@HOST:PORT/DATABASE`, or `redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DATABASE`, with `rediss` for TLS, special characters of the password as `%XX`, and an international name of a host as `xn--...`"
)]
pub struct StoreUrlError;

impl StoreUrl {
    /// What a connection needs. With Sentinels they are asked each time.
    pub(crate) async fn locate(&self) -> RedisResult<ConnectionInfo> {
        match &self.place {
            Place::Server(info) => Ok((**info).clone()),
            Place::Sentinels(sentinels) => sentinels.locate().await,
        }
    }

    /// How long [`locate`](Self::locate) takes at most.
    pub(crate) fn patience(&self) -> Duration {
        match &self.place {
            Place::Server(_) => Duration::ZERO,
            Place::Sentinels(sentinels) => {
                let number = u32::try_from(sentinels.all.len()).unwrap_or(u32::MAX);
                SENTINEL_TIMEOUT.saturating_mul(number)
            }
        }
    }
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheme, address) = text.split_once("://").ok_or(StoreUrlError)?;
        let place = match scheme {
            "redis" | "rediss" => Place::Server(Box::new(server(text)?)),
            "redis+sentinel" => Place::Sentinels(sentinels("redis", address)?),
            "rediss+sentinel" => Place::Sentinels(sentinels("rediss", address)?),
            _ => return Err(StoreUrlError),
        };
        Ok(Self {
            text: text.to_owned(),
            place,
        })
    }
}

/// The server of an address with one host.
fn server(text: &str) -> Result<ConnectionInfo, StoreUrlError> {
    // The client would take options there, one of which switches the check of certificates off.
    if text.contains(['?', '#']) {
        return Err(StoreUrlError);
    }
    let info = text.into_connection_info().map_err(|_| StoreUrlError)?;
    // The client would look up the name with its escapes.
    let is_escaped = info.addr().to_string().contains('%');
    if is_escaped || info.redis_settings().db() < 0 {
        return Err(StoreUrlError);
    }
    // Messages of other replicas come over the same connection.
    let given = info.redis_settings().clone();
    let settings = given
        .set_protocol(ProtocolVersion::RESP3)
        .set_skip_set_lib_name();
    Ok(info.set_redis_settings(settings))
}

/// The Sentinels of an address without its scheme.
fn sentinels(scheme: &str, address: &str) -> Result<Sentinels, StoreUrlError> {
    let (authority, path) = address.split_once('/').ok_or(StoreUrlError)?;
    let host = authority.rfind('@').map_or(0, |at| at + 1);
    let (user, hosts) = authority.split_at(host);
    let (name, database) = path.split_once('/').unwrap_or((path, "0"));
    let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_of_names) {
        return Err(StoreUrlError);
    }
    let urls = hosts.split(',').map(|host| {
        // A colon in brackets belongs to an address of IPv6.
        let has_port = host.rsplit(']').next().is_some_and(|it| it.contains(':'));
        let port = if has_port { "" } else { SENTINEL_PORT };
        server(&format!("{scheme}://{user}{host}{port}/{database}"))
    });
    let all: Vec<_> = urls.take(MAX_SENTINELS + 1).collect::<Result<_, _>>()?;
    if all.len() > MAX_SENTINELS {
        return Err(StoreUrlError);
    }
    Ok(Sentinels {
        all,
        name: name.to_owned(),
    })
}

/// Where Sentinels listen if their address does not say it.
const SENTINEL_PORT: &str = ":26379";
const MAX_SENTINELS: usize = 16;

/// Leaves out the user and the password.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, _) = self.text.split_once(':').unwrap_or_default();
        let database = |info: &ConnectionInfo| info.redis_settings().db();
        match &self.place {
            Place::Server(info) => write!(f, "{scheme}://{}/{}", shown(info), database(info)),
            Place::Sentinels(Sentinels { all, name }) => {
                let hosts: Vec<_> = all.iter().map(shown).collect();
                let database = all.first().map_or(0, database);
                write!(f, "{scheme}://{}/{name}/{database}", hosts.join(","))
            }
        }
    }
}

/// The host and the port.
fn shown(info: &ConnectionInfo) -> String {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. }
            if host.contains(':') =>
        {
            format!("[{host}]:{port}")
        }
        other => other.to_string(),
    }
}

/// Leaves out the user and the password.
impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

impl PartialEq for StoreUrl {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for StoreUrl {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_with_its_port_and_database_and_without_its_password() {
        for (text, shown) in [
            ("redis://localhost", "redis://localhost:6379/0"),
            (
                "redis://a:p%40ss@10.0.0.1:7000/3",
                "redis://10.0.0.1:7000/3",
            ),
            ("rediss://:secret@cache", "rediss://cache:6379/0"),
            ("redis://[::1]", "redis://[::1]:6379/0"),
            (
                "redis+sentinel://a:p%40ss@one,10.0.0.1:7000,[::1]/main/3",
                "redis+sentinel://one:26379,10.0.0.1:7000,[::1]:26379/main/3",
            ),
            (
                "rediss+sentinel://:secret@cache/my-main.1",
                "rediss+sentinel://cache:26379/my-main.1/0",
            ),
        ] {
            let url: StoreUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), format!("StoreUrl({shown})"));
        }
    }

    #[test]
    fn what_is_not_an_address_is_refused_and_not_repeated() {
        for text in [
            "",
            "localhost:6379",
            "http://a:secret@b",
            "redis://",
            "redis://a:secret@b/-1",
            "redis://a:secret@b/x",
            "redis://a:secret@b\u{fc}cher.example",
            "redis://a:secret@b:port",
            "rediss://a:secret@b#insecure",
            "redis://a:secret@b?protocol=resp2",
            "unix:///secret",
            "redis+sentinel://a:secret@b",
            "redis+sentinel://a:secret@b/",
            "redis+sentinel://a:secret@b/main/x",
            "redis+sentinel://a:secret@b/main?insecure",
            "redis+sentinel://a:secret@b,/main",
            "redis+sentinel://a:secret@/main",
            "redis+sentinel:secret",
        ] {
            let error = text.parse::<StoreUrl>().unwrap_err();
            assert!(!error.to_string().contains("secret"), "{text}");
        }
    }
}
