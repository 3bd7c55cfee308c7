//! Content negotiation: how feature tags are read, whom they concern, and what they must not decide.

use serde_json::{Value, json};

use crate::prelude::*;

use super::hints::flags;

pub(crate) const TEXTS: &str = include_str!("features.json");

#[rustfmt::skip]
pub(crate) const TESTS: &[(&str, Test)] = &[
    ("CN-17/no-features-of-the-server", Test::Survey(no_features_of_the_server)),
    ("CN-17/version-is-text",
        Test::Member(Member::of(Some(NEGOTIATION), &["version"], Value::is_string)
            .or(IfAbsent::NotApplicable("the server declares no version")))),
    ("CN-7/undeclared-gets-the-default", server!(undeclared_gets_the_default)),
    ("CN-7/undeclared-extension-ignores-tags", server!(undeclared_extension_ignores_tags)),
    ("CN-7/no-features-are-the-default", server!(are_the_default, json!([]))),
    ("CN-7/unsupported-features-are-the-default",
        server!(are_the_default, json!(["x-example-nobody", "example-nobody=1"]))),
    ("CN-7/unknown-values-are-the-default", server!(unknown_values_are_the_default)),
    ("CN-1/invalid-tags-are-ignored", server!(are_the_default, json!(["@#$%", "format==json"]))),
    ("CN-1/line-breaks-in-tags", server!(are_the_default, json!(["format=\n"]))),
    ("CN-1/valid-beside-invalid", server!(valid_beside_invalid)),
    ("CN-1/negations-are-accepted", server!(negations_are_accepted)),
    ("CN-2/features-of-wrong-types", server!(features_of_wrong_types)),
    ("CN-2/many-tags", server!(many_tags)),
    ("CN-16/tools-do-not-depend-on-tags", server!(do_not_depend_on_tags, &TOOLS)),
    ("CN-16/resources-do-not-depend-on-tags", server!(do_not_depend_on_tags, &RESOURCES)),
    ("CN-16/prompts-do-not-depend-on-tags", server!(do_not_depend_on_tags, &PROMPTS)),
    ("CN-16/capabilities-do-not-depend-on-tags", server!(capabilities_do_not_depend_on_tags)),
    ("CN-18/tags-last-for-the-session", server!(tags_last_for_the_session)),
    ("EXT-7/unknown-versions-are-the-default", server!(unknown_versions_are_the_default)),
];

/// What negotiation may change of a result: that of a call, or the contents of a resource or the messages of a prompt.
pub(super) fn body(result: &Value) -> Value {
    const SHAPED: [&str; 5] = [
        "content",
        "contents",
        "messages",
        "structuredContent",
        "isError",
    ];
    let mut body = result.as_object().cloned().unwrap_or_default();
    body.retain(|name, value| {
        let says_nothing = value.is_null() || *value == Value::Bool(false);
        SHAPED.contains(&&**name) && !says_nothing
    });
    body.into()
}

/// The result of the survey's request for `client`.
pub(super) async fn call(client: &Client<'_>, probe: &Probe<'_>) -> Result<Value, Objection> {
    let (method, params) = probe.survey().shaped_request()?;
    client.result(method, params).await
}

/// The result without the extension. It does not apply to tools that answer differently each time.
async fn default_body(probe: &Probe<'_>) -> Result<Value, Objection> {
    let client = probe.connect(json!({})).await?;
    let first = body(&call(&client, probe).await?);
    if body(&call(&client, probe).await?) == first {
        Ok(first)
    } else {
        not_applicable("the same request is answered differently each time")
    }
}

pub(super) async fn with_features(probe: &Probe<'_>, features: Value) -> Result<Value, Objection> {
    let client = probe.connect_with_features(features).await?;
    Ok(body(&call(&client, probe).await?))
}

fn same(found: &Value, expected: &Value) -> Verdict {
    ensure!(
        found == expected,
        "the result is {}, instead of {}",
        brief(found),
        brief(expected)
    );
    Ok(())
}

fn no_features_of_the_server(survey: &Survey) -> Verdict {
    let settings = survey.settings(NEGOTIATION);
    let features = settings.and_then(|settings| settings.get("features"));
    let finding = "the server's settings have `features`:";
    requires(features.is_none(), finding, &json!(features))
}

async fn undeclared_gets_the_default(probe: &Probe<'_>) -> Verdict {
    let default = default_body(probe).await?;
    with_features(probe, json!(["agent", "format=json"])).await?;
    with_features(probe, json!(["human", "format=markdown"])).await?;
    let client = probe.connect(json!({})).await?;
    same(&body(&call(&client, probe).await?), &default)
}

async fn undeclared_extension_ignores_tags(probe: &Probe<'_>) -> Verdict {
    are_the_default(probe, json!(["agent", "format=json"])).await?;
    are_the_default(probe, json!(["human", "format=markdown"])).await
}

async fn are_the_default(probe: &Probe<'_>, features: Value) -> Verdict {
    let default = default_body(probe).await?;
    same(&with_features(probe, features).await?, &default)
}

async fn unknown_values_are_the_default(probe: &Probe<'_>) -> Verdict {
    are_the_default(probe, json!(["format=nobody", "verbosity=nobody"])).await?;
    // Some server may have this format.
    let result = with_features(probe, json!(["format=yaml"])).await?;
    let is_empty = |it: &Value| it.as_array().is_some_and(Vec::is_empty);
    let mut members = object_at(&result, &[]).into_iter().flatten();
    if members.all(|(_, value)| is_empty(value)) {
        return same(&result, &default_body(probe).await?);
    }
    Ok(())
}

async fn valid_beside_invalid(probe: &Probe<'_>) -> Verdict {
    default_body(probe).await?;
    let expected = with_features(probe, json!(["human", "format=markdown"])).await?;
    let among = [
        "@#$%",
        "human",
        "format==text",
        "=",
        "",
        "x-example-nobody",
        "format=markdown",
    ];
    same(&with_features(probe, json!(among)).await?, &expected)
}

async fn negations_are_accepted(probe: &Probe<'_>) -> Verdict {
    let features = json!(["!interactive", "!mcp-capable", "format!=xml"]);
    let result = with_features(probe, features).await?;
    let is_right = result.get("isError").is_none();
    requires(is_right, "the tool failed:", &result)
}

async fn features_of_wrong_types(probe: &Probe<'_>) -> Verdict {
    let default = default_body(probe).await?;
    for features in [json!("agent"), json!([7, null, ["agent"]])] {
        same(&with_features(probe, features).await?, &default)?;
    }
    Ok(())
}

async fn many_tags(probe: &Probe<'_>) -> Verdict {
    let tags = (0..200).map(|number| format!("x-example-{number}").into());
    are_the_default(probe, Value::Array(tags.collect())).await
}

async fn do_not_depend_on_tags(probe: &Probe<'_>, kind: &ListKind) -> Verdict {
    let client = probe.connect_with_list(kind).await?;
    // Sessions may get different default variants.
    let variant = probe.survey().variants().first().copied();
    let expected = client.keys(kind, variant).await?;
    let agent = "agent !interactive mcp-capable sampling format=json verbosity=compact";
    let human = "human interactive !mcp-capable !sampling format=markdown";
    for tags in [agent, human].map(|tags| json!(tags.split(' ').collect::<Vec<_>>())) {
        let settings = json!({"version": "1.0", "features": tags});
        let both = json!({NEGOTIATION: settings, VARIANTS: {}});
        let client = probe.connect(both).await?;
        let keys = client.keys(kind, variant).await?;
        ensure!(
            keys == expected,
            "with {tags}, the list is {}, instead of {}",
            brief(&json!(keys)),
            brief(&json!(expected))
        );
    }
    Ok(())
}

async fn capabilities_do_not_depend_on_tags(probe: &Probe<'_>) -> Verdict {
    let expected = flags(&probe.connect_with_features(json!([])).await?.capabilities);
    for tags in [
        json!(["agent", "format=json", "verbosity=compact"]),
        json!(["human", "format=markdown", "verbosity=verbose"]),
    ] {
        let client = probe.connect_with_features(tags.clone()).await?;
        ensure!(
            flags(&client.capabilities) == expected,
            "with {tags}, the capabilities are {}",
            brief(&client.capabilities)
        );
    }
    Ok(())
}

async fn tags_last_for_the_session(probe: &Probe<'_>) -> Verdict {
    default_body(probe).await?;
    // In another order than other checks have them: those with the same capabilities share sessions on stdio.
    let client = probe
        .connect_with_features(json!(["format=json", "agent"]))
        .await?;
    let first = body(&call(&client, probe).await?);
    same(&body(&call(&client, probe).await?), &first)
}

async fn unknown_versions_are_the_default(probe: &Probe<'_>) -> Verdict {
    let default = default_body(probe).await?;
    let settings = json!({"version": "99.0", "features": ["human", "format=markdown"]});
    let client = probe.connect(json!({ NEGOTIATION: settings })).await?;
    same(&body(&call(&client, probe).await?), &default)
}
