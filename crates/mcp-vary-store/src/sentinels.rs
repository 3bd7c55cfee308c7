//! Asks Redis Sentinel which server takes writes.

use std::time::Duration;

use redis::{
    Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisConnectionInfo, RedisError, RedisResult,
};
use tokio::time::timeout;

/// How long one Sentinel takes at most.
pub(crate) const SENTINEL_TIMEOUT: Duration = Duration::from_millis(500);

/// Processes that know which server of a name takes writes.
#[derive(Clone, Debug)]
pub(crate) struct Sentinels {
    /// Where they are. They get the user and the password only if they ask for a password.
    pub(crate) all: Vec<ConnectionInfo>,
    /// What they call the server.
    pub(crate) name: String,
}

impl Sentinels {
    /// The server that takes writes, by the first one that answers.
    pub(crate) async fn locate(&self) -> RedisResult<ConnectionInfo> {
        let mut failures = Vec::new();
        for sentinel in &self.all {
            match timeout(SENTINEL_TIMEOUT, self.primary_address(sentinel)).await {
                Ok(Ok(Some((host, port)))) => {
                    let address = at(sentinel.addr(), host, port);
                    return Ok(sentinel.clone().set_addr(address));
                }
                Ok(Ok(None)) => failures.push(format!("it knows no server `{}`", self.name)),
                Ok(Err(error)) => failures.push(error.to_string()),
                Err(_elapsed) => failures.push("it did not answer in time".to_owned()),
            }
        }
        // Of several causes, any will do.
        let last = failures.pop().unwrap_or_default();
        Err(RedisError::from((
            ErrorKind::Io,
            "no Sentinel says where the store is",
            last,
        )))
    }

    async fn primary_address(
        &self,
        sentinel: &ConnectionInfo,
    ) -> RedisResult<Option<(String, u16)>> {
        let nobody = RedisConnectionInfo::default().set_skip_set_lib_name();
        match self.primary_address_as(sentinel, nobody).await {
            Err(error) if wants_password(&error) => {
                let user = sentinel.redis_settings().clone().set_db(0);
                self.primary_address_as(sentinel, user).await
            }
            other => other,
        }
    }

    async fn primary_address_as(
        &self,
        sentinel: &ConnectionInfo,
        user: RedisConnectionInfo,
    ) -> RedisResult<Option<(String, u16)>> {
        let client = Client::open(sentinel.clone().set_redis_settings(user))?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let mut query = redis::cmd("SENTINEL");
        query.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name);
        query.query_async(&mut connection).await
    }
}

/// Whether a Sentinel wants a password.
fn wants_password(error: &RedisError) -> bool {
    error.code() == Some("NOAUTH") || error.kind() == ErrorKind::AuthenticationFailed
}

/// A host that is reached in the same way as another one.
fn at(like: &ConnectionAddr, host: String, port: u16) -> ConnectionAddr {
    match like {
        ConnectionAddr::TcpTls { .. } => ConnectionAddr::TcpTls {
            host,
            port,
            insecure: false,
            tls_params: None,
        },
        _ => ConnectionAddr::Tcp(host, port),
    }
}
