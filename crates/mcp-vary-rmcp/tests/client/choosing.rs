//! Which variant is chosen, and what is recorded about it.

use std::time::Duration;

use crate::prelude::*;
use mcp_vary_rmcp::client::{
    ChoiceRule, ChoiceRules, Client, MAX_CHOICE_RECORDS, Model, SwitchLimit,
};

/// A model with a fixed answer that counts its calls.
struct Scribe {
    answer: Result<&'static str, &'static str>,
    asked: Mutex<Vec<String>>,
}

impl Scribe {
    fn new(answer: Result<&'static str, &'static str>) -> Self {
        Self {
            answer,
            asked: Mutex::default(),
        }
    }
}

impl Model for Scribe {
    type Error = &'static str;

    async fn complete(&self, prompt: &str) -> Result<String, Self::Error> {
        self.asked.lock().unwrap().push(prompt.to_owned());
        self.answer.map(str::to_owned)
    }
}

/// A model that never answers.
struct Thinker;

impl Model for Thinker {
    type Error = &'static str;

    async fn complete(&self, _prompt: &str) -> Result<String, Self::Error> {
        std::future::pending().await
    }
}

async fn connected() -> Connected {
    Connected::new(WAYS[1], Scripted::with_variants()).await
}

const DEFAULT: &str = "`standard`: the server's default";
const DEBUG: &str = "`debug`: matches the phase debugging";
const COMPACT: &str = "`compact`: 9999 tokens are left, fewer than 10000";

/// Answers of models.
const SHORT: &str = r#"{"selected": "compact", "reasoning": "short"}"#;
const TURBO: &str = r#"{"selected": "turbo"}"#;

/// The reason for a variant that the user named.
fn requested(variant: &str) -> String {
    format!("`{variant}`: requested by the user")
}

#[track_caller]
fn chooses(client: &Client, context: TaskContext, expected: &str) {
    assert_eq!(client.choose(&context).choice().to_string(), expected);
}

/// SV-19: the rules decide by request, budget and phase, in this order, and give the reason.
#[tokio::test]
async fn rules_choose_and_say_why() {
    let connected = connected().await;
    let client = &connected.client;
    let phase = |phase| TaskContext::new().with_phase(phase);
    chooses(client, TaskContext::new(), DEFAULT);
    chooses(client, phase("debugging"), DEBUG);
    chooses(client, phase("dreaming"), DEFAULT);
    let tight = || phase("debugging").with_remaining_tokens(9_999);
    chooses(client, tight(), COMPACT);
    let wants = |variant| tight().with_requested_variant(id(variant));
    chooses(client, wants("standard"), &requested("standard"));
    chooses(client, wants("missing"), COMPACT);
    let wide = TaskContext::new().with_remaining_tokens(10_000);
    chooses(client, wide, DEFAULT);
}

/// SV-19: other rules in another order take one line; unstable variants are chosen only if that is
/// allowed.
#[tokio::test]
async fn rules_are_the_applications() {
    let server = Scripted::offering(&json!({"availableVariants": [
        {"id": "standard", "description": ""},
        {"id": "old", "description": "", "status": "deprecated", "hints": {"useCase": "debugging"}},
        {"id": "lab", "description": "", "status": "experimental", "hints": {"useCase": "debugging"}},
    ]}));
    let connected = Connected::new(WAYS[0], server).await;
    let debugging = TaskContext::new().with_phase("debugging");
    chooses(&connected.client, debugging.clone(), DEFAULT);
    let old = TaskContext::new().with_requested_variant(id("old"));
    chooses(&connected.client, old, &requested("old"));
    let rules = ChoiceRules::new([ChoiceRule::Phase]).with_experimental();
    let daring = connected.client.with_rules(rules);
    let expected = "`lab`: matches the phase debugging";
    chooses(&daring, debugging.clone(), expected);
    chooses(
        &daring,
        debugging.with_requested_variant(id("old")),
        expected,
    );
}

#[track_caller]
fn ends_with(view: &VariantClient, end: &str) {
    let choice = view.choice().to_string();
    assert!(choice.ends_with(end), "{choice}");
}

/// SV-19: a model's choice is validated, and the rules decide if it cannot be used.
#[tokio::test]
async fn a_model_is_asked_and_not_believed() {
    let connected = connected().await;
    let context = TaskContext::new()
        .with_phase("debugging")
        .with_description("find the leak");
    let by_rules = "`debug`: matches the phase debugging; the model gave no usable choice: ";
    let cases = [
        (Ok(SHORT), "`compact`: chosen by the model: short"),
        (Ok(TURBO), "it named `turbo`, which is not offered"),
        (Ok("no idea"), "its answer names no variant"),
        (Err("out of credit"), "it failed: out of credit"),
    ];
    for (answer, expected) in cases {
        let scribe = Scribe::new(answer);
        let client = Client::new(connected.peer(), connected.running.service()).await;
        let view = client.choose_with(&scribe, &context).await;
        ends_with(&view, expected);
        let found = view.choice().to_string().starts_with(by_rules);
        assert_eq!(found, expected.starts_with("it"));
        let asked = scribe.asked.lock().unwrap();
        assert!(asked[0].contains("find the leak") && asked.len() == 1);
    }
}

/// SV-19: if a model does not answer in time, the rules decide.
#[tokio::test(start_paused = true)]
async fn a_model_has_only_so_much_time() {
    let connected = connected().await;
    let client = connected.client.clone();
    let client = client.with_model_timeout(Duration::from_secs(1));
    let view = client.choose_with(&Thinker, &TaskContext::new()).await;
    let expected = "`standard`: the server's default; the model gave no usable choice: it did not answer in time";
    assert_eq!(view.choice().to_string(), expected);
}

/// SV-19: a choice is stored for its context; with a requested variant, or with only one, the model
/// is not called.
#[tokio::test]
async fn a_model_is_asked_only_when_it_must_be() {
    let connected = connected().await;
    let scribe = Scribe::new(Ok(SHORT));
    let asked = || scribe.asked.lock().unwrap().len();
    let context = TaskContext::new().with_remaining_tokens(50_000);
    for (context, times) in [
        (context.clone(), 1),
        (context.clone().with_remaining_tokens(49_000), 1),
        (context.clone().with_remaining_tokens(20_000), 2),
        (context.clone().with_requested_variant(id("debug")), 2),
        (context.with_phase("planning"), 3),
    ] {
        let view = connected.client.choose_with(&scribe, &context).await;
        assert_eq!(asked(), times, "{context:?}");
        let requested = context.requested_variant.unwrap_or(id("compact"));
        assert_eq!(*view.variant().unwrap(), requested);
    }

    let alone =
        Scripted::offering(&json!({"availableVariants": [{"id": "one", "description": ""}]}));
    let alone = Connected::new(WAYS[1], alone).await;
    alone.client.choose_with(&scribe, &TaskContext::new()).await;
    assert_eq!(asked(), 3);
}

/// SV-19: a choice of a model under permissive rules is not used under strict ones.
#[tokio::test]
async fn a_remembered_choice_is_held_to_the_rules() {
    let server = Scripted::offering(&json!({"availableVariants": [
        {"id": "standard", "description": ""},
        {"id": "lab", "description": "", "status": "experimental"},
    ]}));
    let careful = Connected::new(WAYS[0], server).await.client;
    let rules = ChoiceRules::default().with_experimental();
    let daring = careful.clone().with_rules(rules);
    let scribe = Scribe::new(Ok(r#"{"selected": "lab", "reasoning": "new"}"#));
    let context = TaskContext::new();
    let view = daring.choose_with(&scribe, &context).await;
    assert_eq!(view.choice().to_string(), "`lab`: chosen by the model: new");
    let view = careful.choose_with(&scribe, &context).await;
    ends_with(&view, "it named `lab`, which is not stable");
}

/// SV-19: switches by rules and models are limited; variants that the user requests or the
/// application names are not.
#[tokio::test(start_paused = true)]
async fn switching_has_a_limit() {
    let connected = connected().await;
    let limit = SwitchLimit::new(2, Duration::from_secs(60));
    let client = connected.client.clone().with_switch_limit(limit);
    let debugging = TaskContext::new().with_phase("debugging");
    let default = TaskContext::new();
    chooses(&client, default.clone(), DEFAULT);
    chooses(&client, debugging.clone(), DEBUG);
    chooses(&client, default.clone(), DEFAULT);
    let kept = "`standard`: unchanged after 2 switches within 60 s; `debug` was preferred";
    chooses(&client, debugging.clone(), kept);
    chooses(&client, default.clone(), DEFAULT);
    let wants = default.with_requested_variant(id("compact"));
    chooses(&client, wants, &requested("compact"));
    let view = client.variant(&id("standard")).unwrap();
    assert_eq!(*view.variant().unwrap(), "standard");
    chooses(&client, debugging.clone(), kept);
    tokio::time::advance(Duration::from_secs(60)).await;
    chooses(&client, debugging, DEBUG);
}

/// SV-19: every choice is recorded with its reason, and whether it was a switch.
#[tokio::test]
async fn choices_are_on_record() {
    let connected = connected().await;
    let client = &connected.client;
    let _ = client.choose(&TaskContext::new());
    let _ = client.choose(&TaskContext::new().with_phase("debugging"));
    let _ = client.variant(&id("debug")).unwrap();
    let _ = client.clone().variant(&id("compact")).unwrap();
    let records: Vec<_> = client
        .choices()
        .iter()
        .map(|record| format!("{} {}", record.choice, record.switched))
        .collect();
    assert_eq!(
        records,
        [
            "`standard`: the server's default false",
            "`debug`: matches the phase debugging true",
            "`debug`: named by the application false",
            "`compact`: named by the application true",
        ]
    );
    for _ in 0..1_000 {
        let _ = client.choose(&TaskContext::new());
    }
    let found = client.choices().len();
    assert_eq!(found, MAX_CHOICE_RECORDS);
}

/// SV-19: after a refresh of the offers, choices are made again.
#[tokio::test]
async fn new_offers_are_a_new_question() {
    let connected = connected().await;
    let scribe = Scribe::new(Ok(SHORT));
    let context = TaskContext::new();
    for times in [1, 1, 2] {
        if times == 2 {
            connected.client.refresh_offers().await.unwrap();
        }
        connected.client.choose_with(&scribe, &context).await;
        assert_eq!(scribe.asked.lock().unwrap().len(), times);
    }
    connected.server.retire("compact");
    connected.client.refresh_offers().await.unwrap();
    let view = connected.client.choose_with(&scribe, &context).await;
    ends_with(&view, "it named `compact`, which is not offered");
}
