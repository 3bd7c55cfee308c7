//! The settings that take effect only at the start.

use std::path::PathBuf;

use mcp_vary_traces::TracesSettings;

use mcp_vary_settings::audit::{AuditSettings, AuditTarget};
use mcp_vary_settings::config::Config;
use mcp_vary_settings::limits::Limits;
use mcp_vary_settings::listener::TlsConfig;
use mcp_vary_settings::sealing_keys::SealingKeys;
use mcp_vary_settings::store::StoreUrl;

/// The settings at the start, some of which do not change until the end.
#[derive(Debug)]
pub(crate) struct StartupSettings {
    limits: Limits,
    /// The keys that the configuration file named.
    named_keys: SealingKeys,
    /// The files of TLS.
    tls: Option<TlsConfig>,
    audit: Option<AuditSettings>,
    traces: Option<TracesSettings>,
    store: Option<StoreUrl>,
}

impl StartupSettings {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            limits: config.limits,
            named_keys: config.named_keys.clone(),
            tls: config.listener.tls.clone(),
            audit: config.audit.clone(),
            traces: config.traces.clone(),
            store: config.store.clone(),
        }
    }

    /// The absolute path of the audit log, if that is a file.
    pub(crate) fn audit_file(&self) -> Option<PathBuf> {
        let AuditTarget::File(path) = &self.audit.as_ref()?.target else {
            return None;
        };
        let path = std::path::absolute(path).ok()?;
        path.is_file().then_some(path)
    }

    /// The settings that differ in `config` but cannot change before a restart, by their keys in a file.
    pub(crate) fn differences(&self, config: &Config) -> Vec<&'static str> {
        let old = &self.limits;
        let new = &config.limits;
        #[rustfmt::skip]
        let settings = [
            ("limits.connections", old.connections != new.connections),
            ("limits.memory", old.memory != new.memory),
            ("limits.sessions", old.sessions != new.sessions),
            ("limits.orphaned-requests", old.orphaned_requests != new.orphaned_requests),
            ("limits.result-store", old.result_store != new.result_store),
            ("limits.dedicated-connections", old.dedicated_connections != new.dedicated_connections),
            ("limits.ask-timeout", old.ask_timeout != new.ask_timeout),
            ("limits.pending-server-requests", old.pending_server_requests != new.pending_server_requests),
            ("limits.result-ttl", old.result_ttl != new.result_ttl),
            ("limits.replay-buffer", old.replay_buffer != new.replay_buffer),
            ("limits.replay-ttl", old.replay_ttl != new.replay_ttl),
            ("keys", self.named_keys != config.named_keys),
            ("tls", self.tls != config.listener.tls),
            ("audit", self.audit != config.audit),
            ("traces", self.traces != config.traces),
            ("store", self.store != config.store),
        ];
        let changed = settings.into_iter().filter(|(_, differs)| *differs);
        changed.map(|(key, _)| key).collect()
    }
}
