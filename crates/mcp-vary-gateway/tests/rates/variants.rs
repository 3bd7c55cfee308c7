//! Changes of the variant (SV-21).

use mcp_vary_rates::{Counted, Limit, Per};

use super::clients::{Answer, Client, calls, limited, limited_with, with_keys};
use crate::support::*;

fn changes(rate: &str) -> Limit {
    let rate = rate.parse().unwrap();
    Limit::new("changes", Per::Principal, Counted::Switches, rate).unwrap()
}

/// The answer to a list under a variant.
async fn list(client: &mut Client, variant: &str) -> Answer {
    client
        .response("tools/list", under(variant, json!({})))
        .await
}

/// Checks that a change was refused, and which variant stays active.
#[track_caller]
fn stays(answer: &Answer, active: &str, retry_after: u64) {
    let data = json!({"limit": "changes", "retryAfter": retry_after, "activeVariant": active});
    let message = "Too many switches of the server variant";
    let error = json!({"code": -32000, "message": message, "data": data});
    answer.message.has("/error", error);
    answer.has_status_429(retry_after);
}

/// SV-21: a client may change its variant as often as the limit allows, and then stays where it is.
#[tokio::test]
async fn clients_of_both_eras_and_transports_stay_in_their_variant() {
    for kind in ClientKind::ALL {
        let (harness, clock) = limited(vec![changes("2/min")]).await;
        let mut client = Client::open(&harness, kind).await;
        // The first variant is no change, and neither is the same one again.
        for variant in ["standard", "standard", "compact", "compact", "standard"] {
            list(&mut client, variant).await.passes();
        }
        stays(&list(&mut client, "compact").await, "standard", 30);
        let call = under("compact", json!({"name": "odd", "arguments": {}}));
        let refused = client.response("tools/call", call).await;
        stays(&refused, "standard", 30);
        assert_eq!(harness.peer.of("tools/call").len(), 0, "{kind:?}");
        client.call("odd").await.passes();
        list(&mut client, "standard").await.passes();
        // What was refused has not counted.
        clock.advance(Duration::from_secs(30));
        list(&mut client, "compact").await.passes();
        stays(&list(&mut client, "read-only").await, "compact", 30);
    }
}

#[tokio::test]
async fn a_variant_that_does_not_exist_is_no_change() {
    let (harness, _clock) = limited(vec![changes("1/min")]).await;
    let mut client = Client::open(&harness, ClientKind::HttpModern).await;
    list(&mut client, "standard").await.passes();
    for _ in 0..3 {
        let unknown = list(&mut client, "no-such").await;
        assert_eq!(unknown.message["error"]["code"], -32602, "{unknown:?}");
    }
    list(&mut client, "compact").await.passes();
    let unknown = list(&mut client, "no-such").await;
    assert_eq!(unknown.message["error"]["code"], -32602, "{unknown:?}");
}

/// The rate is that of the principal, and each session has its own variant.
#[tokio::test]
async fn sessions_do_not_change_the_variants_of_each_other() {
    let (harness, _clock) = limited_with(vec![changes("1/min")], with_keys).await;
    let mut one = Client::of(&harness, ClientKind::HttpLegacy, "ann").await;
    let mut two = Client::of(&harness, ClientKind::HttpLegacy, "ann").await;
    for _ in 0..3 {
        list(&mut one, "standard").await.passes();
        list(&mut two, "compact").await.passes();
    }
    list(&mut one, "compact").await.passes();
    stays(&list(&mut two, "standard").await, "compact", 60);
    let mut other = Client::of(&harness, ClientKind::HttpLegacy, "bob").await;
    for variant in ["standard", "compact"] {
        list(&mut other, variant).await.passes();
    }
}

/// Without a session, requests are those of one client if they have one principal.
#[tokio::test]
async fn a_principal_without_sessions_has_one_variant() {
    let (harness, _clock) = limited_with(vec![changes("1/min")], with_keys).await;
    let mut one = Client::of(&harness, ClientKind::HttpModern, "ann").await;
    let mut two = Client::of(&harness, ClientKind::HttpModern, "ann").await;
    list(&mut one, "standard").await.passes();
    list(&mut two, "compact").await.passes();
    stays(&list(&mut one, "standard").await, "compact", 60);
    let mut other = Client::of(&harness, ClientKind::HttpModern, "bob").await;
    for variant in ["standard", "compact"] {
        list(&mut other, variant).await.passes();
    }
}

/// Who configures the addresses of two variants has two servers, and not a client that changes.
#[tokio::test]
async fn the_address_of_a_variant_is_no_change() {
    for kind in [ClientKind::HttpLegacy, ClientKind::HttpModern] {
        let (harness, _clock) = limited(vec![changes("1/day")]).await;
        let compact = Client::open(&harness, kind).await;
        let mut compact = compact.at("/mcp/v/compact");
        let standard = Client::open(&harness, kind).await;
        let mut standard = standard.at("/mcp/v/standard");
        for _ in 0..3 {
            compact.response("tools/list", json!({})).await.passes();
            standard.response("tools/list", json!({})).await.passes();
        }
    }
}

/// A change that took effect is not taken back because the call in it is refused.
#[tokio::test]
async fn a_refused_call_under_another_variant_has_changed_it() {
    let limits = vec![changes("1/min"), calls("calls", Per::Principal, "1/min")];
    let (harness, _clock) = limited(limits).await;
    let mut client = Client::open(&harness, ClientKind::HttpModern).await;
    client.call("odd").await.passes();
    let call = json!({"name": "odd", "arguments": {}});
    for _ in 0..2 {
        let refused = client.response("tools/call", under("compact", call.clone()));
        let refused = refused.await;
        assert_eq!(refused.message["error"]["code"], -32005, "{refused:?}");
        refused.message.has("/error/data/activeVariant", "compact");
    }
    stays(&list(&mut client, "standard").await, "compact", 60);
}

#[tokio::test]
async fn without_variants_nothing_changes() {
    let (harness, _clock) =
        limited_with(vec![changes("1/day")], |config| config.with_variants(false)).await;
    let mut client = Client::open(&harness, ClientKind::HttpModern).await;
    for _ in 0..3 {
        client.call("odd").await.passes();
    }
}
