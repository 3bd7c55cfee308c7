//! Content negotiation: how feature tags are read, whom they concern, and what they must not decide.

use serde_json::{Value, json};

use crate::prelude::*;

use super::hints::flags;

#[rustfmt::skip]
pub(crate) const CHECKS: &[Check] = &[
    Check { id: "CN-17/no-features-of-the-server", level: Level::Should, source: source::SETTINGS,
        sentence: "Feature tags declaring client capabilities and preferences (client only). Servers do not include this field.",
        does: "Reads the server's settings: they have no `features`.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Survey(no_features_of_the_server) },
    Check { id: "CN-17/version-is-text", level: Level::Must, source: source::SETTINGS,
        sentence: "version: string;",
        does: "Reads the server's settings: a `version` is a string.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Member(Member {
            extension: Some(NEGOTIATION), path: &["version"], is_right: Value::is_string,
            if_absent: IfAbsent::NotApplicable("the server declares no version"),
        }) },
    Check { id: "CN-7/undeclared-gets-the-default", level: Level::Must, source: source::ADOPTION,
        sentence: "If a server supports this extension but a client does not declare it, the server MUST return default content (identical to pre-negotiation behavior).",
        does: "Calls a tool without the extension, then as an agent that wants JSON, as a human who wants markdown, and again without: first and last are the same.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(undeclared_gets_the_default(probe))) },
    Check { id: "CN-7/undeclared-extension-ignores-tags", level: Level::Must, source: source::ADOPTION,
        sentence: "If a client declares `contentNegotiation` but a server does not support this extension, the server MUST respond with default content (identical to non-negotiating behavior).",
        does: "Calls a tool without the extension, as an agent that wants JSON and as a human who wants markdown, from a server that does not declare it: the results are the same.",
        scope: Scope::NoNegotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(undeclared_extension_ignores_tags(probe))) },
    Check { id: "CN-7/no-features-are-the-default", level: Level::Must, source: source::ADOPTION_AND_TESTING,
        sentence: "If … a client does not declare it, the server MUST return default content … Client features: [] (not declared) … Expected: Server default format (backwards compatible)",
        does: "Calls a tool with `features: []` and without the extension: the results are the same.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(are_the_default(probe, json!([])))) },
    Check { id: "CN-7/unsupported-features-are-the-default", level: Level::Must, source: source::BEHAVIOR,
        sentence: "If a client declares unsupported features, servers MUST respond with default content (same as non-negotiating servers) and MAY log a warning.",
        does: "Calls a tool with tags that nobody knows: the result is that without the extension.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(are_the_default(probe, json!(["x-example-nobody", "example-nobody=1"])))) },
    Check { id: "CN-1/invalid-tags-are-ignored", level: Level::Should, source: source::TESTING,
        sentence: "Client features: [\"@#$%\", \"format==json\"] … Server behavior: Log warning, ignore invalid tags, use defaults",
        does: "Calls a tool with these tags: the result is that without the extension.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(are_the_default(probe, json!(["@#$%", "format==json"])))) },
    Check { id: "CN-1/line-breaks-in-tags", level: Level::Should, source: source::INJECTION,
        sentence: "Invalid tags SHOULD be ignored, not cause error",
        does: "Calls a tool with the tag `format=` and a line break: the result is that without the extension.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(are_the_default(probe, json!(["format=\n"])))) },
    Check { id: "CN-1/valid-beside-invalid", level: Level::Should, source: source::BEHAVIOR,
        sentence: "Invalid syntax SHOULD be logged but not cause error; unknown tags SHOULD be ignored.",
        does: "Calls a tool with valid tags, alone and among invalid and unknown ones: the results are the same.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(valid_beside_invalid(probe))) },
    Check { id: "CN-1/negations-are-accepted", level: Level::Should, source: source::TAGS,
        sentence: "Feature tags support three syntactic forms (inspired by RFC 2295)",
        does: "Calls a tool with `!interactive`, `!mcp-capable` and `format!=xml`: it answers without an error.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(negations_are_accepted(probe))) },
    Check { id: "CN-2/features-of-wrong-types", level: Level::Decision, source: source::DECISION,
        sentence: "`features` that are not an array, or a member that is not a string, are ignored alone.",
        does: "Calls a tool with `features: \"agent\"`, and with numbers among the tags: the result is that without the extension.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(features_of_wrong_types(probe))) },
    Check { id: "CN-2/many-tags", level: Level::Decision, source: source::DECISION,
        sentence: "A server bounds the tags that it reads, and ignores those that are too many.",
        does: "Calls a tool with 200 unknown tags: the result is that without the extension.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(many_tags(probe))) },
    Check { id: "CN-16/tools-do-not-depend-on-tags", level: Level::Must, source: source::BEHAVIOR,
        sentence: "They MUST NOT be used to: Control access to tools/resources (use authorization)",
        does: "Lists tools without the extension, as an agent and as a human, in the same variant: the names are the same.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(do_not_depend_on_tags(probe, &TOOLS))) },
    Check { id: "CN-16/resources-do-not-depend-on-tags", level: Level::Must, source: source::BEHAVIOR,
        sentence: "They MUST NOT be used to: Control access to tools/resources (use authorization)",
        does: "Lists resources without the extension, as an agent and as a human, in the same variant: the URIs are the same.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(do_not_depend_on_tags(probe, &RESOURCES))) },
    Check { id: "CN-16/prompts-do-not-depend-on-tags", level: Level::Decision, source: source::DECISION,
        sentence: "Whatever the tags, the same prompts can be reached. (The document names tools and resources.)",
        does: "Lists prompts without the extension, as an agent and as a human, in the same variant: the names are the same.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(do_not_depend_on_tags(probe, &PROMPTS))) },
    Check { id: "CN-16/capabilities-do-not-depend-on-tags", level: Level::Must, source: source::BEHAVIOR,
        sentence: "Feature tags are for content shaping only. They MUST NOT be used to: Control access to tools/resources (use authorization)",
        does: "Connects with the extension and no tags, as an agent and as a human: capabilities other than extensions are the same.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(capabilities_do_not_depend_on_tags(probe))) },
    Check { id: "CN-18/tags-last-for-the-session", level: Level::Should, source: source::DESIGN,
        sentence: "MCP's capability system is session-scoped: declared once at `initialize`, then unchanged for the session.",
        does: "Calls a tool twice in a session that declared `agent` and `format=json`: the results are the same.",
        scope: Scope::Negotiation, eras: LEGACY, test: Test::Server(|probe| Box::pin(tags_last_for_the_session(probe))) },
    Check { id: "EXT-7/unknown-versions-are-the-default", level: Level::Decision, source: source::DECISION,
        sentence: "Settings of another major version count as undeclared.",
        does: "Calls a tool with version `99.0` and tags: the result is that without the extension.",
        scope: Scope::Negotiation, eras: BOTH, test: Test::Server(|probe| Box::pin(unknown_versions_are_the_default(probe))) },
];

/// What negotiation may change of a result: that of a call, or the contents of a resource or the messages of a prompt.
pub(super) fn body(result: &Value) -> Value {
    let member = |name| result.get(name).cloned();
    json!({
        "content": member("content").or(member("contents")).or(member("messages")),
        "structuredContent": member("structuredContent"),
        "isError": member("isError").filter(|value| value != &Value::Bool(false)),
    })
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
    let is_right = result.get("isError") == Some(&Value::Null);
    let finding = "the tool failed:";
    requires(is_right, finding, &result)
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
