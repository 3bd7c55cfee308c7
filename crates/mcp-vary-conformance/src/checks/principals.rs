//! Server variants: what another principal sees, and this one must not.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::prelude::*;

pub(crate) const TEXTS: &str = include_str!("principals.json");

#[rustfmt::skip]
pub(crate) const TESTS: &[(&str, Test)] = &[
    ("SV-20/variants-of-another-are-refused", server!(variants_of_another_are_refused)),
    ("SV-20/variants-open-no-tools", server!(variants_open_no_tools)),
];

async fn variants_of_another_are_refused(probe: &Probe<'_>) -> Verdict {
    let (client, other) = both(probe).await?;
    let visible = client.variants();
    let Some(foreign) = other
        .variants()
        .into_iter()
        .find(|id| !visible.contains(id))
    else {
        return not_applicable("both principals are offered the same variants");
    };
    let more = ["extensions", VARIANTS, "moreVariantsAvailable"];
    if at(&client.capabilities, &more) == Some(&json!(true)) {
        return not_applicable("the server says that it has more variants than it offers");
    }
    let method = client.any_list()?.list_method;
    let params = selecting(json!({}), Some(foreign));
    let answer = client.ask(method, params).await?;
    let error = answer.into_error(&format!("{foreign:?}, of another principal,"))?;
    let names_foreign = array_at(&error.data, &["availableVariants"]).contains(&foreign.into());
    let is_right = error.message == "Invalid server variant" && !names_foreign;
    error.unless(is_right, &format!("{foreign:?}, of another principal,"))
}

async fn variants_open_no_tools(probe: &Probe<'_>) -> Verdict {
    let (client, other) = both(probe).await?;
    let visible: BTreeSet<String> = tools(&client).await?.iter().filter_map(name).collect();
    let listed = tools(&other).await?;
    let foreign = listed
        .iter()
        .filter(|tool| name(tool).is_some_and(|name| !visible.contains(&name)));
    let mut calls = foreign.filter_map(|tool| probe.survey().params_of(tool));
    let Some(params) = calls.next() else {
        return not_applicable(
            "both principals are listed the same tools, as far as a check may call them",
        );
    };
    for variant in client.variants() {
        let request = selecting(params.clone(), Some(variant));
        let answer = client.ask(TOOLS.item_method, request).await?;
        let tool = brief(&json!(params.get("name")));
        let request = format!("{tool} of another principal");
        answer.unless(answer.is_refusal(), &request)?;
    }
    Ok(())
}

/// A client of the run's principal, and one of the other.
async fn both<'a>(probe: &'a Probe<'_>) -> Result<(Client<'a>, Client<'a>), Objection> {
    let client = probe.connect_with_variants().await?;
    Ok((client, probe.connect_other(json!({ VARIANTS: {} })).await?))
}

fn name(tool: &Value) -> Option<String> {
    text_at(tool, &["name"]).map(str::to_owned)
}

/// The tools of all variants that `client` is offered.
async fn tools(client: &Client<'_>) -> Result<Vec<Value>, Objection> {
    let mut tools = Vec::new();
    for variant in client.variants() {
        match client.list(&TOOLS, Some(variant)).await {
            Ok(list) => tools.extend(list),
            // `SV-8` objects to that.
            Err(Objection::Violation(_)) => {}
            Err(objection) => return Err(objection),
        }
    }
    Ok(tools)
}
