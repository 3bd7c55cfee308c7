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
    let said = block_in_place(|| run(&arguments).data(0));
    let mut report: Value = serde_json::from_str(&said).unwrap();
    let comparisons = report[0]["comparisons"].as_array_mut().unwrap();
    comparisons.retain(|it| it["metric"] != "duration");
    report
}

async fn says(gateways: &[&Gateway], expected: &Value) {
    until(async || report(gateways) == *expected).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn an_experiment_is_reported_by_any_replica_as_by_one_process_also_after_one_was_replaced() {
    let settings = [(); 3].map(|()| settings(free_port()));
    let mut replicas =
        Replicas::start("experiment", &settings.each_ref().map(String::as_str)).await;
    let alone = replicas.folder.join("alone.yaml");
    let text = fs::read_to_string(replicas.folder.join("0.yaml")).unwrap();
    let text = text.replace("store: \"${STORE}\"\n", "");
    let first = text.lines().find(|it| it.starts_with("admin: ")).unwrap();
    fs::write(
        &alone,
        text.replace(first, &format!("admin: {}", free_port())),
    )
    .unwrap();
    let alone = Gateway::start(&alone, Vec::new());
    until(async || alone.is_ready().await).await;

    calls(&[&alone]).await;
    calls(&replicas.all.iter().collect::<Vec<_>>()).await;
    let expected = report(&[&alone]);
    let arms = &expected[0]["shares"]["arms"];
    assert_eq!(
        arms[0][1].as_f64().unwrap() + arms[1][1].as_f64().unwrap(),
        12.0
    );
    for replica in &replicas.all {
        says(&[replica], &expected).await;
    }
    let all: Vec<_> = replicas.all.iter().collect();
    assert_eq!(report(&all), expected);

    // The others have what a replica counted just before its end, and the next one has all.
    for gateway in [&alone, &replicas.all[0]] {
        gateway.ask(&call_of(1, false)).await;
    }
    replicas.all[0].replace().await;
    let expected = report(&[&alone]);
    for replica in &replicas.all {
        says(&[replica], &expected).await;
    }
    // What was counted while the store was away is added when it is back, empty.
    replicas.redis = None;
    for replica in &replicas.all {
        replica.is_ready_with_store("away").await;
    }
    for gateway in [&alone, &replicas.all[1]] {
        gateway.ask(&call_of(2, false)).await;
    }
    replicas.start_redis();
    for replica in &replicas.all {
        replica.is_ready_with_store("up").await;
    }
    let expected = report(&[&alone]);
    for replica in &replicas.all {
        says(&[replica], &expected).await;
    }
    replicas.all[2].replace().await;
    says(&[&replicas.all[2]], &expected).await;
    alone.end();
    replicas.end();
}
