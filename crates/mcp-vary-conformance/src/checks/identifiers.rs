//! Server variants: names and URIs belong to a variant, and so do subscriptions.

use serde_json::{Value, json};

use crate::check::{
    BOTH, Check, LEGACY, Level, Objection, Scope, Test, Verdict, not_applicable, require,
};
use crate::client::{Answer, Client, Kind, PROMPTS, RESOURCES, TOOLS, selecting};
use crate::json::{array_at, at, brief, text_at};
use crate::probe::Probe;
use crate::source;

use super::selection::first_of;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "SV-12/unknown-tool-names-the-variant",
        level: Level::Should,
        source: source::ERRORS,
        sentence: "Servers SHOULD include `activeVariant` in error `data` for variant-scoped resolution failures (unknown tool/prompt/resource, invalid cursor, invalid subscription context).",
        does: "Calls a tool that does not exist in a selected variant: `data.activeVariant` of the error is the variant.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(unknown_names_the_variant(probe, &TOOL))),
    },
    Check {
        id: "SV-12/unknown-resource-names-the-variant",
        level: Level::Should,
        source: source::ERRORS,
        sentence: "Servers SHOULD include `activeVariant` in error `data` for variant-scoped resolution failures (unknown tool/prompt/resource, invalid cursor, invalid subscription context).",
        does: "Reads a resource that does not exist in a selected variant: `data.activeVariant` of the error is the variant.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(unknown_names_the_variant(probe, &RESOURCE))),
    },
    Check {
        id: "SV-12/unknown-prompt-names-the-variant",
        level: Level::Should,
        source: source::ERRORS,
        sentence: "Servers SHOULD include `activeVariant` in error `data` for variant-scoped resolution failures (unknown tool/prompt/resource, invalid cursor, invalid subscription context).",
        does: "Gets a prompt that does not exist in a selected variant: `data.activeVariant` of the error is the variant.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(unknown_names_the_variant(probe, &PROMPT))),
    },
    Check {
        id: "SV-12/tools-of-another-variant",
        level: Level::Must,
        source: source::IDENTIFIERS,
        sentence: "When `_meta[\"io.modelcontextprotocol/server-variant\"]` is present, all identifiers in that request are resolved in that variant's namespace",
        does: "Calls a tool that changes nothing in a variant that does not list it: the answer is an error.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(tools_of_another_variant(probe))),
    },
    Check {
        id: "SV-12/resources-of-another-variant",
        level: Level::Must,
        source: source::IDENTIFIERS,
        sentence: "When `_meta[\"io.modelcontextprotocol/server-variant\"]` is present, all identifiers in that request are resolved in that variant's namespace",
        does: "Reads a resource in a variant that does not list it: the answer is an error. Servers with resource templates are not checked: a template may match it.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(resources_of_another_variant(probe))),
    },
    Check {
        id: "SV-12/prompts-of-another-variant",
        level: Level::Must,
        source: source::IDENTIFIERS,
        sentence: "When `_meta[\"io.modelcontextprotocol/server-variant\"]` is present, all identifiers in that request are resolved in that variant's namespace",
        does: "Gets a prompt in a variant that does not list it: the answer is an error.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(prompts_of_another_variant(probe))),
    },
    Check {
        id: "SV-14/subscribe-to-unknown",
        level: Level::Must,
        source: source::SUBSCRIPTIONS,
        sentence: "If the resource URI doesn't exist in the requested variant at subscribe time, return error `-32602` with `activeVariant` in the error data",
        does: "Subscribes to a resource that does not exist in a selected variant.",
        scope: Scope::Variants,
        eras: LEGACY,
        test: Test::Server(|probe| Box::pin(subscribe_to_unknown(probe))),
    },
    Check {
        id: "SV-14/unsubscribe-is-accepted",
        level: Level::Must,
        source: source::SUBSCRIPTIONS,
        sentence: "Servers MUST continue to accept `resources/unsubscribe` for existing subscription ids even if the underlying resource is no longer available.",
        does: "Subscribes to a resource in the default variant, and unsubscribes: both have results.",
        scope: Scope::Variants,
        eras: LEGACY,
        test: Test::Server(|probe| Box::pin(unsubscribe_is_accepted(probe))),
    },
];

/// A request that names one thing.
struct Use {
    kind: &'static Kind,
    method: &'static str,
    /// A name that nothing has.
    unknown: &'static str,
}

const TOOL: Use = Use {
    kind: &TOOLS,
    method: "tools/call",
    unknown: "mcp_vary_conformance_unknown",
};

const RESOURCE: Use = Use {
    kind: &RESOURCES,
    method: "resources/read",
    unknown: "mcp-vary-conformance://unknown",
};

const PROMPT: Use = Use {
    kind: &PROMPTS,
    method: "prompts/get",
    unknown: "mcp_vary_conformance_unknown",
};

/// A client of a server that declares `kind`.
async fn connect<'a>(probe: &'a Probe<'_>, kind: &Kind) -> Result<Client<'a>, Objection> {
    let client = probe.connect_with_variants().await?;
    if client.has(kind) {
        Ok(client)
    } else {
        not_applicable(format!("the server does not declare `{}`", kind.capability))
    }
}

async fn unknown_names_the_variant(probe: &Probe<'_>, used: &Use) -> Verdict {
    let client = connect(probe, used.kind).await?;
    let first = first_of(&client)?;
    for variant in [probe.survey().variants().last().copied(), None] {
        let params = selecting(json!({used.kind.key: used.unknown}), variant);
        let answer = client.ask(used.method, params).await?;
        let error = answer.into_error(&format!("`{}` of an unknown name", used.method))?;
        let active = text_at(&error.data, &["activeVariant"]);
        let expected = variant.unwrap_or(first);
        require(active == Some(expected), || {
            format!("`activeVariant` is not {expected:?}: {}", error.describe())
        })?;
    }
    Ok(())
}

/// An element that one variant lists, and a variant that does not.
async fn of_another_variant(
    probe: &Probe<'_>,
    client: &Client<'_>,
    kind: &Kind,
    suits: impl Fn(&Value) -> bool,
) -> Result<(Value, String), Objection> {
    let variants = probe.survey().variants();
    let mut lists = Vec::new();
    for variant in &variants {
        match client.list(kind, Some(variant)).await {
            Ok(list) => lists.push((list, *variant)),
            // `SV-8` objects to that.
            Err(Objection::Violation(_)) => {}
            Err(objection) => return Err(objection),
        }
    }
    for element in lists
        .iter()
        .flat_map(|(list, _)| list)
        .filter(|element| suits(element))
    {
        let lacks = |list: &[Value]| {
            !list
                .iter()
                .any(|other| other.get(kind.key) == element.get(kind.key))
        };
        if let Some((_, variant)) = lists.iter().find(|(list, _)| lacks(list)) {
            return Ok((element.clone(), (*variant).to_owned()));
        }
    }
    not_applicable(format!(
        "all variants list the same in `{}`, as far as a check may use it",
        kind.method
    ))
}

fn is_refused(answer: &Answer, used: &Use, variant: &str) -> Verdict {
    let refused = match answer {
        Answer::Error(_) => true,
        Answer::Result(result) => result.get("isError") == Some(&json!(true)),
    };
    require(refused, || {
        format!(
            "`{}` in {variant:?}, which does not list it, was answered with {}",
            used.method,
            answer.describe()
        )
    })
}

async fn tools_of_another_variant(probe: &Probe<'_>) -> Verdict {
    let client = connect(probe, &TOOLS).await?;
    let params_of = |tool: &Value| probe.survey().params_of(tool);
    let suits = |tool: &Value| params_of(tool).is_some();
    let (tool, variant) = of_another_variant(probe, &client, &TOOLS, suits).await?;
    let Some(params) = params_of(&tool) else {
        return not_applicable("no tool that changes nothing");
    };
    let answer = client
        .ask("tools/call", selecting(params, Some(&variant)))
        .await?;
    is_refused(&answer, &TOOL, &variant)
}

async fn resources_of_another_variant(probe: &Probe<'_>) -> Verdict {
    let client = connect(probe, &RESOURCES).await?;
    let templates = client.ask("resources/templates/list", json!({})).await?;
    if matches!(&templates, Answer::Result(page) if !array_at(page, &["resourceTemplates"]).is_empty())
    {
        return not_applicable("the server has resource templates, which may match the URI");
    }
    listed_elsewhere(probe, &client, &RESOURCE).await
}

async fn prompts_of_another_variant(probe: &Probe<'_>) -> Verdict {
    let client = connect(probe, &PROMPTS).await?;
    listed_elsewhere(probe, &client, &PROMPT).await
}

async fn listed_elsewhere(probe: &Probe<'_>, client: &Client<'_>, used: &Use) -> Verdict {
    let key = used.kind.key;
    let (element, variant) = of_another_variant(probe, client, used.kind, |_| true).await?;
    let params = selecting(json!({key: element.get(key)}), Some(&variant));
    is_refused(&client.ask(used.method, params).await?, used, &variant)
}

/// A client of a server that takes subscriptions.
async fn connect_for_subscriptions<'a>(probe: &'a Probe<'_>) -> Result<Client<'a>, Objection> {
    let client = probe.connect_with_variants().await?;
    match at(&client.capabilities, &["resources", "subscribe"]) {
        Some(Value::Bool(true)) => Ok(client),
        _ => not_applicable("the server does not declare `resources.subscribe`"),
    }
}

async fn subscribe_to_unknown(probe: &Probe<'_>) -> Verdict {
    let client = connect_for_subscriptions(probe).await?;
    let variant = probe.survey().variants().last().copied();
    let params = selecting(json!({"uri": RESOURCE.unknown}), variant);
    let answer = client.ask("resources/subscribe", params).await?;
    let error = answer.into_error("a subscription to an unknown resource")?;
    let is_right =
        error.code == Some(-32602) && text_at(&error.data, &["activeVariant"]) == variant;
    require(is_right, || {
        format!(
            "the error is not -32602 with `activeVariant` {}: {}",
            brief(&json!(variant)),
            error.describe()
        )
    })
}

async fn unsubscribe_is_accepted(probe: &Probe<'_>) -> Verdict {
    let client = connect_for_subscriptions(probe).await?;
    let params = json!({"uri": probe.survey().resource()?});
    client.result("resources/subscribe", params.clone()).await?;
    client
        .result("resources/unsubscribe", params)
        .await
        .map(|_| ())
}
