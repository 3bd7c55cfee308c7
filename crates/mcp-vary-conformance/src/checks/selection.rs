//! Server variants: the selector of a request.

use serde_json::{Value, json};

use crate::client::selecting_value;
use crate::prelude::*;

#[rustfmt::skip]
pub(crate) const CHECKS: &[Check] = &[
    Check { id: "SV-8/default-is-the-first", level: Level::Must, source: source::SELECTION,
        sentence: "If no variant is specified in `_meta`, the server MUST use the first (default) variant from `availableVariants` (if supported).",
        does: "Reads each list without a selector and with the first variant: they are the same.",
        scope: Scope::Variants, eras: BOTH, test: Test::Server(|probe| Box::pin(default_is_the_first(probe))) },
    Check { id: "SV-8/tools-in-every-variant", level: Level::Must, source: source::SELECTION,
        sentence: "This applies to all capability requests: `tools/list`, `tools/call` …",
        does: "Lists tools in each offered variant: each answers with a result.",
        scope: Scope::Variants, eras: BOTH, test: Test::Server(|probe| Box::pin(in_every_variant(probe, &TOOLS))) },
    Check { id: "SV-8/resources-in-every-variant", level: Level::Must, source: source::SELECTION,
        sentence: "This applies to all capability requests: … `resources/list`, `resources/read`, `resources/subscribe` …",
        does: "Lists resources in each offered variant: each answers with a result.",
        scope: Scope::Variants, eras: BOTH, test: Test::Server(|probe| Box::pin(in_every_variant(probe, &RESOURCES))) },
    Check { id: "SV-8/prompts-in-every-variant", level: Level::Must, source: source::SELECTION,
        sentence: "This applies to all capability requests: … `prompts/list`, `prompts/get` …",
        does: "Lists prompts in each offered variant: each answers with a result.",
        scope: Scope::Variants, eras: BOTH, test: Test::Server(|probe| Box::pin(in_every_variant(probe, &PROMPTS))) },
    Check { id: "SV-8/calls-take-a-selector", level: Level::Must, source: source::SELECTION,
        sentence: "This applies to all capability requests: `tools/list`, `tools/call` …",
        does: "Calls a tool of the first variant with it as the selector: it answers with a result.",
        scope: Scope::Variants, eras: BOTH, test: Test::Server(|probe| Box::pin(items_take_a_selector(probe, &TOOLS))) },
    Check { id: "SV-8/reads-take-a-selector", level: Level::Must, source: source::SELECTION,
        sentence: "This applies to all capability requests: … `resources/list`, `resources/read`, `resources/subscribe` …",
        does: "Reads a resource of the first variant with it as the selector: it answers with a result.",
        scope: Scope::Variants, eras: BOTH, test: Test::Server(|probe| Box::pin(items_take_a_selector(probe, &RESOURCES))) },
    Check { id: "SV-8/prompts-take-a-selector", level: Level::Must, source: source::SELECTION,
        sentence: "This applies to all capability requests: … `prompts/list`, `prompts/get` …",
        does: "Gets a prompt of the first variant with it as the selector: it answers with a result.",
        scope: Scope::Variants, eras: BOTH, test: Test::Server(|probe| Box::pin(items_take_a_selector(probe, &PROMPTS))) },
    Check { id: "SV-8/selection-is-per-request", level: Level::Must, source: source::SELECTION,
        sentence: "Apply the capability configuration for that variant for this request",
        does: "Reads a list without a selector, with another variant, and again without: first and last are the same.",
        scope: Scope::Variants, eras: BOTH, test: Test::Server(|probe| Box::pin(selection_is_per_request(probe))) },
    Check { id: "SV-8/subscriptions-take-a-selector", level: Level::Must, source: source::SELECTION,
        sentence: "This applies to all capability requests: … `resources/list`, `resources/read`, `resources/subscribe` …",
        does: "Subscribes to a resource of the first variant with it as the selector: it answers with a result.",
        scope: Scope::Variants, eras: LEGACY, test: Test::Server(|probe| Box::pin(subscriptions_take_a_selector(probe))) },
    Check { id: "SV-18/meta-wins-over-the-header", level: Level::Should, source: source::HEADER,
        sentence: "The `_meta` field is the normative mechanism and takes precedence over the header if both are present and conflict.",
        does: "Over HTTP, reads a list with one variant in `_meta` and another in the header `MCP-Server-Variant`: it is the list of the first.",
        scope: Scope::Variants, eras: BOTH, test: Test::Server(|probe| Box::pin(meta_wins_over_the_header(probe))) },
    Check { id: "SV-9/selector-is-text", level: Level::Decision, source: source::DECISION,
        sentence: "A selector that is not a string, or is empty, is an invalid variant.",
        does: "Reads a list with the selectors `7`, `null` in an array, and `\"\"`: each is an error.",
        scope: Scope::Variants, eras: BOTH, test: Test::Server(|probe| Box::pin(selector_is_text(probe))) },
    Check { id: "SV-10/unsupported-selector", level: Level::Must, source: source::SELECTION,
        sentence: "If a server does not support this extension and receives `_meta[\"io.modelcontextprotocol/server-variant\"]`, it MUST return `-32602 Invalid params` with message `\"Server variants not supported\"`.",
        does: "Reads a list with a selector from a server that declares no variants.",
        scope: Scope::NoVariants, eras: BOTH, test: Test::Server(|probe| Box::pin(unsupported_selector(probe))) },
    Check { id: "SV-17/lists-are-not-cached", level: Level::Decision, source: source::DECISION,
        sentence: "With several variants, lists have `ttlMs: 0`: the caches of clients do not know the selector.",
        does: "Reads each list: `ttlMs` is 0 or absent.",
        scope: Scope::Variants, eras: MODERN, test: Test::Server(|probe| Box::pin(lists_are_not_cached(probe))) },
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
        ensure!(
            answer.is_result(),
            "{variant:?} was answered with {}",
            answer.describe()
        );
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
    takes_a_selector(probe, "resources/subscribe", params).await
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
    ensure!(
        is_right,
        "a selector was answered with {}",
        error.describe()
    );
    Ok(())
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
