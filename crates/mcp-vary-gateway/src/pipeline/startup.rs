//! The settings that take effect only at the start.

use crate::settings::audit::AuditSettings;
use crate::settings::config::Config;
use crate::settings::limits::Limits;
use crate::settings::listener::TlsConfig;
use crate::settings::sealing_keys::SealingKeys;

/// The settings at the start, some of which do not change until the end.
#[derive(Debug)]
pub(crate) struct StartupSettings {
    limits: Limits,
    /// The keys that the configuration file named.
    named_keys: SealingKeys,
    /// The files of TLS.
    tls: Option<TlsConfig>,
    audit: Option<AuditSettings>,
}

impl StartupSettings {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            limits: config.limits,
            named_keys: config.named_keys.clone(),
            tls: config.listener.tls.clone(),
            audit: config.audit.clone(),
        }
    }

    /// The settings that differ in `config` but cannot change before a restart, by their keys in a file.
    pub(crate) fn differences(&self, config: &Config) -> Vec<&'static str> {
        let limits = &config.limits;
        let before = &self.limits;
        let settings = [
            (
                "limits.connections",
                before.connections != limits.connections,
            ),
            ("limits.memory", before.memory != limits.memory),
            ("limits.sessions", before.sessions != limits.sessions),
            (
                "limits.orphaned-requests",
                before.orphaned_requests != limits.orphaned_requests,
            ),
            (
                "limits.result-store",
                before.result_store != limits.result_store,
            ),
            (
                "limits.dedicated-connections",
                before.dedicated_connections != limits.dedicated_connections,
            ),
            (
                "limits.ask-timeout",
                before.ask_timeout != limits.ask_timeout,
            ),
            (
                "limits.pending-server-requests",
                before.pending_server_requests != limits.pending_server_requests,
            ),
            ("limits.result-ttl", before.result_ttl != limits.result_ttl),
            (
                "limits.replay-buffer",
                before.replay_buffer != limits.replay_buffer,
            ),
            ("limits.replay-ttl", before.replay_ttl != limits.replay_ttl),
            ("keys", self.named_keys != config.named_keys),
            ("tls", self.tls != config.listener.tls),
            ("audit", self.audit != config.audit),
        ];
        let changed = settings.into_iter().filter(|(_, differs)| *differs);
        changed.map(|(key, _)| key).collect()
    }
}
