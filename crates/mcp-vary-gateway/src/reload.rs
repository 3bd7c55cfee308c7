//! Replaces the configuration while clients are served.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;
use mcp_vary::variant::VariantId;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_upstream::{ConnectError, SupervisedConnection};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::gateway::Gateway;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::pool::source::{self, ServerSource};
use mcp_vary_settings::config::Config;

/// The differences of a new configuration. As text it is one line.
///
/// # Examples
///
/// ```text
/// servers: 1 added (search), 1 connected anew (git), 3 as before; variants: 1 removed (audit), 1 changed (agent), 4 as before;
/// tools of agent: `git_status` is now `st`
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Reloaded {
    /// The servers, by name.
    pub servers: Changes<String>,
    /// The variants, by id; none while variants are off.
    pub variants: Changes<VariantId>,
    /// Changed settings that take effect at the next start, by their keys in a file.
    pub at_next_start: Vec<&'static str>,
    /// The renamed tools of variants: their names before and now.
    pub renamed: Vec<(VariantId, Vec<(String, String)>)>,
}

/// The differences of one kind.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Changes<T> {
    /// Those that are new.
    pub added: Vec<T>,
    /// Those that were removed.
    pub removed: Vec<T>,
    /// Those whose entry changed. Such servers were connected again.
    pub replaced: Vec<T>,
    /// Those that are the same.
    pub unchanged: Vec<T>,
}

impl<T> Default for Changes<T> {
    fn default() -> Self {
        Self {
            added: Vec::new(),
            removed: Vec::new(),
            replaced: Vec::new(),
            unchanged: Vec::new(),
        }
    }
}

/// Why the configuration was not replaced.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// No server could be reached, and the configuration does not allow that.
    #[error(transparent)]
    Unreachable(#[from] ConnectError),
    /// The gateway is closed.
    #[error("the gateway is closed")]
    Closed,
}

impl Reloaded {
    fn between(before: &ConfigSnapshot, after: &ConfigSnapshot) -> Self {
        Self {
            servers: servers(before, after),
            variants: variants(before, after),
            at_next_start: after.services.startup.differences(&after.config),
            renamed: renamed(before, after),
        }
    }
}

fn servers(before: &ConfigSnapshot, after: &ConfigSnapshot) -> Changes<String> {
    let names = |snapshot: &ConfigSnapshot| -> Vec<_> {
        let servers = snapshot.config.servers.iter();
        servers.map(|server| server.name.clone()).collect()
    };
    let mut changes = Changes::between(names(before), names(after));
    let is_same = |name: &String| after.pool.servers.keeps(name, &before.pool.servers);
    (changes.unchanged, changes.replaced) = changes.unchanged.into_iter().partition(is_same);
    changes
}

fn variants(before: &ConfigSnapshot, after: &ConfigSnapshot) -> Changes<VariantId> {
    let ids = |snapshot: &ConfigSnapshot| -> Vec<_> {
        let variants = snapshot.enabled_variants().iter();
        variants.map(|variant| variant.id.clone()).collect()
    };
    let mut changes = Changes::between(ids(before), ids(after));
    let config = |snapshot: &ConfigSnapshot, id: &VariantId| {
        let mut all = snapshot.variant_set.configs().iter();
        let found = all.find(|variant_config| variant_config.variant.id == *id);
        // Its text has all of a configuration.
        found.map(|variant_config| format!("{variant_config:?}"))
    };
    let is_same = |id: &VariantId| config(before, id) == config(after, id);
    (changes.unchanged, changes.replaced) = changes.unchanged.into_iter().partition(is_same);
    changes
}

/// The tools of each variant whose names changed.
fn renamed(
    before: &ConfigSnapshot,
    after: &ConfigSnapshot,
) -> Vec<(VariantId, Vec<(String, String)>)> {
    let names = |snapshot: &ConfigSnapshot, id: &VariantId| -> BTreeMap<(String, String), String> {
        let catalog = snapshot.pool.base().catalog.current();
        let index = || snapshot.variant_index(id.as_str());
        let at = snapshot.config.variants.then(index).flatten();
        let view = at.and_then(|at| catalog.view(ListKind::Tools, at.declared_view()));
        let tools = view.into_iter().flat_map(|view| view.tool_names());
        let names = tools.map(|(server, upstream_name, name)| {
            (
                (server.to_owned(), upstream_name.to_owned()),
                name.to_owned(),
            )
        });
        names.collect()
    };
    let variants = after.variant_set.variants.iter().map(|variant| {
        let known = names(before, &variant.id);
        let new = names(after, &variant.id);
        let renamed = new.into_iter().filter_map(|(upstream_tool, name)| {
            let old = known.get(&upstream_tool).filter(|old| **old != name)?;
            Some((old.clone(), name))
        });
        (variant.id.clone(), renamed.collect::<Vec<_>>())
    });
    variants
        .filter(|(_, renamed)| !renamed.is_empty())
        .collect()
}

impl<T: PartialEq> Changes<T> {
    fn between(before: Vec<T>, after: Vec<T>) -> Self {
        let are_gone = before.iter().map(|old| !after.contains(old));
        let is_removed: Vec<_> = are_gone.collect();
        let (unchanged, added) = after.into_iter().partition(|new| before.contains(new));
        let pairs = before.into_iter().zip(is_removed);
        let removed = pairs.filter_map(|(old, is_gone)| is_gone.then_some(old));
        Self {
            added,
            removed: removed.collect(),
            replaced: Vec::new(),
            unchanged,
        }
    }
}

impl fmt::Display for Reloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self.servers.describe("connected anew");
        let variants = self.variants.describe("changed");
        write!(f, "servers: {servers}; variants: {variants}")?;
        for (variant, names) in &self.renamed {
            let first = names.iter().take(FEW);
            let shown: Vec<_> = first
                .map(|(old, new)| format!("`{old}` is now `{new}`"))
                .collect();
            write!(f, "; tools of {variant}: {}", shown.join(", "))?;
            if names.len() > FEW {
                write!(f, " and {} more", names.len() - FEW)?;
            }
        }
        if self.at_next_start.is_empty() {
            return Ok(());
        }
        let settings = self.at_next_start.join(", ");
        write!(f, "; at the next start: {settings}")
    }
}

/// Names that are listed in full.
const FEW: usize = 5;

impl<T: fmt::Display> Changes<T> {
    fn describe(&self, replaced: &str) -> String {
        let sets = [
            ("added", &self.added),
            ("removed", &self.removed),
            (replaced, &self.replaced),
        ];
        let changed = sets.iter().filter(|(_, which)| !which.is_empty());
        let mut parts: Vec<_> = changed
            .map(|(what, which)| {
                let names: Vec<_> = which.iter().map(ToString::to_string).collect();
                format!("{} {what} ({})", which.len(), names.join(", "))
            })
            .collect();
        if !self.unchanged.is_empty() {
            parts.push(format!("{} as before", self.unchanged.len()));
        }
        if parts.is_empty() {
            parts.push("none".to_owned());
        }
        parts.join(", ")
    }
}

impl Gateway {
    /// Serves under `config` from now on, without losing a request.
    ///
    /// # Properties
    ///
    /// - Servers with an unchanged entry keep their processes, connections and lists, including those of single sessions.
    ///   New and changed ones are connected first. Until then, and if no server can be reached, nothing changes.
    /// - A request runs under one configuration from its first step to its last. A call in flight to a server that is
    ///   removed or changed ends on the old connection, unless the server is silent for its `timeout`.
    /// - Sessions continue with their variants. A session with a removed variant has expired.
    /// - Keys, randomness, the audit log and some limits stay those of the start: [`Reloaded::at_next_start`] names those that differ.
    ///
    /// Dropping the future before it is done changes nothing. Concurrent reloads run one after the other.
    ///
    /// # Errors
    ///
    /// When there are new or changed servers, no server can be reached, and `config` does not
    /// [allow that](Config::allow_empty_start); or when the gateway is closed.
    pub async fn reload(self: &Arc<Self>, config: Config) -> Result<Reloaded, ReloadError> {
        let reloaded = self.try_reload(config).await;
        self.count_reload(reloaded.is_ok());
        reloaded
    }

    /// Counts, for metrics, a configuration that was not even read: its file has mistakes.
    pub fn count_unread_config(&self) {
        self.count_reload(false);
    }

    fn count_reload(&self, succeeded: bool) {
        if let Some(metrics) = &self.services.observers.metrics {
            metrics.count_reload(succeeded);
        }
    }

    async fn try_reload(self: &Arc<Self>, config: Config) -> Result<Reloaded, ReloadError> {
        let _replacing = self.reloading.lock().await;
        let before = self.current();
        let stopped = &self.services.shutdown;
        let built = stopped.run_until_cancelled(build_snapshot(self, config, &before));
        let after = built.await.ok_or(ReloadError::Closed)??;
        let reloaded = Reloaded::between(&before, &after);
        after.pool.publish().await;
        self.replace(before, &after);
        self.reopen_audit_log();
        if let Some(audit) = &self.services.observers.audit {
            audit.config_reloaded(after.config.digest.as_ref());
        }
        info!(%reloaded, "configuration reloaded");
        Ok(reloaded)
    }

    /// Uses the snapshot `after` from now on.
    pub(crate) fn replace(
        self: &Arc<Self>,
        before: Arc<ConfigSnapshot>,
        after: &Arc<ConfigSnapshot>,
    ) {
        self.current.store(Arc::clone(after));
        let authentication = after.authentication.clone();
        self.services.authentication.store(authentication);
        if let Some(store) = &self.services.store {
            store.share_tallies(after.experiments.shared_tallies());
        }
        let has_access_rules = after.pool.access().is_some();
        self.services.hub.set_access_rules(has_access_rules);
        self.migrate_subscribers(after);
        self.cancel_removed(before, after);
    }

    /// Moves subscribers to the configuration `after`, and notifies them of the lists that differ.
    fn migrate_subscribers(&self, after: &ConfigSnapshot) {
        let hub = Arc::clone(&self.services.hub);
        let placements = Arc::clone(&after.placements);
        let migration = async move { hub.follow(&placements).await };
        let shutdown = self.services.shutdown.clone();
        let migration = shutdown.run_until_cancelled_owned(migration);
        self.services.background_tasks.spawn(migration);
    }

    /// Closes the connections that only the configuration `before` had, as soon as no request uses it.
    fn cancel_removed(self: &Arc<Self>, before: Arc<ConfigSnapshot>, after: &ConfigSnapshot) {
        let pool = Arc::clone(&before.pool);
        after.pool.inherit(&pool);
        let connections = pool.removed_connections(&after.pool);
        let released = before.placements.superseded();
        drop(before);
        let (gateway, stopped) = (Arc::downgrade(self), self.services.shutdown.clone());
        self.services.background_tasks.spawn(async move {
            // Until then a request may still be sent, or a class opened.
            stopped.run_until_cancelled(released.cancelled()).await;
            if let Some(gateway) = gateway.upgrade() {
                gateway.current().pool.inherit(&pool);
            }
            drop(pool);
            join_all(
                connections
                    .iter()
                    .map(|connection| close_when_drained(connection, &stopped)),
            )
            .await;
        });
    }
}

/// The snapshot of `config`, with its new servers connected.
async fn build_snapshot(
    gateway: &Gateway,
    config: Config,
    before: &ConfigSnapshot,
) -> Result<Arc<ConfigSnapshot>, ConnectError> {
    let services = Arc::clone(&gateway.services);
    let snapshot = ConfigSnapshot::open(config, services, Some(before)).await;
    let all = snapshot.pool.base().sources();
    let old = before.pool.base().sources();
    let is_new = |source: &&Arc<ServerSource>| !old.iter().any(|old| Arc::ptr_eq(old, source));
    let new: Vec<_> = all.iter().filter(is_new).cloned().collect();
    source::first_readings(&new, snapshot.config.start_wait).await;
    let is_usable = |source: &Arc<ServerSource>| source.is_usable();
    if !snapshot.config.allow_empty_start && !all.iter().any(is_usable) {
        for source in &new {
            source.connection.first_attempt().await?;
        }
    }
    Ok(Arc::new(snapshot))
}

/// Closes a connection after the calls on it have ended, or when the gateway stops.
async fn close_when_drained(connection: &SupervisedConnection, stopped: &CancellationToken) {
    stopped.run_until_cancelled(connection.drained()).await;
    connection.close().await;
}
