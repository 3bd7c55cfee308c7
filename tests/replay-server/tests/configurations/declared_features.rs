//! What the examples tell clients that declare features, and those that do not.
//!
//! `tests/interop/examples.json` says what; the official clients ask the same, over HTTP and in both eras.

use std::fs;

use serde_json::{Value, json};

use crate::front::{Front, features, root};

/// The examples that are about features rather than variants.
const EXAMPLES: [&str; 6] = [
    "agents", "claims", "journeys", "mapping", "reports", "weather",
];

/// The entries of the table that are about `example`.
fn entries(example: &str) -> Vec<Value> {
    let table = fs::read_to_string(root().join("tests/interop/examples.json")).unwrap();
    let table: Vec<Value> = serde_json::from_str(&table).unwrap();
    let of_example = |entry: &Value| entry["example"] == example;
    table.into_iter().filter(of_example).collect()
}

/// The tags of an entry; none for a client that declares nothing.
fn tags(entry: &Value) -> Option<Vec<&str>> {
    let tags = entry["features"].as_array()?;
    Some(tags.iter().map(|tag| tag.as_str().unwrap()).collect())
}

/// Asserts that `result` has what `case` finds; `null` is nothing.
fn has(result: &Value, case: &Value, at: &str) {
    for (pointer, expected) in case["finds"].as_object().unwrap() {
        let found = result.pointer(pointer);
        let expected = Some(expected).filter(|expected| !expected.is_null());
        assert_eq!(found, expected, "{at}: {pointer}");
    }
}

/// CN-6, CN-14, CN-15, CN-20: each client of each example gets what is for it, and its neighbour what is for that.
#[tokio::test]
async fn each_client_is_told_what_is_for_it() {
    for example in EXAMPLES {
        let mut front = Front::of(example).await;
        let entries = entries(example);
        assert!(entries.len() > 2, "{example}");
        for entry in &entries {
            for case in entry["cases"].as_array().unwrap() {
                let at = format!("{example}: {}", case["name"]);
                let declared = features(tags(entry).as_deref());
                let method = case["method"].as_str().unwrap();
                let params = case["params"].clone();
                let result = front.ask_declaring(declared, method, params).await.unwrap();
                has(&result, case, &at);
            }
        }
        assert_eq!(front.gateway.failed_results(), 0, "{example}");
        front.gateway.close().await;
    }
}

/// CN-18: agents that ask at once, on one connection, get each its own.
#[tokio::test]
async fn agents_with_different_capabilities_ask_at_once() {
    let mut front = Front::of("agents").await;
    let entries = entries("agents");
    let asked: Vec<_> = (0..40)
        .map(|at| {
            let entry = &entries[at % entries.len()];
            let case = &entry["cases"][0];
            (
                features(tags(entry).as_deref()),
                "tools/call",
                case["params"].clone(),
            )
        })
        .collect();
    let answers = front.ask_at_once(asked).await;
    assert_eq!(answers.len(), 40);
    for (at, answer) in answers.iter().enumerate() {
        let case = &entries[at % entries.len()]["cases"][0];
        has(&answer["result"], case, &format!("the answer {at}"));
    }
    front.gateway.close().await;
}

/// CN-16: what these examples tell is never what they list: the clients that declare features are given the same lists,
/// and one that declares nothing finds the same items.
#[tokio::test]
async fn all_clients_see_the_same_lists() {
    for example in EXAMPLES {
        let mut front = Front::of(example).await;
        for list in ["tools", "resources", "prompts"] {
            let method = format!("{list}/list");
            let mut seen = Vec::new();
            for entry in entries(example) {
                let declared = features(tags(&entry).as_deref());
                seen.push(front.ask_declaring(declared, &method, json!({})).await);
            }
            let declaring = entries(example).into_iter().zip(&seen);
            let declaring = declaring.filter(|(entry, _)| tags(entry).is_some());
            let answers: Vec<_> = declaring.map(|(_, answer)| answer).collect();
            assert!(
                answers.windows(2).all(|two| two[0] == two[1]),
                "{answers:?}"
            );
            // Where no server has a kind, only a client with the extension is answered, with an empty list.
            let items = |answer: &Result<Value, Value>| match answer {
                Ok(result) => result[list].as_array().unwrap().clone(),
                Err(error) => {
                    assert_eq!(error["code"], -32601, "{example} {method}");
                    Vec::new()
                }
            };
            let items: Vec<_> = seen.iter().map(items).collect();
            assert!(items.windows(2).all(|two| two[0] == two[1]), "{items:?}");
        }
        front.gateway.close().await;
    }
}
