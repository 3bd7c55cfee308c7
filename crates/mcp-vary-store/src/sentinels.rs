//! Asks Redis Sentinel which server takes writes.

use std::time::Duration;

use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisConnectionInfo,
    RedisError, RedisResult,
};

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
            match self.ask(sentinel).await {
                Ok(Some((host, port))) => {
                    let address = at(sentinel.addr(), host, port);
                    return Ok(sentinel.clone().set_addr(address));
                }
                Ok(None) => failures.push(format!("it knows no server `{}`", self.name)),
                Err(error) => failures.push(error.to_string()),
            }
        }
        // Those behind the first one say more often what is wrong: that one may just be off.
        let last = failures.pop().unwrap_or_default();
        Err(RedisError::from((
            ErrorKind::Io,
            "no Sentinel says where the store is",
            last,
        )))
    }

    async fn ask(&self, sentinel: &ConnectionInfo) -> RedisResult<Option<(String, u16)>> {
        let nobody = RedisConnectionInfo::default().set_skip_set_lib_name();
        match self.ask_as(sentinel, nobody).await {
            Err(error) if is_for_users(&error) => {
                let user = sentinel.redis_settings().clone().set_db(0);
                self.ask_as(sentinel, user).await
            }
            other => other,
        }
    }

    async fn ask_as(
        &self,
        sentinel: &ConnectionInfo,
        user: RedisConnectionInfo,
    ) -> RedisResult<Option<(String, u16)>> {
        let client = Client::open(sentinel.clone().set_redis_settings(user))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(SENTINEL_TIMEOUT))
            .set_response_timeout(Some(SENTINEL_TIMEOUT));
        let connected = client.get_multiplexed_async_connection_with_config(&config);
        let mut connection = connected.await?;
        let mut ask = redis::cmd("SENTINEL");
        ask.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name);
        ask.query_async(&mut connection).await
    }
}

/// Whether a server answers users only.
fn is_for_users(error: &RedisError) -> bool {
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
