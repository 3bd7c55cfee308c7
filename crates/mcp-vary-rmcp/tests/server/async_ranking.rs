//! SV-6: an order that takes its time, such as a model's, is used once it is there.

use std::convert::Infallible;

use crate::prelude::*;
use crate::variants::{ids, shops};
use mcp_vary::variant::VariantId;
use mcp_vary_rmcp::client::Model;
use mcp_vary_rmcp::server::{ModelRanker, RankingRequest, VariantRanker};

/// Answers every question in one way, and records what it is asked.
#[derive(Clone)]
struct Scripted {
    answer: &'static [&'static str],
    asked: Arc<Mutex<Vec<RankingRequest>>>,
}

impl Scripted {
    fn new(answer: &'static [&'static str]) -> Self {
        let requested = Arc::default();
        Self {
            answer,
            asked: requested,
        }
    }

    /// Waits until the ranker was asked `number` times, and its orders are there.
    async fn settled(&self, number: usize) {
        let requested = async {
            while self.asked.lock().unwrap().len() < number {
                tokio::task::yield_now().await;
            }
            // The order is recorded by the task that asked, which runs on before this one.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        };
        soon(requested).await;
    }

    fn request_count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl VariantRanker for Scripted {
    type Error = String;

    async fn rank(&self, request: &RankingRequest) -> Result<Vec<VariantId>, String> {
        self.asked.lock().unwrap().push(request.clone());
        match self.answer {
            ["down"] => Err("it is down".to_owned()),
            ["panic"] => panic!("a ranker that panics"),
            ["never"] => std::future::pending().await,
            ids => Ok(ids.iter().map(|id| id.parse().unwrap()).collect()),
        }
    }
}

fn planning() -> Value {
    declaring(&[], json!({"useCase": "planning"}))
}

/// SV-6, SV-7: the first answer is the usual one, the ranker is asked once, and the default stays.
#[tokio::test]
async fn a_ranker_is_asked_once_for_all_with_the_same_hints() {
    let ranker = Scripted::new(&["plain", "small", "rich"]);
    let server = shops().with_async_ranking(ranker.clone()).build().unwrap();
    let first = connect_with(&server, WAYS[0], planning()).await;
    assert_eq!(ids(&first.capabilities()), ["rich", "plain", "small"]);
    ranker.settled(1).await;
    for way in each(WAYS) {
        let client = connect_with(&server, way, planning()).await;
        assert_eq!(ids(&client.capabilities()), ["rich", "plain", "small"]);
    }
    assert_eq!(ranker.request_count(), 1);
    let other = Scripted::new(&["small", "rich", "plain"]);
    let server = shops().with_async_ranking(other.clone()).build().unwrap();
    connect_with(&server, WAYS[0], planning()).await;
    other.settled(1).await;
    for way in each(WAYS) {
        let client = connect_with(&server, way, planning()).await;
        assert_eq!(ids(&client.capabilities()), ["rich", "small", "plain"]);
    }
    assert_eq!(other.request_count(), 1);
    // Clients without hints have nothing to be ranked by.
    connect_with(&server, WAYS[0], json!({})).await;
    assert_eq!(other.request_count(), 1);
}

/// SV-6: what is not an order of the visible variants changes nothing, and is not asked for again.
#[tokio::test]
async fn an_order_that_cannot_be_used_changes_nothing() {
    const ANSWERS: [&[&str]; 7] = [
        &["small", "rich"],
        &["small", "rich", "hidden"],
        &["small", "rich", "plain", "small"],
        &["small", "small", "small"],
        &["down"],
        &["panic"],
        &["never"],
    ];
    for answer in ANSWERS {
        let ranker = Scripted::new(answer);
        let server = shops().with_async_ranking(ranker.clone()).build().unwrap();
        for _ in 0..3 {
            let client = connect_with(&server, WAYS[0], planning()).await;
            let capabilities = client.capabilities();
            assert_eq!(ids(&capabilities), ["rich", "plain", "small"], "{answer:?}");
            ranker.settled(1).await;
        }
        assert_eq!(ranker.request_count(), 1, "{answer:?}");
    }
}

/// SV-6, SV-20: a ranker gets the variants that the client can see, and orders no others.
#[tokio::test]
async fn a_ranker_gets_what_the_client_can_see() {
    let ranker = Scripted::new(&["small", "plain"]);
    let server = shops()
        .with_visibility(|_, variant| variant.id != *"rich")
        .with_async_ranking(ranker.clone());
    let server = serve_http(server.build().unwrap()).await;
    for _ in 0..2 {
        let headers = [("x-role", "alice")];
        let client = join(&server.url, Era::Modern, planning(), &headers);
        client.await;
        ranker.settled(1).await;
    }
    let asked = ranker.asked.lock().unwrap();
    let [request] = &asked[..] else {
        panic!("{asked:?}")
    };
    let ids: Vec<_> = request.variants().iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["plain", "small"]);
    assert_eq!(request.hints().values("useCase"), ["planning"]);
    assert!(!format!("{request:?}").contains("alice"));
}

/// A model with one answer.
struct Says(&'static str);

impl Model for Says {
    type Error = Infallible;

    async fn complete(&self, prompt: &str) -> Result<String, Infallible> {
        let expected = r#""hints":{"useCase":["planning"]}"#;
        assert!(prompt.contains(expected), "{prompt}");
        Ok(self.0.to_owned())
    }
}

/// SV-6: a model that clients choose with ranks for servers, too, if it answers with an order and nothing else.
#[tokio::test]
async fn a_model_ranks() {
    for (answer, expected) in [
        (
            r#"{"ranking": ["small", "plain", "rich"]}"#,
            ["rich", "small", "plain"],
        ),
        (
            r#"{"ranking": ["small", "plain", "rich", "admin"]}"#,
            ["rich", "plain", "small"],
        ),
        (
            r#"Sure: {"ranking": ["small", "plain", "rich"]}"#,
            ["rich", "plain", "small"],
        ),
    ] {
        let ranker = ModelRanker::new(Says(answer));
        let server = shops().with_async_ranking(ranker).build().unwrap();
        connect_with(&server, WAYS[0], planning()).await;
        // The model answers as soon as its task runs.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let client = connect_with(&server, WAYS[0], planning()).await;
        assert_eq!(ids(&client.capabilities()), expected, "{answer}");
    }
}
