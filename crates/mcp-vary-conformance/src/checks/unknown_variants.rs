//! Server variants: requests that select a variant that does not exist.

use serde_json::{Value, json};

use crate::check::{
    BOTH, Check, LEGACY, Level, Objection, Scope, Test, Verdict, not_applicable, require,
};
use crate::client::{Client, ErrorAnswer, Kind, PROMPTS, RESOURCES, TOOLS, VARIANTS, selecting};
use crate::json::{at, brief, text_at};
use crate::probe::Probe;
use crate::source;

use super::selection::any_kind;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "SV-9/unknown-variant-in-tools-list",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "If the variant is invalid, the server MUST return a JSON-RPC error: … \"code\": -32602, \"message\": \"Invalid server variant\"",
        does: "Lists tools with a variant that is not offered: the answer is this error.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(in_list(probe, &TOOLS))),
    },
    Check {
        id: "SV-9/unknown-variant-in-tools-call",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "If the variant is invalid, the server MUST return a JSON-RPC error: … \"code\": -32602, \"message\": \"Invalid server variant\"",
        does: "Calls a tool that exists with a variant that is not offered: the answer is this error.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(in_tools_call(probe))),
    },
    Check {
        id: "SV-9/unknown-variant-in-resources-list",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "If the variant is invalid, the server MUST return a JSON-RPC error: … \"code\": -32602, \"message\": \"Invalid server variant\"",
        does: "Lists resources with a variant that is not offered: the answer is this error.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(in_list(probe, &RESOURCES))),
    },
    Check {
        id: "SV-9/unknown-variant-in-resources-read",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "If the variant is invalid, the server MUST return a JSON-RPC error: … \"code\": -32602, \"message\": \"Invalid server variant\"",
        does: "Reads a resource that exists with a variant that is not offered: the answer is this error.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(in_resources_read(probe))),
    },
    Check {
        id: "SV-9/unknown-variant-in-resources-subscribe",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "If the variant is invalid, the server MUST return a JSON-RPC error: … \"code\": -32602, \"message\": \"Invalid server variant\"",
        does: "Subscribes to a resource that exists with a variant that is not offered: the answer is this error.",
        scope: Scope::Variants,
        eras: LEGACY,
        test: Test::Server(|probe| Box::pin(in_resources_subscribe(probe))),
    },
    Check {
        id: "SV-9/unknown-variant-in-prompts-list",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "If the variant is invalid, the server MUST return a JSON-RPC error: … \"code\": -32602, \"message\": \"Invalid server variant\"",
        does: "Lists prompts with a variant that is not offered: the answer is this error.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(in_list(probe, &PROMPTS))),
    },
    Check {
        id: "SV-9/unknown-variant-in-prompts-get",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "If the variant is invalid, the server MUST return a JSON-RPC error: … \"code\": -32602, \"message\": \"Invalid server variant\"",
        does: "Gets a prompt that exists with a variant that is not offered: the answer is this error.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(in_prompts_get(probe))),
    },
    Check {
        id: "SV-9/unknown-variant-in-completion",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "If the variant is invalid, the server MUST return a JSON-RPC error: … \"code\": -32602, \"message\": \"Invalid server variant\"",
        does: "Completes an argument of a prompt that exists with a variant that is not offered: the answer is this error.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(in_completion(probe))),
    },
    Check {
        id: "SV-9/requested-variant",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "\"data\": { \"requestedVariant\": \"unknown-variant\", … }",
        does: "Reads a list with a variant that is not offered: `data.requestedVariant` of the error is it.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(requested_variant(probe))),
    },
    Check {
        id: "SV-9/visible-variants-only",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "`data.availableVariants` MUST include only variants visible to the authenticated principal.",
        does: "Reads a list with a variant that is not offered: `data.availableVariants` is absent, or an array of ids that the server offers (or others, if it says that there are more).",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(visible_variants_only(probe))),
    },
    Check {
        id: "SV-9/connection-survives",
        level: Level::Must,
        source: source::SELECTION,
        sentence: "Apply the capability configuration for that variant for this request",
        does: "Reads a list with a variant that is not offered, and then with one that is: the second answer is a result.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(connection_survives(probe))),
    },
];

/// An id that no server offers.
const UNKNOWN: &str = "mcp-vary-conformance-unknown";

const INVALID_PARAMS: i64 = -32602;

/// The error of a request that selects an unknown variant.
async fn refusal(
    client: &Client<'_>,
    method: &str,
    params: Value,
) -> Result<ErrorAnswer, Objection> {
    let answer = client.ask(method, selecting(params, Some(UNKNOWN))).await?;
    answer.into_error(&format!("`{method}` in an unknown variant"))
}

async fn is_refused(client: &Client<'_>, method: &str, params: Value) -> Verdict {
    let error = refusal(client, method, params).await?;
    let is_right = error.code == Some(INVALID_PARAMS) && error.message == "Invalid server variant";
    require(is_right, || {
        format!(
            "`{method}` in an unknown variant was answered with {}",
            error.describe()
        )
    })
}

/// A client to which the server declares `kind`.
async fn connect<'a>(probe: &'a Probe<'_>, kind: &Kind) -> Result<Client<'a>, Objection> {
    let client = probe.connect_with_variants().await?;
    if client.has(kind) {
        Ok(client)
    } else {
        not_applicable(format!("the server does not declare `{}`", kind.capability))
    }
}

/// The refusal by the first list that the server has.
async fn refusal_of_a_list(probe: &Probe<'_>) -> Result<ErrorAnswer, Objection> {
    let client = probe.connect_with_variants().await?;
    let kind = any_kind(&client)?;
    refusal(&client, kind.method, json!({})).await
}

async fn in_list(probe: &Probe<'_>, kind: &Kind) -> Verdict {
    let client = connect(probe, kind).await?;
    is_refused(&client, kind.method, json!({})).await
}

async fn in_tools_call(probe: &Probe<'_>) -> Verdict {
    let params = probe.survey().tool()?.params();
    is_refused(&connect(probe, &TOOLS).await?, "tools/call", params).await
}

async fn in_resources_read(probe: &Probe<'_>) -> Verdict {
    let uri = probe.survey().resource()?;
    is_refused(
        &connect(probe, &RESOURCES).await?,
        "resources/read",
        json!({ "uri": uri }),
    )
    .await
}

async fn in_resources_subscribe(probe: &Probe<'_>) -> Verdict {
    if at(&probe.survey().capabilities, &["resources", "subscribe"]) != Some(&json!(true)) {
        return not_applicable("the server does not declare `resources.subscribe`");
    }
    let uri = probe.survey().resource()?;
    is_refused(
        &connect(probe, &RESOURCES).await?,
        "resources/subscribe",
        json!({ "uri": uri }),
    )
    .await
}

async fn in_prompts_get(probe: &Probe<'_>) -> Verdict {
    let name = probe.survey().prompt()?;
    is_refused(
        &connect(probe, &PROMPTS).await?,
        "prompts/get",
        json!({ "name": name }),
    )
    .await
}

async fn in_completion(probe: &Probe<'_>) -> Verdict {
    if probe.survey().capabilities.get("completions").is_none() {
        return not_applicable("the server does not declare `completions`");
    }
    let name = probe.survey().prompt()?;
    let params = json!({
        "ref": {"type": "ref/prompt", "name": name},
        "argument": {"name": "mcp-vary-conformance", "value": ""},
    });
    is_refused(
        &connect(probe, &PROMPTS).await?,
        "completion/complete",
        params,
    )
    .await
}

async fn requested_variant(probe: &Probe<'_>) -> Verdict {
    let error = refusal_of_a_list(probe).await?;
    let requested = text_at(&error.data, &["requestedVariant"]);
    require(requested == Some(UNKNOWN), || {
        format!("the data of the error is {}", brief(&error.data))
    })
}

async fn visible_variants_only(probe: &Probe<'_>) -> Verdict {
    let error = refusal_of_a_list(probe).await?;
    let Some(available) = error.data.get("availableVariants") else {
        return Ok(());
    };
    let settings = probe.survey().settings(VARIANTS);
    let has_more =
        settings.and_then(|settings| settings.get("moreVariantsAvailable")) == Some(&json!(true));
    let offered = probe.survey().variants();
    let is_visible = |id: &Value| {
        id.as_str()
            .is_some_and(|id| offered.contains(&id) || (has_more && id != UNKNOWN))
    };
    let is_right = available
        .as_array()
        .is_some_and(|ids| ids.iter().all(is_visible));
    require(is_right, || {
        format!("`availableVariants` of the error is {}", brief(available))
    })
}

async fn connection_survives(probe: &Probe<'_>) -> Verdict {
    let client = probe.connect_with_variants().await?;
    let kind = any_kind(&client)?;
    client
        .ask(kind.method, selecting(json!({}), Some(UNKNOWN)))
        .await?;
    let first = super::selection::first(probe)?;
    client
        .result(kind.method, selecting(json!({}), Some(first)))
        .await
        .map(|_| ())
}
