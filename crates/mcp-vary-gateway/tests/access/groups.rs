//! People in groups, and gateways with rules for them.

use mcp_vary_access::{AccessPolicy, AccessRule, Claims, ItemPattern, Presence, When};
use mcp_vary_auth::key::KeyTable;
use mcp_vary_gateway::settings::access::AccessSettings;
use mcp_vary_gateway::settings::authentication::Authentication;
use mcp_vary_view::Rule;

use crate::support::people::{key, key_entry, keys_with_groups, token_config, trusted};
use crate::support::{people, *};

/// The people of all tests, each in the group of its name.
pub(super) const PEOPLE: [&str; 3] = ["dev", "sre", "guest"];

/// One key, of a person with these claims.
pub(super) fn key_with(who: &str, claims: Claims) -> Authentication {
    let keys = KeyTable::new(vec![key_entry(who, claims)]).unwrap();
    Authentication::new(keys, None, false).unwrap()
}

/// Keys for all people.
pub(super) fn everybody() -> Authentication {
    Authentication::new(keys_with_groups(&PEOPLE), None, false).unwrap()
}

/// Authentication by the tokens of `server`, whose `groups` rules use.
pub(super) fn tokens(server: &AuthorizationServer) -> Authentication {
    let tokens = token_config(trusted(server, &["here"], &["groups"]));
    Authentication::new(KeyTable::default(), Some(tokens), false).unwrap()
}

/// The claims of ann as a member of a group.
pub(super) fn claims(group: &str) -> Value {
    json!({"sub": "ann", "aud": "here", "exp": 1_000_600, "groups": [group]})
}

/// A rule for the members of a group.
pub(super) fn for_group(name: &str) -> AccessRule {
    let groups = Presence::of([name]).unwrap();
    AccessRule::new(When::new().with_claim("groups", groups).unwrap())
}

/// A pattern over the names of all kinds of items.
pub(super) fn named(pattern: &str) -> ItemPattern {
    ItemPattern::any(Rule::by_name(pattern.parse().unwrap()))
}

/// `config` with keys for all people, and these rules.
pub(super) fn with_rules(
    mut config: Config,
    rules: impl IntoIterator<Item = AccessRule>,
) -> Config {
    config.authentication = Some(everybody());
    config.access = Some(AccessSettings {
        policy: Arc::new(AccessPolicy::new(rules).unwrap()),
        trusted_annotations: Arc::default(),
    });
    config
}

/// The answer to a modern request.
pub(super) async fn ask_modern(
    harness: &Harness,
    who: &str,
    method: &str,
    params: Value,
) -> HttpResponse {
    people::ask_modern(harness, &key(who), method, params).await
}

/// The answers of both eras.
pub(super) async fn ask_both(
    harness: &Harness,
    who: &str,
    method: &str,
    params: Value,
) -> [Value; 2] {
    people::ask_both(harness, &key(who), method, params).await
}

pub(super) fn bearer(who: &str) -> String {
    format!("Bearer {}", key(who))
}
