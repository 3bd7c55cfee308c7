//! Clients with credentials, and gateways that want them.

use mcp_vary_access::Claims;
use mcp_vary_auth::key::{KeyEntry, KeyTable};
use mcp_vary_auth::scope::Scope;
use mcp_vary_gateway::settings::authentication::Authentication;

pub(super) use crate::support::people::{PUBLIC, Session, ask_modern, bearer, key};
use crate::support::people::{key_entry, token_config, trusted};
use crate::support::*;

/// The time of all tests, in seconds since 1970-01-01 UTC.
pub(super) const NOW: u64 = 1_000_000;

fn entry(name: &str) -> KeyEntry {
    KeyEntry {
        expires_at: (name == "old").then_some(NOW),
        ..key_entry(name, Claims::default())
    }
}

/// Authentication with a key for each of `names`.
pub(super) fn keys(names: &[&str]) -> Authentication {
    let entries = names.iter().map(|name| entry(name)).collect();
    Authentication::new(KeyTable::new(entries).unwrap(), None, false).unwrap()
}

/// `config` with keys for ann and eve.
pub(super) fn for_ann_and_eve(mut config: Config) -> Config {
    config.authentication = Some(keys(&["ann", "eve"]));
    config
}

/// Authentication by the tokens of `server`, which need the scope `mcp`.
pub(super) fn tokens(server: &AuthorizationServer) -> Authentication {
    tokens_and_keys(server, &[])
}

/// The same, and a key for each of `names`.
pub(super) fn tokens_and_keys(server: &AuthorizationServer, names: &[&str]) -> Authentication {
    let entries = names.iter().map(|name| entry(name)).collect();
    let mut trusted = trusted(server, &[], &[]);
    trusted.scopes = vec![Scope::parse("mcp").unwrap()];
    let tokens = token_config(trusted);
    Authentication::new(KeyTable::new(entries).unwrap(), Some(tokens), false).unwrap()
}

/// The claims of a good token of `subject`.
pub(super) fn claims(subject: &str) -> Value {
    json!({
        "sub": subject, "aud": format!("{PUBLIC}/mcp"), "exp": NOW + 600, "iat": NOW, "scope": "mcp",
        "client_id": "cli",
    })
}
