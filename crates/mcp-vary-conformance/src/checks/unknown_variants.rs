//! Server variants: requests that select a variant that does not exist.

use serde_json::{Value, json};

use crate::answer::ErrorAnswer;
use crate::prelude::*;

use super::identifiers::completion;

pub(crate) const TEXTS: &str = include_str!("unknown_variants.json");

#[rustfmt::skip]
pub(crate) const TESTS: &[(&str, Test)] = &[
    ("SV-9/unknown-variant-in-tools-list", server!(in_list, &TOOLS)),
    ("SV-9/unknown-variant-in-tools-call", server!(in_item_request, &TOOLS)),
    ("SV-9/unknown-variant-in-resources-list", server!(in_list, &RESOURCES)),
    ("SV-9/unknown-variant-in-resources-read", server!(in_item_request, &RESOURCES)),
    ("SV-9/unknown-variant-in-resources-subscribe", server!(in_resources_subscribe)),
    ("SV-9/unknown-variant-in-prompts-list", server!(in_list, &PROMPTS)),
    ("SV-9/unknown-variant-in-prompts-get", server!(in_item_request, &PROMPTS)),
    ("SV-9/unknown-variant-in-completion", server!(in_completion)),
    ("SV-9/requested-variant", server!(requested_variant)),
    ("SV-9/visible-variants-only", server!(visible_variants_only)),
    ("SV-9/connection-survives", server!(connection_survives)),
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
    error.unless(is_right, &format!("`{method}` in an unknown variant"))
}

/// The refusal by the first list that the server has.
async fn refusal_of_a_list(probe: &Probe<'_>) -> Result<ErrorAnswer, Objection> {
    let client = probe.connect_with_variants().await?;
    refusal(&client, client.any_list()?.list_method, json!({})).await
}

async fn in_list(probe: &Probe<'_>, kind: &ListKind) -> Verdict {
    let client = probe.connect_with_list(kind).await?;
    is_refused(&client, kind.list_method, json!({})).await
}

async fn in_item_request(probe: &Probe<'_>, kind: &ListKind) -> Verdict {
    let params = probe.survey().item_params(kind)?;
    let client = probe.connect_with_list(kind).await?;
    is_refused(&client, kind.item_method, params).await
}

async fn in_resources_subscribe(probe: &Probe<'_>) -> Verdict {
    let params = probe.survey().subscription_params()?;
    let client = probe.connect_with_list(&RESOURCES).await?;
    is_refused(&client, "resources/subscribe", params).await
}

async fn in_completion(probe: &Probe<'_>) -> Verdict {
    if probe.survey().capabilities.get("completions").is_none() {
        return not_applicable("the server does not declare `completions`");
    }
    let prompt = probe.survey().item_params(&PROMPTS)?;
    let params = completion(&json!(prompt.get("name")), None);
    let client = probe.connect_with_list(&PROMPTS).await?;
    is_refused(&client, "completion/complete", params).await
}

async fn requested_variant(probe: &Probe<'_>) -> Verdict {
    let error = refusal_of_a_list(probe).await?;
    let requested = text_at(&error.data, &["requestedVariant"]);
    let finding = "the data of the error is";
    requires(requested == Some(UNKNOWN), finding, &error.data)
}

async fn visible_variants_only(probe: &Probe<'_>) -> Verdict {
    let error = refusal_of_a_list(probe).await?;
    let Some(available) = error.data.get("availableVariants") else {
        return Ok(());
    };
    let has_more = probe.survey().has_more_variants();
    let offered = probe.survey().variants();
    let is_visible = |id: &Value| {
        id.as_str()
            .is_some_and(|id| offered.contains(&id) || (has_more && id != UNKNOWN))
    };
    let ids = available.as_array();
    let is_right = ids.is_some_and(|ids| ids.iter().all(is_visible));
    let finding = "`availableVariants` of the error is";
    requires(is_right, finding, available)
}

async fn connection_survives(probe: &Probe<'_>) -> Verdict {
    let client = probe.connect_with_variants().await?;
    let method = client.any_list()?.list_method;
    let params = |variant| selecting(json!({}), Some(variant));
    client.ask(method, params(UNKNOWN)).await?;
    let first = probe.survey().first_variant()?;
    client.result(method, params(first)).await.map(|_| ())
}
