//! Records the clients that still use deprecated variants: counts them, and logs them once a day (SV-25).

use std::collections::BTreeMap;

use mcp_vary::variant::{Date, ServerVariant, VariantId};
use mcp_vary_base::lock::Lock;
use mcp_vary_observation::savings::SECONDS_PER_DAY;
use mcp_vary_wire::client_name::ClientName;
use serde::{Deserialize, Serialize};
use tracing::warn;

/// A client's uses of a deprecated variant.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeprecatedUse {
    /// The variant.
    pub variant: VariantId,
    /// The client; `None` for all clients beyond the limit.
    pub client: Option<ClientName>,
    /// Its requests in the variant since the gateway started.
    pub requests: u64,
    /// Its last request, in seconds since 1970-01-01 UTC.
    #[serde(default)]
    pub last: u64,
}

/// The uses of deprecated variants since the start.
///
/// # Properties
///
/// At most [`MAX_CLIENTS`] clients are counted separately. The others are counted together, per variant, so that no
/// client can fill the memory or the log by changing its name.
#[derive(Debug, Default)]
pub struct DeprecationLog {
    uses: Lock<BTreeMap<(VariantId, Option<ClientName>), UsesOfClient>>,
}

#[derive(Debug)]
struct UsesOfClient {
    requests: u64,
    last: u64,
    /// The day of the last warning, counted from 1970.
    reported: u64,
}

impl DeprecationLog {
    /// Counts a request in `variant` at `now`. Warns once a day.
    pub fn note(&self, variant: &ServerVariant, client: ClientName, now: u64) {
        let mut uses = self.uses.lock();
        let key = (variant.id.clone(), Some(client));
        let told_apart = || uses.keys().filter(|(_, client)| client.is_some()).count();
        let key = if uses.contains_key(&key) || told_apart() < MAX_CLIENTS {
            key
        } else {
            (key.0, None)
        };
        let today = now / SECONDS_PER_DAY;
        let client = key.1.clone();
        let used = uses.entry(key).or_insert(UsesOfClient {
            requests: 0,
            last: now,
            reported: u64::MAX,
        });
        used.requests += 1;
        used.last = now;
        let is_said = std::mem::replace(&mut used.reported, today) == today;
        drop(uses);
        if !is_said {
            warn(variant, client.as_ref(), now);
        }
    }

    /// All counts, by variant and client.
    pub fn all(&self) -> Vec<DeprecatedUse> {
        let uses = self.uses.lock();
        let all = uses.iter().map(|((variant, client), used)| DeprecatedUse {
            variant: variant.clone(),
            client: client.clone(),
            requests: used.requests,
            last: used.last,
        });
        all.collect()
    }
}

fn warn(variant: &ServerVariant, client: Option<&ClientName>, now: u64) {
    let info = variant.deprecation_info.as_ref();
    let replacement = info.and_then(|info| info.replacement.as_ref());
    let name = client.map_or("others", |client| client.name.as_str());
    warn!(
        variant = %variant.id,
        // Quoted, since a client chooses its own name.
        client = ?name,
        replacement = replacement.map(tracing::field::display),
        days_left = info.and_then(|info| info.days_left(Date::from_unix(now))),
        "a deprecated variant was used"
    );
}

/// Clients that are counted separately, in all variants together.
pub const MAX_CLIENTS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> ClientName {
        ClientName::read(&format!(r#"{{"name":"{name}","version":"1"}}"#))
    }

    fn old() -> ServerVariant {
        ServerVariant::new("old".parse().unwrap(), "")
    }

    fn counts(uses: &DeprecationLog) -> Vec<(Option<String>, u64)> {
        let all = uses.all().into_iter();
        all.map(|used| (used.client.map(|client| client.name), used.requests))
            .collect()
    }

    /// SV-25: clients are counted separately up to a limit, and the others together.
    #[test]
    fn clients_beyond_those_that_are_told_apart_are_counted_together() {
        let uses = DeprecationLog::default();
        for at in 0..MAX_CLIENTS + 40 {
            uses.note(&old(), named(&format!("{at:03}")), 5);
        }
        uses.note(&old(), named("000"), 7);
        let all = counts(&uses);
        assert_eq!(all.len(), MAX_CLIENTS + 1);
        assert_eq!(all[0], (None, 40));
        assert_eq!(all[1], (Some("000".to_owned()), 2));
        assert_eq!(uses.all()[1].last, 7);
    }
}
