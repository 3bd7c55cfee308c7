//! Principals: API keys, and the access rules that apply to them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::configurations::{ServerTarget, entries};
use crate::upstream_spec::UpstreamSpec;

/// The principals of a team, to which one access rule applies: a gateway has at most 256 rules.
const TEAM: usize = 4;

/// The header line of requests of the principal at `index`; empty if there are none.
pub(crate) fn header(index: usize, principals: usize) -> String {
    match index.checked_rem(principals) {
        Some(index) => format!("Authorization: Bearer {}\r\n", key(index)),
        None => String::new(),
    }
}

/// The configuration with the principals and idle connections of `behind`.
pub(crate) fn configuration(ways: &[ServerTarget], behind: &UpstreamSpec) -> String {
    let connections = behind.idle + 100;
    // Those of each round are new ones.
    let sessions = connections + 10_000;
    let limits = json!({"connections": connections, "sessions": sessions, "read-timeout": "1h"});
    let mut configuration = json!({"servers": entries(ways), "limits": limits});
    if behind.principals > 0 {
        let keys = (0..behind.principals).map(|index| {
            let digest = digest(&SHA256, key(index).as_bytes());
            let digest: String = digest.as_ref().iter().map(|it| format!("{it:02x}")).collect();
            json!({"name": format!("user-{index}"), "sha256": digest, "claims": {"team": [team(index)]}})
        });
        let keys: Vec<_> = keys.collect();
        let rules: Vec<_> = (0..behind.principals).step_by(TEAM).map(rule).collect();
        // Each has a connection of its own to a server with sessions.
        for entry in configuration["servers"]
            .as_object_mut()
            .into_iter()
            .flatten()
        {
            entry.1["connections"] = json!(connections);
        }
        configuration["auth"] = json!({"keys": keys});
        configuration["access"] = json!(rules);
    }
    configuration.to_string()
}

fn rule(first: usize) -> Value {
    let team = team(first);
    json!({"name": team, "when": {"team": team}, "allow": ["echo", "record_*"]})
}

fn team(index: usize) -> String {
    format!("team-{}", index / TEAM)
}

/// A key as `vary key new` makes them.
fn key(index: usize) -> String {
    let mut bytes = [1; 32];
    bytes[..8].copy_from_slice(&(index as u64).to_be_bytes());
    format!("vary_{}", URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_principals_share_a_rule() {
        let behind = UpstreamSpec {
            principals: 9,
            idle: 9,
            ..UpstreamSpec::ONE
        };
        let text = configuration(&[], &behind);
        let configuration: Value = serde_json::from_str(&text).unwrap();
        let count = |value: &Value| value.as_array().map_or(0, Vec::len);
        assert_eq!(count(&configuration["auth"]["keys"]), 9);
        assert_eq!(count(&configuration["access"]), 3);
        assert_eq!(header(10, 9), header(1, 9));
        assert_eq!(header(10, 0), "");
    }
}
