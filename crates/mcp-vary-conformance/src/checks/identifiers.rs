//! Server variants: names and URIs belong to a variant, and so do subscriptions.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::prelude::*;

pub(crate) const TEXTS: &str = include_str!("identifiers.json");

#[rustfmt::skip]
pub(crate) const TESTS: &[(&str, Test)] = &[
    ("SV-12/unknown-tool-names-the-variant", server!(unknown_names_the_variant, &TOOLS)),
    ("SV-12/unknown-resource-names-the-variant", server!(unknown_names_the_variant, &RESOURCES)),
    ("SV-12/unknown-prompt-names-the-variant", server!(unknown_names_the_variant, &PROMPTS)),
    ("SV-12/tools-of-another-variant", server!(tools_of_another_variant)),
    ("SV-12/resources-of-another-variant", server!(items_of_another_variant, &RESOURCES)),
    ("SV-12/prompts-of-another-variant", server!(items_of_another_variant, &PROMPTS)),
    ("SV-12/completions-of-another-variant", server!(completions_of_another_variant)),
    ("SV-14/subscribe-to-unknown", server!(subscribe_to_unknown)),
    ("SV-14/unsubscribe-is-accepted", server!(unsubscribe_is_accepted)),
];

async fn unknown_names_the_variant(probe: &Probe<'_>, kind: &ListKind) -> Verdict {
    let client = probe.connect_with_list(kind).await?;
    let first = client.first_variant()?;
    for variant in [probe.survey().variants().last().copied(), None] {
        let params = selecting(json!({kind.key: kind.unknown_item}), variant);
        let answer = client.ask(kind.item_method, params).await?;
        let error = answer.into_error(&format!("`{}` of an unknown name", kind.item_method))?;
        let active = text_at(&error.data, &["activeVariant"]);
        let expected = variant.unwrap_or(first);
        ensure!(
            active == Some(expected),
            "`activeVariant` is not {expected:?}: {}",
            error.describe()
        );
    }
    Ok(())
}

/// An item that one variant lists, and a variant that does not.
struct HiddenItem {
    item: Value,
    variant: String,
}

impl HiddenItem {
    /// Finds an item that `is_usable`.
    async fn find(
        client: &Client<'_>,
        kind: &ListKind,
        variants: &[&str],
        is_usable: impl Fn(&Value) -> bool,
    ) -> Result<Self, Objection> {
        let mut lists = Vec::new();
        for variant in variants {
            match client.list(kind, Some(variant)).await {
                Ok(list) => lists.push((list, *variant)),
                // `SV-8` objects to that.
                Err(Objection::Violation(_)) => {}
                Err(objection) => return Err(objection),
            }
        }
        let items = lists.iter().flat_map(|(list, _)| list);
        for item in items.filter(|item| is_usable(item)) {
            let is_item = |other: &Value| other.get(kind.key) == item.get(kind.key);
            let mut others = lists.iter();
            if let Some((_, variant)) = others.find(|(list, _)| !list.iter().any(is_item)) {
                let (item, variant) = (item.clone(), (*variant).to_owned());
                return Ok(Self { item, variant });
            }
        }
        let method = kind.list_method;
        not_applicable(format!(
            "all variants list the same in `{method}`, as far as a check may use it"
        ))
    }

    /// Objects unless a request for the item in the variant is refused.
    async fn is_refused(&self, client: &Client<'_>, method: &str, params: Value) -> Verdict {
        let variant = &self.variant;
        let answer = client.ask(method, selecting(params, Some(variant))).await?;
        let request = format!("`{method}` in {variant:?}, which does not list it,");
        answer.unless(answer.is_refusal(), &request)
    }
}

async fn tools_of_another_variant(probe: &Probe<'_>) -> Verdict {
    let client = probe.connect_with_list(&TOOLS).await?;
    let params_of = |tool: &Value| probe.survey().params_of(tool);
    let is_usable = |tool: &Value| params_of(tool).is_some();
    let variants = probe.survey().variants();
    let hidden = HiddenItem::find(&client, &TOOLS, &variants, is_usable).await?;
    let Some(params) = params_of(&hidden.item) else {
        return not_applicable("no tool that changes nothing");
    };
    hidden.is_refused(&client, TOOLS.item_method, params).await
}

/// An item that one variant lists, whatever it is, and a variant that does not.
async fn hidden_item(
    probe: &Probe<'_>,
    client: &Client<'_>,
    kind: &ListKind,
) -> Result<HiddenItem, Objection> {
    if kind.name == RESOURCES.name {
        let templates = client.ask("resources/templates/list", json!({})).await?;
        if let Answer::Result(page) = templates
            && !array_at(&page, &["resourceTemplates"]).is_empty()
        {
            return not_applicable("the server has resource templates, which may match the URI");
        }
    }
    HiddenItem::find(client, kind, &probe.survey().variants(), |_| true).await
}

async fn items_of_another_variant(probe: &Probe<'_>, kind: &ListKind) -> Verdict {
    let client = probe.connect_with_list(kind).await?;
    let hidden = hidden_item(probe, &client, kind).await?;
    let params = json!({kind.key: hidden.item.get(kind.key)});
    hidden.is_refused(&client, kind.item_method, params).await
}

/// The parameters of a completion of an argument of a prompt.
pub(super) fn completion(prompt: &Value, argument: Option<&Value>) -> Value {
    let given = argument.and_then(|argument| text_at(argument, &["name"]));
    let name = given.unwrap_or("mcp-vary-conformance");
    json!({
        "ref": {"type": "ref/prompt", "name": prompt},
        "argument": {"name": name, "value": ""},
    })
}

async fn completions_of_another_variant(probe: &Probe<'_>) -> Verdict {
    const METHOD: &str = "completion/complete";
    const UNKNOWN_METHOD: Option<i64> = Some(-32601);
    let client = probe.connect_with_list(&PROMPTS).await?;
    let hidden = hidden_item(probe, &client, &PROMPTS).await?;
    let argument = array_at(&hidden.item, &["arguments"]).first();
    let complete = |prompt: Option<&str>| {
        let params = completion(&json!(prompt), argument);
        client.ask(METHOD, selecting(params, Some(&hidden.variant)))
    };
    let of_unknown = complete(Some(PROMPTS.unknown_item)).await?;
    if matches!(&of_unknown, Answer::Error(error) if error.code == UNKNOWN_METHOD) {
        return not_applicable("the server completes nothing");
    }
    let found = complete(text_at(&hidden.item, &["name"])).await?;
    // Some servers complete nothing of what does not exist, instead of an error.
    let is_empty = |it: &Answer| matches!(it, Answer::Result(it) if array_at(it, &["completion", "values"]).is_empty());
    let variant = &hidden.variant;
    let is_right = found.is_refusal() || (is_empty(&of_unknown) && is_empty(&found));
    let request = format!("`{METHOD}` of a prompt that {variant:?} does not list");
    found.unless(is_right, &request)
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
    is_subscription_refused(&client, &RESOURCES.unknown_item.into(), variant).await?;
    match hidden_item(probe, &client, &RESOURCES).await {
        Ok(HiddenItem { item, variant }) => {
            let uri = item.get("uri").unwrap_or(&Value::Null);
            is_subscription_refused(&client, uri, Some(&variant)).await
        }
        Err(_) => Ok(()),
    }
}

async fn is_subscription_refused(
    client: &Client<'_>,
    uri: &Value,
    variant: Option<&str>,
) -> Verdict {
    let params = selecting(json!({ "uri": uri }), variant);
    let answer = client.ask("resources/subscribe", params).await?;
    let error = answer.into_error(&format!("a subscription to {uri} in {}", json!(variant)))?;
    let is_right =
        error.code == Some(-32602) && text_at(&error.data, &["activeVariant"]) == variant;
    ensure!(
        is_right,
        "the error is not -32602 with `activeVariant` {}: {}",
        brief(&json!(variant)),
        error.describe()
    );
    Ok(())
}

async fn unsubscribe_is_accepted(probe: &Probe<'_>) -> Verdict {
    let client = connect_for_subscriptions(probe).await?;
    let params = probe.survey().item_params(&RESOURCES)?;
    client.result("resources/subscribe", params.clone()).await?;
    client.result("resources/unsubscribe", params).await?;
    Ok(())
}
