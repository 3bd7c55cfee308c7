//! The address of a store.

use std::fmt;
use std::str::FromStr;

use redis::{ConnectionInfo, IntoConnectionInfo as _, ProtocolVersion};

/// The address of a store: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, or `rediss://` for TLS.
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
/// let error = "http://vary:secret@redis".parse::<StoreUrl>().unwrap_err();
/// assert!(!error.to_string().contains("secret"));
/// # Ok::<(), mcp_vary_store::StoreUrlError>(())
/// ```
#[derive(Clone)]
pub struct StoreUrl {
    text: String,
    info: ConnectionInfo,
}

/// A text is not the address of a store. The message does not repeat it, since it may have a password.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "it is not the address of a store; write `redis://USER:PASSWORD@HOST:PORT/DATABASE`, or `rediss://` for TLS, with special characters of the password as `%XX`, and an international name of the host as `xn--...`"
)]
#[non_exhaustive]
pub struct StoreUrlError;

impl StoreUrl {
    /// What a connection needs.
    pub(crate) fn info(&self) -> ConnectionInfo {
        self.info.clone()
    }
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_known = text.starts_with("redis://") || text.starts_with("rediss://");
        // The client would take options there, one of which switches the check of certificates off.
        if !is_known || text.contains(['?', '#']) {
            return Err(StoreUrlError);
        }
        let info = text.into_connection_info().map_err(|_| StoreUrlError)?;
        // The client would look up the name with its escapes.
        let is_escaped = info.addr().to_string().contains('%');
        if is_escaped || info.redis_settings().db() < 0 {
            return Err(StoreUrlError);
        }
        // Messages of other replicas come over the same connection.
        let settings = info.redis_settings().clone();
        let settings = settings
            .set_protocol(ProtocolVersion::RESP3)
            .set_skip_set_lib_name();
        Ok(Self {
            text: text.to_owned(),
            info: info.set_redis_settings(settings),
        })
    }
}

/// Leaves out the user and the password.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, _) = self.text.split_once(':').unwrap_or_default();
        let database = self.info.redis_settings().db();
        write!(f, "{scheme}://{}/{database}", self.info.addr())
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
        ] {
            let error = text.parse::<StoreUrl>().unwrap_err();
            assert!(!error.to_string().contains("secret"), "{text}");
        }
    }
}
