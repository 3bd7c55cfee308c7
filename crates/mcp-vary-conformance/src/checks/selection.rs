//! Server variants: the selector of a request.

use serde_json::{Value, json};

use crate::client::selecting_value;
use crate::prelude::*;

pub(crate) const TEXTS: &str = include_str!("selection.json");

#[rustfmt::skip]
pub(crate) const TESTS: &[(&str, Test)] = &[
    ("SV-8/default-is-the-first", server!(default_is_the_first)),
    ("SV-8/tools-in-every-variant", server!(in_every_variant, &TOOLS)),
    ("SV-8/resources-in-every-variant", server!(in_every_variant, &RESOURCES)),
    ("SV-8/prompts-in-every-variant", server!(in_every_variant, &PROMPTS)),
    ("SV-8/calls-take-a-selector", server!(items_take_a_selector, &TOOLS)),
    ("SV-8/reads-take-a-selector", server!(items_take_a_selector, &RESOURCES)),
    ("SV-8/prompts-take-a-selector", server!(items_take_a_selector, &PROMPTS)),
    ("SV-8/selection-is-per-request", server!(selection_is_per_request)),
    ("SV-8/subscriptions-take-a-selector", server!(subscriptions_take_a_selector)),
    ("SV-18/meta-wins-over-the-header", server!(meta_wins_over_the_header)),
    ("SV-9/selector-is-text", server!(selector_is_text)),
    ("SV-10/unsupported-selector", server!(unsupported_selector)),
    ("SV-17/lists-are-not-cached", server!(lists_are_not_cached)),
];

fn same(kind: &ListKind, found: &[Value], expected: &[Value]) -> Verdict {
    ensure!(
        found == expected,
        "`{}` is {}, instead of {}",
        kind.list_method,
        brief(&json!(found)),
        brief(&json!(expected))
    );
    Ok(())
}

async fn default_is_the_first(probe: &Probe<'_>) -> Verdict {
    let client = probe.connect_with_variants().await?;
    let first = client.first_variant()?;
    for kind in client.lists() {
        let selected = client.list(kind, Some(first)).await?;
        same(kind, &client.list(kind, None).await?, &selected)?;
    }
    Ok(())
}

async fn in_every_variant(probe: &Probe<'_>, kind: &ListKind) -> Verdict {
    let client = probe.connect_with_list(kind).await?;
    for variant in probe.survey().variants() {
        let params = selecting(json!({}), Some(variant));
        let answer = client.ask(kind.list_method, params).await?;
        answer.unless(answer.is_result(), &format!("{variant:?}"))?;
    }
    Ok(())
}

/// Objects unless a request with the first variant has a result.
async fn takes_a_selector(probe: &Probe<'_>, method: &str, params: Value) -> Verdict {
    let client = probe.connect_with_variants().await?;
    let params = selecting(params, Some(probe.survey().first_variant()?));
    client.result(method, params).await.map(|_| ())
}

async fn items_take_a_selector(probe: &Probe<'_>, kind: &ListKind) -> Verdict {
    let params = probe.survey().item_params(kind)?;
    takes_a_selector(probe, kind.item_method, params).await
}

async fn subscriptions_take_a_selector(probe: &Probe<'_>) -> Verdict {
    let params = probe.survey().subscription_params()?;
    let client = probe.connect_with_variants().await?;
    let method = "resources/subscribe";
    let selected = selecting(params.clone(), Some(probe.survey().first_variant()?));
    let answer = client.ask(method, selected).await?;
    // As a gateway does in front of several servers, of which one takes no subscriptions.
    if !answer.is_result() && !client.ask(method, params).await?.is_result() {
        return not_applicable("the server refuses this subscription without a selector, too");
    }
    answer.into_result(method).map(|_| ())
}

async fn meta_wins_over_the_header(probe: &Probe<'_>) -> Verdict {
    let [first, other] = probe.survey().two_variants()?;
    let client = probe.connect_with_variants().await?;
    let kind = client.any_list()?;
    let params = || selecting(json!({}), Some(other));
    let expected = client.result(kind.list_method, params()).await?;
    let Some(client) = client.with_variant_header(first) else {
        return not_applicable("a command has no headers");
    };
    let found = client.result(kind.list_method, params()).await?;
    let [found, expected] = [&found, &expected].map(|page| array_at(page, &[kind.name]));
    same(kind, found, expected)
}

async fn selection_is_per_request(probe: &Probe<'_>) -> Verdict {
    let [_, other] = probe.survey().two_variants()?;
    let client = probe.connect_with_variants().await?;
    let kind = client.any_list()?;
    let before = client.list(kind, None).await?;
    client.list(kind, Some(other)).await?;
    same(kind, &client.list(kind, None).await?, &before)
}

async fn selector_is_text(probe: &Probe<'_>) -> Verdict {
    let client = probe.connect_with_variants().await?;
    let kind = client.any_list()?;
    for selector in [json!(7), json!([null]), json!("")] {
        let params = selecting_value(json!({}), &selector);
        let answer = client.ask(kind.list_method, params).await?;
        answer.into_error(&format!("the selector {selector}"))?;
    }
    Ok(())
}

async fn unsupported_selector(probe: &Probe<'_>) -> Verdict {
    let client = probe.connect(json!({})).await?;
    let kind = client.any_list()?;
    let params = selecting(json!({}), Some("compact"));
    let answer = client.ask(kind.list_method, params).await?;
    let error = answer.into_error("a selector")?;
    let is_right = error.code == Some(-32602) && error.message == "Server variants not supported";
    error.unless(is_right, "a selector")
}

async fn lists_are_not_cached(probe: &Probe<'_>) -> Verdict {
    probe.survey().two_variants()?;
    let client = probe.connect_with_variants().await?;
    for kind in client.lists() {
        let page = client.result(kind.list_method, json!({})).await?;
        let lifetime = page.get("ttlMs");
        ensure!(
            lifetime.is_none_or(|lifetime| lifetime == 0),
            "`{}` has `ttlMs`: {}",
            kind.list_method,
            brief(&json!(lifetime))
        );
    }
    Ok(())
}
