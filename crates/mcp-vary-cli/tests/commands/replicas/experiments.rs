//! What replicas count of an experiment is one count.

use mcp_vary_auth::key::ApiKey;
use serde_json::Value;
use tokio::task::block_in_place;

use super::*;
use crate::program::run;

const CLIENTS: u8 = 12;

fn key_of(client: u8) -> ApiKey {
    ApiKey::from_random([client; 32])
}

/// An experiment between principals, for the operator at this port.
fn settings(port: u16) -> String {
    let keys = (0..CLIENTS).map(|client| {
        let digest = key_of(client).digest();
        format!("{{name: client-{client}, sha256: {digest}}}")
    });
    let keys = keys.collect::<Vec<_>>().join(", ");
    format!(
        "admin: {port}
auth: {{keys: [{keys}]}}
variants: {{short: {{description: Short.}}, long: {{description: Long.}}}}
experiments: [{{name: words, arms: {{short: 50, long: 50}}, salt: s}}]"
    )
}

/// A call of this client, of which the server knows the city or not.
fn call_of(client: u8, is_known: bool) -> HttpRequest {
    let location = if is_known { "Bern" } else { "Atlantis" };
    let params = json!({"name": "get_weather", "arguments": {"location": location}});
    let call = modern(json!(1), "tools/call", params, &json!({}));
    let key = key_of(client);
    HttpRequest::modern(&call).with("Authorization", format!("Bearer {}", key.expose()))
}

/// Each client makes one to four calls, in turn at these gateways. The last one fails, so that none is a repair of another:
/// replicas see a repair only if both are at the same.
async fn calls(gateways: &[&Gateway]) {
    for client in 0..CLIENTS {
        let last = client % 4;
        for number in 0..=last {
            let at = usize::from(client + number) % gateways.len();
            let answer = gateways[at].ask(&call_of(client, number < last)).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    }
}

/// What `vary experiment` says with these gateways, but for how long calls took.
fn report(gateways: &[&Gateway]) -> Value {
    let addresses = gateways.iter().map(|it| it.server.admin());
    let addresses: Vec<_> = addresses.collect();
    let addresses = addresses.iter().map(String::as_str);
    let arguments: Vec<_> = ["experiment", "--json"]
        .into_iter()
        .chain(addresses)
        .collect();
    let printed = block_in_place(|| run(&arguments).data(0));
    let mut report: Value = serde_json::from_str(&printed).unwrap();
    let comparisons = report[0]["comparisons"].as_array_mut().unwrap();
    comparisons.retain(|it| it["metric"] != "duration");
    report
}

async fn says(gateways: &[&Gateway], expected: &Value) {
    until(async || report(gateways) == *expected).await;
}

/// All of these say the same.
async fn each_says(gateways: &[Gateway], expected: &Value) {
    for gateway in gateways {
        says(&[gateway], expected).await;
    }
}

/// Three replicas, and one gateway with the same experiment and without a store, all with the same calls.
async fn three_and_one(name: &str) -> (Replicas, Gateway) {
    let settings = [(); 3].map(|()| settings(free_port()));
    let replicas = Replicas::start(name, &settings.each_ref().map(String::as_str)).await;
    let alone = replicas.folder.join("alone.yaml");
    let text = fs::read_to_string(replicas.folder.join("0.yaml")).unwrap();
    let text = text.replace("store: \"${STORE}\"\n", "");
    let first = text.lines().find(|it| it.starts_with("admin: ")).unwrap();
    let text = text.replace(first, &format!("admin: {}", free_port()));
    fs::write(&alone, text).unwrap();
    let alone = Gateway::start(&alone, Vec::new());
    until(async || alone.is_ready().await).await;
    calls(&[&alone]).await;
    calls(&replicas.all.iter().collect::<Vec<_>>()).await;
    (replicas, alone)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn an_experiment_is_reported_by_any_replica_as_by_one_process_also_after_one_was_replaced() {
    let (mut replicas, alone) = three_and_one("experiment").await;
    let expected = report(&[&alone]);
    let arms = &expected[0]["shares"]["arms"];
    let clients = [0, 1].map(|arm| arms[arm][1].as_f64().unwrap());
    assert_eq!(clients[0] + clients[1], f64::from(CLIENTS));
    each_says(&replicas.all, &expected).await;
    let all: Vec<_> = replicas.all.iter().collect();
    assert_eq!(report(&all), expected);
    // The others have what a replica counted just before its end, and the next one has all.
    for gateway in [&alone, &replicas.all[0]] {
        gateway.ask(&call_of(1, false)).await;
    }
    replicas.all[0].replace().await;
    let expected = report(&[&alone]);
    each_says(&replicas.all, &expected).await;
    // With another weight it is another experiment; with the earlier one it goes on.
    let path = replicas.folder.join("1.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let reload = |text: &str| {
        fs::write(&path, text).unwrap();
        signal("HUP", replicas.all[1].server.child.id());
    };
    reload(&text.replace("long: 50", "long: 70"));
    until(async || report(&[&replicas.all[1]])[0]["shares"]["arms"][1][1] == 0.0).await;
    reload(&text);
    each_says(&replicas.all, &expected).await;
    alone.end();
    replicas.end();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn an_experiment_goes_on_while_the_store_is_away_and_fills_the_one_that_comes_back_empty() {
    let (mut replicas, alone) = three_and_one("experiment-away").await;
    each_says(&replicas.all, &report(&[&alone])).await;
    // The next one counts under another number, and knows the others from the store alone.
    replicas.all[0].replace().await;
    replicas.redis = None;
    for replica in &replicas.all {
        replica.is_ready_with_store("away").await;
    }
    for gateway in [&alone, &replicas.all[1]] {
        gateway.ask(&call_of(2, false)).await;
    }
    let expected = report(&[&alone]);
    says(&[&replicas.all[1]], &expected).await;
    replicas.start_redis();
    for replica in &replicas.all {
        replica.is_ready_with_store("up").await;
    }
    each_says(&replicas.all, &expected).await;
    replicas.all[2].replace().await;
    each_says(&replicas.all, &expected).await;
    alone.end();
    replicas.end();
}
