//! Server variants: the selector of a request.

use serde_json::{Value, json};

use crate::check::{
    BOTH, Check, LEGACY, Level, MODERN, Objection, Scope, Test, Verdict, not_applicable, require,
};
use crate::client::{Client, KINDS, Kind, PROMPTS, RESOURCES, TOOLS, selecting, selecting_value};
use crate::json::{array_at, at, brief};
use crate::probe::Probe;
use crate::source;

use super::offers::{ids, offered};

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "SV-8/default-is-the-first",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "If no variant is specified in `_meta`, the server MUST use the first (default) variant from `availableVariants` (if supported).",
        does: "Reads each list without a selector and with the first variant: they are the same.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(default_is_the_first(probe))),
    },
    Check {
        id: "SV-8/tools-in-every-variant",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "This applies to all capability requests: `tools/list`, `tools/call` …",
        does: "Lists tools in each offered variant: each answers with a result.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(in_every_variant(probe, &TOOLS))),
    },
    Check {
        id: "SV-8/resources-in-every-variant",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "This applies to all capability requests: … `resources/list`, `resources/read`, `resources/subscribe` …",
        does: "Lists resources in each offered variant: each answers with a result.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(in_every_variant(probe, &RESOURCES))),
    },
    Check {
        id: "SV-8/prompts-in-every-variant",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "This applies to all capability requests: … `prompts/list`, `prompts/get` …",
        does: "Lists prompts in each offered variant: each answers with a result.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(in_every_variant(probe, &PROMPTS))),
    },
    Check {
        id: "SV-8/calls-take-a-selector",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "This applies to all capability requests: `tools/list`, `tools/call` …",
        does: "Calls a tool of the first variant with it as the selector: it answers with a result.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(calls_take_a_selector(probe))),
    },
    Check {
        id: "SV-8/reads-take-a-selector",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "This applies to all capability requests: … `resources/list`, `resources/read`, `resources/subscribe` …",
        does: "Reads a resource of the first variant with it as the selector: it answers with a result.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(reads_take_a_selector(probe))),
    },
    Check {
        id: "SV-8/prompts-take-a-selector",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "This applies to all capability requests: … `prompts/list`, `prompts/get` …",
        does: "Gets a prompt of the first variant with it as the selector: it answers with a result.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(prompts_take_a_selector(probe))),
    },
    Check {
        id: "SV-8/selection-is-per-request",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "Apply the capability configuration for that variant for this request",
        does: "Reads a list without a selector, with another variant, and again without: first and last are the same.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(selection_is_per_request(probe))),
    },
    Check {
        id: "SV-8/subscriptions-take-a-selector",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "This applies to all capability requests: … `resources/list`, `resources/read`, `resources/subscribe` …",
        does: "Subscribes to a resource of the first variant with it as the selector: it answers with a result.",
        scope: Scope::Variants,
        eras: LEGACY,
        test: Test::Server(|probe| Box::pin(subscriptions_take_a_selector(probe))),
    },
    Check {
        id: "SV-18/meta-wins-over-the-header",
        level: Level::Should,
        source: source::HEADER,
        sentence: "The `_meta` field is the normative mechanism and takes precedence over the header if both are present and conflict.",
        does: "Over HTTP, reads a list with one variant in `_meta` and another in the header `MCP-Server-Variant`: it is the list of the first.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(meta_wins_over_the_header(probe))),
    },
    Check {
        id: "SV-9/selector-is-text",
        level: Level::Decision,
        source: source::DECISION,
        sentence: "A selector that is not a string, or is empty, is an invalid variant.",
        does: "Reads a list with the selectors `7`, `null` in an array, and `\"\"`: each is an error.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(selector_is_text(probe))),
    },
    Check {
        id: "SV-10/unsupported-selector",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "If a server does not support this extension and receives `_meta[\"io.modelcontextprotocol/server-variant\"]`, it MUST return `-32602 Invalid params` with message `\"Server variants not supported\"`.",
        does: "Reads a list with a selector from a server that declares no variants.",
        scope: Scope::NoVariants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(unsupported_selector(probe))),
    },
    Check {
        id: "SV-17/lists-are-not-cached",
        level: Level::Decision,
        source: source::DECISION,
        sentence: "With several variants, lists have `ttlMs: 0`: the caches of clients do not know the selector.",
        does: "Reads each list: `ttlMs` is 0 or absent.",
        scope: Scope::Variants,
        eras: MODERN,
        test: Test::Server(|probe| Box::pin(lists_are_not_cached(probe))),
    },
];

/// A list that the server declares.
pub(super) fn any_kind(client: &Client<'_>) -> Result<&'static Kind, Objection> {
    match KINDS.into_iter().find(|kind| client.has(kind)) {
        Some(kind) => Ok(kind),
        None => not_applicable("the server declares no lists"),
    }
}

/// The variant that is offered first.
pub(super) fn first<'a>(probe: &Probe<'a>) -> Result<&'a str, Objection> {
    match probe.survey().variants().first() {
        Some(id) => Ok(id),
        None => not_applicable("no offered variant has an id"),
    }
}

/// The variant that is offered first to `client`. Other clients may be offered another one first.
pub(super) fn first_of<'a>(client: &'a Client<'_>) -> Result<&'a str, Objection> {
    match ids(offered(client)).first() {
        Some(id) => Ok(id),
        None => not_applicable("no offered variant has an id"),
    }
}

fn same(kind: &Kind, found: &[Value], expected: &[Value]) -> Verdict {
    require(found == expected, || {
        let [found, expected] = [found, expected].map(|list| brief(&json!(list)));
        format!("`{}` is {found}, instead of {expected}", kind.method)
    })
}

async fn default_is_the_first(probe: &Probe<'_>) -> Verdict {
    let client = probe.connect_with_variants().await?;
    let first = first_of(&client)?;
    for kind in KINDS.into_iter().filter(|kind| client.has(kind)) {
        let selected = client.list(kind, Some(first)).await?;
        same(kind, &client.list(kind, None).await?, &selected)?;
    }
    Ok(())
}

async fn in_every_variant(probe: &Probe<'_>, kind: &Kind) -> Verdict {
    let client = probe.connect_with_variants().await?;
    if !client.has(kind) {
        return not_applicable(format!("the server does not declare `{}`", kind.capability));
    }
    for variant in probe.survey().variants() {
        let answer = client
            .ask(kind.method, selecting(json!({}), Some(variant)))
            .await?;
        require(answer.is_result(), || {
            format!("{variant:?} was answered with {}", answer.describe())
        })?;
    }
    Ok(())
}

/// Objects unless a request with the first variant has a result.
async fn takes_a_selector(probe: &Probe<'_>, method: &str, params: Value) -> Verdict {
    let client = probe.connect_with_variants().await?;
    let params = selecting(params, Some(first(probe)?));
    client.result(method, params).await.map(|_| ())
}

async fn calls_take_a_selector(probe: &Probe<'_>) -> Verdict {
    let params = probe.survey().tool()?.params();
    takes_a_selector(probe, "tools/call", params).await
}

async fn reads_take_a_selector(probe: &Probe<'_>) -> Verdict {
    let uri = probe.survey().resource()?;
    takes_a_selector(probe, "resources/read", json!({ "uri": uri })).await
}

async fn prompts_take_a_selector(probe: &Probe<'_>) -> Verdict {
    let name = probe.survey().prompt()?;
    takes_a_selector(probe, "prompts/get", json!({ "name": name })).await
}

async fn subscriptions_take_a_selector(probe: &Probe<'_>) -> Verdict {
    if at(&probe.survey().capabilities, &["resources", "subscribe"]) != Some(&json!(true)) {
        return not_applicable("the server does not declare `resources.subscribe`");
    }
    let uri = probe.survey().resource()?;
    takes_a_selector(probe, "resources/subscribe", json!({ "uri": uri })).await
}

async fn meta_wins_over_the_header(probe: &Probe<'_>) -> Verdict {
    let [first, other] = probe.survey().two_variants()?;
    let client = probe.connect_with_variants().await?;
    let kind = any_kind(&client)?;
    let params = || selecting(json!({}), Some(other));
    let expected = client.result(kind.method, params()).await?;
    let Some(client) = client.with_variant_header(first) else {
        return not_applicable("a command has no headers");
    };
    let found = client.result(kind.method, params()).await?;
    let [found, expected] = [&found, &expected].map(|page| array_at(page, &[kind.member]));
    same(kind, found, expected)
}

async fn selection_is_per_request(probe: &Probe<'_>) -> Verdict {
    let [_, other] = probe.survey().two_variants()?;
    let client = probe.connect_with_variants().await?;
    let kind = any_kind(&client)?;
    let before = client.list(kind, None).await?;
    client.list(kind, Some(other)).await?;
    same(kind, &client.list(kind, None).await?, &before)
}

async fn selector_is_text(probe: &Probe<'_>) -> Verdict {
    let client = probe.connect_with_variants().await?;
    let kind = any_kind(&client)?;
    for selector in [json!(7), json!([null]), json!("")] {
        let answer = client
            .ask(kind.method, selecting_value(json!({}), &selector))
            .await?;
        answer.into_error(&format!("the selector {selector}"))?;
    }
    Ok(())
}

async fn unsupported_selector(probe: &Probe<'_>) -> Verdict {
    let client = probe.connect(json!({})).await?;
    let kind = any_kind(&client)?;
    let answer = client
        .ask(kind.method, selecting(json!({}), Some("compact")))
        .await?;
    let error = answer.into_error("a selector")?;
    let is_right = error.code == Some(-32602) && error.message == "Server variants not supported";
    require(is_right, || {
        format!("a selector was answered with {}", error.describe())
    })
}

async fn lists_are_not_cached(probe: &Probe<'_>) -> Verdict {
    probe.survey().two_variants()?;
    let client = probe.connect_with_variants().await?;
    for kind in KINDS.into_iter().filter(|kind| client.has(kind)) {
        let page = client.result(kind.method, json!({})).await?;
        let lifetime = page.get("ttlMs");
        require(lifetime.is_none_or(|lifetime| lifetime == 0), || {
            format!("`{}` has `ttlMs`: {}", kind.method, brief(&json!(lifetime)))
        })?;
    }
    Ok(())
}
