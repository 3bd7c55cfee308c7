//! Who is counted: principals, keys, and clients without either by their address.

use mcp_vary_access::{Claims, Principal};
use mcp_vary_gateway::settings::listener::TrustedProxies;
use mcp_vary_rates::Per;

use super::clients::{Client, calls, limited, limited_with, with_keys};
use crate::support::*;

/// The gateway behind a proxy on this machine.
pub(super) fn behind_proxy(mut config: Config) -> Config {
    let proxy = "127.0.0.1".parse().unwrap();
    config.listener.trusted_proxies = Some(TrustedProxies::new(vec![proxy]));
    config
}

/// A client whose address the proxy tells.
async fn from(harness: &Harness, address: &str) -> Client {
    let headers = [("X-Forwarded-For", address)];
    Client::open_with(harness, ClientKind::HttpModern, &headers).await
}

#[tokio::test]
async fn a_principal_has_one_budget_in_all_its_sessions_and_eras() {
    let limit = calls("calls", Per::Principal, "2/min");
    let (harness, _clock) = limited_with(vec![limit], with_keys).await;
    for kind in [ClientKind::HttpLegacy, ClientKind::HttpModern] {
        let mut client = Client::of(&harness, kind, "ann").await;
        client.call("odd").await.passes();
    }
    for kind in [ClientKind::HttpLegacy, ClientKind::HttpModern] {
        let mut client = Client::of(&harness, kind, "ann").await;
        client.call("odd").await.is_refused_by("calls", 30);
    }
    let mut other = Client::of(&harness, ClientKind::HttpModern, "bob").await;
    other.call("odd").await.passes();
    let mut anonymous = Client::open(&harness, ClientKind::HttpModern).await;
    anonymous.call("odd").await.passes();
}

#[tokio::test]
async fn a_limit_per_key_counts_no_clients_without_one() {
    let limit = calls("keys", Per::Key, "1/min");
    let (harness, _clock) = limited_with(vec![limit], with_keys).await;
    let mut ann = Client::of(&harness, ClientKind::HttpModern, "ann").await;
    ann.call("odd").await.passes();
    ann.call("odd").await.is_refused_by("keys", 60);
    Client::of(&harness, ClientKind::HttpLegacy, "bob")
        .await
        .call("odd")
        .await
        .passes();
    for kind in ClientKind::ALL {
        let mut client = Client::open(&harness, kind).await;
        client.call("odd").await.passes();
        client.call("odd").await.passes();
    }
}

#[tokio::test]
async fn clients_that_are_not_known_are_counted_by_address() {
    let limit = calls("calls", Per::Principal, "1/min");
    let (harness, _clock) = limited_with(vec![limit], behind_proxy).await;
    for (address, neighbour) in [
        ("192.0.2.1", None),
        ("192.0.2.2", None),
        ("2001:db8:0:1::1", Some("2001:db8:0:1:ffff::2")),
        ("2001:db8:0:2::1", Some("2001:db8:0:2::2")),
    ] {
        from(&harness, address).await.call("odd").await.passes();
        for address in neighbour.into_iter().chain([address]) {
            let mut again = from(&harness, address).await;
            again.call("odd").await.is_refused_by("calls", 60);
        }
    }
}

/// A session costs nothing, so a new one brings no new budget.
#[tokio::test]
async fn a_new_session_of_an_unknown_client_has_no_new_budget() {
    let (harness, _clock) = limited(vec![calls("calls", Per::Principal, "1/min")]).await;
    let mut client = Client::open(&harness, ClientKind::HttpLegacy).await;
    client.call("odd").await.passes();
    for kind in [ClientKind::HttpLegacy, ClientKind::HttpModern] {
        let mut client = Client::open(&harness, kind).await;
        client.call("odd").await.is_refused_by("calls", 60);
    }
    // Stdio is another place.
    let mut pipe = Client::open(&harness, ClientKind::StdioLegacy).await;
    pipe.call("odd").await.passes();
    let mut pipe = Client::open(&harness, ClientKind::StdioModern).await;
    pipe.call("odd").await.is_refused_by("calls", 60);
}

#[tokio::test]
async fn a_limit_per_address_counts_principals_together() {
    let limit = calls("calls", Per::Address, "1/min");
    let (harness, _clock) = limited_with(vec![limit], with_keys).await;
    let mut ann = Client::of(&harness, ClientKind::HttpModern, "ann").await;
    ann.call("odd").await.passes();
    let mut bob = Client::of(&harness, ClientKind::HttpModern, "bob").await;
    bob.call("odd").await.is_refused_by("calls", 60);
}

#[tokio::test]
async fn the_client_on_stdio_is_its_principal() {
    let limit = calls("calls", Per::Principal, "1/min");
    let adapt = edited(|config| {
        let principal = Principal::stdio("ann", Claims::default()).unwrap();
        config.stdio_principal = Some(principal.into());
    });
    let (harness, _clock) = limited_with(vec![limit], adapt).await;
    let mut pipe = Client::open(&harness, ClientKind::StdioLegacy).await;
    pipe.call("odd").await.passes();
    let mut pipe = Client::open(&harness, ClientKind::StdioModern).await;
    pipe.call("odd").await.is_refused_by("calls", 60);
    let mut http = Client::open(&harness, ClientKind::HttpModern).await;
    http.call("odd").await.passes();
}
