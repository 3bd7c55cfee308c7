//! What the author of a server or client can do about an objection.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// The advice for each requirement, such as `SV-9`.
#[derive(Deserialize)]
struct Advice {
    servers: BTreeMap<String, String>,
    clients: BTreeMap<String, String>,
}

static ADVICE: LazyLock<Advice> = LazyLock::new(|| {
    serde_json::from_str(include_str!("advice.json")).expect("the file has advice")
});

/// The advice for the authors of servers about `requirement`.
pub(crate) fn of(requirement: &str) -> &'static str {
    ADVICE.servers.get(requirement).map_or("", String::as_str)
}

/// The advice for the authors of clients about `requirement`.
pub(crate) fn for_clients(requirement: &str) -> &'static str {
    ADVICE.clients.get(requirement).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    #[test]
    fn each_check_of_clients_has_advice_and_each_advice_a_check() {
        for check in registry::client_checks() {
            assert!(!check.advice().is_empty(), "{}", check.id);
        }
        for requirement in ADVICE.clients.keys() {
            let mut checks = registry::client_checks();
            assert!(checks.any(|it| it.matches(requirement)), "{requirement}");
        }
    }

    #[test]
    fn each_check_has_advice_and_each_advice_a_check() {
        for check in registry::checks() {
            assert!(!check.advice().is_empty(), "{}", check.id);
        }
        for requirement in ADVICE.servers.keys() {
            assert!(
                registry::checks().any(|check| check.matches(requirement)),
                "{requirement}"
            );
        }
    }
}
