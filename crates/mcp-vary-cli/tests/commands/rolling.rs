//! Two gateways behind HAProxy are replaced one after the other, while clients of both eras send requests.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary_testkit::wait::until;
use serde_json::{Value, json};

use crate::gateways::{Gateway, Proxy};
use crate::load::Load;
use crate::program::sky;

/// Ends a gateway, and starts its successor. Prints how long each step took.
#[expect(
    clippy::print_stdout,
    reason = "the times are for the person who runs the test"
)]
async fn replace(gateway: &mut Gateway, load: &Load) {
    let before = load.requests();
    let [not_ready, ended, replaced] = gateway.replace().await;
    // HAProxy sends requests there again before the other one is replaced.
    tokio::time::sleep(Duration::from_millis(500)).await;
    println!(
        "not ready after {not_ready:.1?}, ended after {ended:.1?}, its successor ready after {replaced:.1?}; \
         {} requests meanwhile",
        load.requests() - before,
    );
}

/// Replaces all gateways until clients have sent this many requests, at least once. Each request has its answer; each stream
/// that was ended comes back. Returns the calls that were answered.
#[expect(
    clippy::print_stdout,
    reason = "the counts are for the person who runs the test"
)]
pub(crate) async fn replace_under_load(
    gateways: &mut [Gateway],
    proxy: &Proxy,
    kinds: &[Option<Value>],
    least: usize,
) -> BTreeSet<String> {
    let load = Arc::new(Load::default());
    let clients = load.start(proxy.address, 4, kinds).await;
    let streams = load.listeners(proxy.address, 4).await;
    let mut rounds = 0;
    while rounds == 0 || load.requests() < least {
        rounds += 1;
        for gateway in &mut *gateways {
            replace(gateway, &load).await;
        }
    }
    let are_back = async || {
        let [opened, ended] = load.streams();
        opened == ended + streams.len()
    };
    until(are_back).await;
    let [opened, ended] = load.streams();
    let (answered, failures) = load.stop(clients).await;
    println!(
        "{} requests, {} failed; streams: {opened} opened, {ended} ended",
        load.requests(),
        failures.len()
    );
    assert!(failures.is_empty(), "{failures:?}");
    // Each gateway ended its streams, and each of them came back.
    assert!(ended >= streams.len(), "{ended} of {} ended", streams.len());
    for stream in streams {
        assert!(!stream.is_finished(), "it is open");
        stream.abort();
    }
    answered
}

/// The configuration of the page, before two gateways.
async fn two_are_replaced(least: usize) {
    let folder = std::env::temp_dir().join(format!("vary-rolling-{}-{least}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let configuration = folder.join("vary.yaml");
    let text = sky(
        "keys: [a-key-for-both-gateways-0123456789abcdef]\nlimits: {drain-delay: 2s, drain: 20s}\n",
    );
    fs::write(&configuration, text).unwrap();
    let mut gateways = [(); 2].map(|()| Gateway::start(&configuration, Vec::new()));
    let page = include_str!("../../../../docs/how-to/service.md");
    let (_, text) = page.split_once("```text\ndefaults\n").unwrap();
    let (text, _) = text.split_once("\n```").unwrap();
    let mut text = format!("defaults\n{text}\n");
    for (gateway, (port, probes)) in gateways.iter().zip([(8811, 8812), (8821, 8822)]) {
        let shown = format!("127.0.0.1:{port} check port {probes}");
        assert!(text.contains(&shown), "{text}");
        text = text.replace(&shown, &gateway.checked());
    }
    let proxy = Proxy::haproxy(&text, &folder).await;
    for gateway in &gateways {
        until(async || gateway.is_ready().await).await;
    }
    replace_under_load(&mut gateways, &proxy, &[Some(json!({})), None], least).await;
    fs::remove_dir_all(&folder).unwrap();
}

/// OP-7
#[tokio::test(flavor = "multi_thread")]
async fn no_request_fails_while_gateways_are_replaced() {
    two_are_replaced(1_000).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes a minute"]
async fn no_request_of_20_000_fails_while_gateways_are_replaced() {
    two_are_replaced(20_000).await;
}
