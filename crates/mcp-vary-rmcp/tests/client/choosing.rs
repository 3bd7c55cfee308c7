//! Which variant is chosen, and what is recorded about it.

use std::time::Duration;

use crate::prelude::*;
use mcp_vary_rmcp::client::{ChoiceRule, ChoiceRules, Client, MAX_CHOICE_RECORDS, SwitchLimit};

async fn connected() -> Connected {
    Connected::new(WAYS[1], Scripted::with_variants()).await
}

const DEFAULT: &str = "`standard`: the server's default";
const DEBUG: &str = "`debug`: matches the phase debugging";
const COMPACT: &str = "`compact`: 9999 tokens are left, fewer than 10000";

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

/// The choice of `client` with a function that chooses `chosen`, and what the function got; `None` if it was not called.
async fn chosen_with(
    client: &Client,
    context: &TaskContext,
    chosen: Option<&str>,
) -> (String, Option<Vec<String>>) {
    let mut offered = None;
    let view = client
        .choose_with(context, |variants| {
            let ids = variants.iter().map(|variant| variant.id.to_string());
            offered = Some(ids.collect());
            std::future::ready(chosen.map(id))
        })
        .await;
    (view.choice().to_string(), offered)
}

/// SV-19: a function of the application may choose what the rules could have chosen, or the default; else the rules
/// decide.
#[tokio::test]
async fn a_function_chooses_among_what_the_rules_allow() {
    let server = Scripted::offering(&json!({"availableVariants": [
        {"id": "standard", "description": ""},
        {"id": "debug", "description": "", "hints": {"useCase": "debugging"}},
        {"id": "lab", "description": "", "status": "experimental"},
        {"id": "old", "description": "", "status": "deprecated"},
    ]}));
    let careful = Connected::new(WAYS[0], server).await.client;
    let daring = careful
        .clone()
        .with_rules(ChoiceRules::default().with_experimental());
    let context = TaskContext::new().with_phase("debugging");
    let chosen = |id: &str| format!("`{id}`: chosen by the application");
    let refused =
        |id| format!("{DEBUG}; the application chose `{id}`, which is not offered or not stable");
    for (client, id, expected) in [
        (&careful, Some("standard"), chosen("standard")),
        (&careful, Some("debug"), chosen("debug")),
        (&careful, Some("lab"), refused("lab")),
        (&careful, Some("old"), refused("old")),
        (&careful, Some("turbo"), refused("turbo")),
        (&careful, None, DEBUG.to_owned()),
        (&daring, Some("lab"), chosen("lab")),
    ] {
        let (choice, offered) = chosen_with(client, &context, id).await;
        assert_eq!(choice, expected);
        let offered = offered.unwrap();
        let expected = ["standard", "debug", "lab"];
        let count = if std::ptr::eq(client, &careful) { 2 } else { 3 };
        assert_eq!(offered, expected[..count]);
    }
}

/// SV-19: with a requested variant, or with only one, the function is not called.
#[tokio::test]
async fn a_function_is_called_only_when_it_must_be() {
    let connected = connected().await;
    let context = TaskContext::new().with_requested_variant(id("debug"));
    let found = chosen_with(&connected.client, &context, Some("compact")).await;
    assert_eq!(found, (requested("debug"), None));

    let alone =
        Scripted::offering(&json!({"availableVariants": [{"id": "one", "description": ""}]}));
    let alone = Connected::new(WAYS[1], alone).await;
    let found = chosen_with(&alone.client, &TaskContext::new(), Some("one")).await;
    assert_eq!(found, ("`one`: the server's default".to_owned(), None));
}

/// SV-19: switches by rules and functions are limited; variants that the user requests or the
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
