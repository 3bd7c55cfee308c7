//! The servers of the service that are starting.

use std::time::Duration;

use serde_json::Value;

use crate::operator::client::{GatewayAddress, status_at};
use crate::print::Progress;
use crate::print::servers::first_names;

/// Waits until no server of the service at `address` is starting, and returns the names of those that take too long.
pub(super) async fn wait(address: &str) -> Vec<String> {
    let gateway = GatewayAddress::Tcp(address.to_owned());
    let mut starting = Vec::new();
    let mut line = None;
    let started = async {
        while let Some(socket) = gateway.of_clients() {
            // Clients get Vary all the same: that it runs was checked, and whoever asks for its status is told why not.
            starting = starting_in(&status_at(&socket).await.unwrap_or_default());
            if starting.is_empty() {
                return;
            }
            let text = format!("waiting for {} ...", first_names(&starting));
            line.get_or_insert_with(|| Progress::show(&text))
                .replace(&text);
            tokio::time::sleep(PAUSE).await;
        }
    };
    let _ = tokio::time::timeout(LONGEST, started).await;
    starting
}

/// That servers are starting, and when to begin a session; `None` if there are none.
pub(super) fn note(starting: &[String]) -> Option<String> {
    let pronoun = if starting.len() == 1 { "it" } else { "them" };
    (!starting.is_empty()).then(|| {
        let names = first_names(starting);
        format!("still starting: {names}; begin a session when `vary status` shows {pronoun} up")
    })
}

/// The servers in `status` that are not connected yet, or whose tools are not listed yet.
fn starting_in(status: &Value) -> Vec<String> {
    let servers = status["servers"].as_array().into_iter().flatten();
    let is_starting = |server: &&Value| match server["state"].as_str() {
        Some("starting") => true,
        Some("up") => !server["tools"].is_number() && !server["failedLists"].is_object(),
        _ => false,
    };
    let names = servers.filter(is_starting);
    let quoted = names.filter_map(|server| Some(format!("`{}`", server["name"].as_str()?)));
    quoted.collect()
}

/// The pause between two looks at the status.
const PAUSE: Duration = Duration::from_millis(100);
/// With the start of the service, half a minute.
const LONGEST: Duration = Duration::from_secs(25);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_servers_that_start_are_named_with_the_next_step() {
        let status = json!({"servers": [
            {"name": "slow", "state": "starting"}, {"name": "listing", "state": "up"},
            {"name": "done", "state": "up", "tools": 2}, {"name": "gone", "state": "down"}
        ]});
        let starting = starting_in(&status);
        assert_eq!(starting, ["`slow`", "`listing`"]);
        let expected = "still starting: `slow`; begin a session when `vary status` shows it up";
        assert_eq!(note(&starting[..1]).as_deref(), Some(expected));
        assert_eq!(note(&[]), None);
    }
}
