//! Names that no list has yet, because their server may still be starting.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::sanitize::excerpt;

use super::RequestContext;
use crate::pool::source::ServerSource;

impl RequestContext<'_> {
    /// Finds an item that a server lists once it is ready. Waits for the servers that are starting, for `start-wait` at
    /// most; `None` if all of them are ready or down and have no such item.
    ///
    /// Servers of which access rules allow the client nothing do not count, so that it is answered as if they did not
    /// exist.
    ///
    /// # Errors
    ///
    /// `-32603` when a server is still starting after that, and when the name is one of a server that is down and was
    /// never reached.
    pub(super) async fn find_when_started<T>(
        &self,
        (kind, name): (ListKind, &str),
        find: &impl Fn(&Catalog) -> Option<T>,
    ) -> Result<Option<T>, RpcError> {
        let starting = self.starting_servers();
        if starting.is_empty() {
            return self.refuse_if_down(name).await;
        }
        let readings = starting.iter().map(|source| source.first_reading());
        let mut readings: FuturesUnordered<_> = readings.collect();
        let search = async {
            while readings.next().await.is_some() {
                let catalog = self.class.catalog.fresh(kind).await;
                if let Some(found) = find(&catalog) {
                    return Some(found);
                }
            }
            None
        };
        let limit = self.snapshot.config.start_wait;
        let found = tokio::time::timeout(limit, search).await;
        match (found.unwrap_or_default(), &self.starting_servers()[..]) {
            (Some(found), _) => Ok(Some(found)),
            (None, []) => self.refuse_if_down(name).await,
            (None, starting) => Err(still_starting(name, starting)),
        }
    }

    /// Refuses a name with the prefix of a server that is down and was never reached.
    async fn refuse_if_down<T>(&self, name: &str) -> Result<Option<T>, RpcError> {
        let layout = &self.class.catalog.layout;
        let servers = self.class.sources().len();
        let named = self.visible_sources().filter_map(|source| {
            let prefix = layout.name_prefix(&source.server_name, servers);
            let is_its = !prefix.is_empty() && name.starts_with(&prefix);
            is_its.then_some((prefix.len(), source))
        });
        let Some((_, source)) = named.max_by_key(|(length, _)| *length) else {
            return Ok(None);
        };
        match source.snapshot().handshake.is_none() {
            true => Ok(source.connection.ready().await.map(|_| None)?),
            false => Ok(None),
        }
    }

    /// The servers whose first attempt to connect is running, and that exist for the client.
    fn starting_servers(&self) -> Vec<&Arc<ServerSource>> {
        let starting = |it: &&Arc<ServerSource>| it.is_starting() && !it.is_upstream_variant();
        self.visible_sources().filter(starting).collect()
    }
}

fn still_starting(name: &str, starting: &[&Arc<ServerSource>]) -> RpcError {
    let names = starting.iter().take(SHOWN_SERVERS);
    let names: Vec<_> = names.map(|it| format!("`{}`", it.server_name)).collect();
    let more = match starting.len().saturating_sub(SHOWN_SERVERS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let servers = match starting.len() {
        1 => "server",
        _ => "servers",
    };
    let are = if starting.len() == 1 { "is" } else { "are" };
    let names = names.join(", ");
    RpcError::internal(format!(
        "`{}` is not known yet: {servers} {names}{more} {are} still starting; try again in a moment",
        excerpt(name.as_bytes(), SHOWN_CHARACTERS)
    ))
}

/// The servers that an error names.
const SHOWN_SERVERS: usize = 3;
/// The characters of a name that an error repeats.
const SHOWN_CHARACTERS: usize = 100;
