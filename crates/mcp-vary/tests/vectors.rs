//! The language-neutral cases in `spec/vectors`, run against this library.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod view_cases;

use std::collections::BTreeSet;
use std::path::Path;

use mcp_vary::cursor::{CursorBinding, CursorKeys, open, seal};
use mcp_vary::error::{Era, Error, ErrorObject, Identifier, with_active_variant};
use mcp_vary::extension::{
    CONTENT_NEGOTIATION, Carrier, Declared, EXTENSIONS, ExtensionId, declared, strip_meta,
};
use mcp_vary::feature::{FeatureTag, Features, Form, Format, Presence};
use mcp_vary::hints::VariantHints;
use mcp_vary::json::Json;
use mcp_vary::predicate::{Alternatives, Predicate};
use mcp_vary::rank::{DEFAULT_ADVERTISED, Weight, Weights, rank};
use mcp_vary::render::{
    Compact, Contract, Limits, Part, compact, compact_columns, compact_markdown,
    compact_structured, compact_text, read,
};
use mcp_vary::shape::{
    Answer, Bounds, Compaction, Policy, PromptAlternative, Rendering, Report, Representation,
    Representations, Shaped, ToolFacts, Whole, compact_tool_result, prompt_result, resource_result,
    tool_result,
};
use mcp_vary::state::{self, Parameters, StateError};
use mcp_vary::variant::{ServerVariant, VariantDiagnostic, VariantId, Variants, Warning};
use mcp_vary::visibility::{Experience, Forward, forward};
use mcp_vary_testkit::defaults::default_with;
use serde::Deserialize;
use serde_json::{Value, json};

use view_cases as view;

/// A file of cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vectors {
    about: String,
    cases: Vec<Case>,
}

/// One case of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    requirement: String,
    name: String,
    input: Value,
    expected: Value,
}

/// Compares what `actual` makes of every input in `file` with what is expected.
#[track_caller]
fn holds(file: &str, actual: impl Fn(&Value) -> Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/vectors");
    let text = std::fs::read_to_string(path.join(file)).expect("the file is there");
    let Vectors { about, cases } = serde_json::from_str(&text).expect("the file holds cases");
    assert!(!about.is_empty(), "{file} does not say what it is about");
    assert!(!cases.is_empty(), "{file} holds no case");
    let mut names = BTreeSet::new();
    let mut wrong = Vec::new();
    for case in &cases {
        assert!(names.insert(&case.name), "{file}: two are {:?}", case.name);
        let actual = actual(&case.input);
        if actual != case.expected {
            let (id, name) = (&case.requirement, &case.name);
            let expected = &case.expected;
            wrong.push(format!("{id} {name}:\n  is  {actual}\n  not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{file}:\n{}", wrong.join("\n"));
}

/// EXT-1: the identifier of an extension.
#[test]
fn identifiers() {
    holds("identifiers.json", |input| {
        let Ok(id) = string(input).parse::<ExtensionId>() else {
            return json!("invalid");
        };
        json!({"prefix": id.prefix(), "name": id.name(), "reserved": id.is_reserved()})
    });
}

/// SV-11: what a view makes of items and calls.
#[test]
fn views() {
    holds("views.json", |input| match string(&input["form"]) {
        "selection" => view::selected(input),
        "name" => view::dialect(&input["dialect"])
            .name(string(&input["name"]))
            .into(),
        "tool" => view::tool(input),
        "prompt" => view::prompt(input),
        other => unreachable!("{other} is no form"),
    });
}

/// TR-1: which field is for whom.
#[test]
fn visibility() {
    holds("visibility.json", |input| {
        let result = input["result"].to_string();
        let experience = match string(&input["experience"]) {
            "conversation" => Experience::Conversation,
            "program" => Experience::Program,
            "user-interface" => Experience::UserInterface,
            other => unreachable!("{other} is no experience"),
        };
        let value = |json: &str| serde_json::from_str::<Value>(json).unwrap();
        let all = |blocks: Vec<&str>| blocks.into_iter().map(value).collect::<Value>();
        match forward(&result, experience).unwrap() {
            Forward::Content(blocks) => json!({"content": all(blocks)}),
            Forward::Structured { value: v, others } => {
                json!({"structuredContent": value(v), "others": all(others)})
            }
            Forward::Nothing => Value::Null,
        }
    });
}

/// CN-7, CN-8, CN-15, CN-19: a resource in the representation that a client asked for.
#[test]
fn resources() {
    holds("resources.json", |input| {
        let mut representations = Representations::default();
        for one in input["by_format"].as_array().into_iter().flatten() {
            representations = representations.with(representation(one)).unwrap();
        }
        for pair in input["under"].as_array().into_iter().flatten() {
            let condition = string(&pair[0]).parse().unwrap();
            representations = representations.with_under(condition, representation(&pair[1]));
        }
        let of = |uri: &str| (uri == "map://valley").then_some(&representations);
        shaped(resource_result(
            &input["result"].to_string(),
            &features(&input["features"]),
            of,
            report(input),
        ))
    });
}

/// CN-7, CN-8, CN-15, CN-19: a prompt in the words that are meant for a client.
#[test]
fn prompts() {
    holds("prompts.json", |input| {
        if let Some(prompt) = input.get("prompt") {
            let Ok(prompt) = PromptAlternative::from_json(&prompt.to_string()) else {
                return json!("invalid");
            };
            return serde_json::from_str(&prompt.to_json()).unwrap();
        }
        let alternatives = input["alternatives"].as_array().into_iter().flatten();
        let alternative = |pair: &Value| {
            let prompt = PromptAlternative::from_json(&pair[1].to_string());
            (string(&pair[0]).parse().unwrap(), prompt.unwrap())
        };
        shaped(prompt_result(
            &input["result"].to_string(),
            &features(&input["features"]),
            &alternatives.map(alternative).collect::<Vec<_>>(),
            report(input),
        ))
    });
}

/// CN-7 to CN-10, CN-12, CN-14, CN-19, CN-20, TR-3, TR-5: an author's answer, for each client.
#[test]
fn answers() {
    holds("answers.json", |input| {
        let flag = |name: &str| input["policy"][name] == json!(true);
        let policy = Policy {
            always_both: flag("always_both"),
            non_object_structured: flag("non_object_structured"),
            report: flag("report"),
            variant: input["policy"]["variant"].as_str(),
            ..Policy::default()
        };
        let output_schema = input["tool"].get("output_schema");
        let tool = ToolFacts {
            output_schema: output_schema.is_some(),
            ui: input["tool"]["ui"] == json!(true),
        };
        let features = features(&input["features"]);
        let result = answer(&input["answer"]).to_result(&features, tool, output_schema, &policy);
        serde_json::from_str(&result).unwrap()
    });
}

/// CN-13, TR-4: a value in fewer words, and what of it was left out.
#[test]
fn compaction() {
    holds("compaction.json", |input| {
        let limits = limits(input);
        if input["form"] == "result" {
            return compact_result(input, limits);
        }
        let written = input["value"].to_string();
        let value = Json::parse(&written).unwrap();
        if input["form"] == "read" {
            let part = Part::parse(string(&input["query"]));
            return match part.and_then(|part| read(&value, &part)) {
                Ok(page) => {
                    let value: Value = serde_json::from_str(&page.value.to_json()).unwrap();
                    json!({"value": value, "offset": page.offset, "total": page.total, "next": page.next})
                }
                Err(error) => error.to_string().into(),
            };
        }
        if let form @ ("markdown" | "text") = string(&input["form"]) {
            let (text, left_out) = match form {
                "text" => compact_text(&value, &limits),
                _ => compact_markdown(&value, &limits),
            };
            let left_out: Value = left_out.iter().map(ToString::to_string).collect();
            return json!({"value": text, "left_out": left_out});
        }
        let short = match string(&input["form"]) {
            "same" => Some(compact(&value, &limits)),
            "columns" => Some(compact_columns(&value, &limits)),
            "structured" => structured(input, &value, &limits),
            other => unreachable!("{other} is no form"),
        };
        let Some(short) = short else {
            return Value::Null;
        };
        let value: Value = serde_json::from_str(&short.value.to_json()).unwrap();
        let left_out: Value = short.left_out.iter().map(ToString::to_string).collect();
        json!({"value": value, "left_out": left_out})
    });
}

/// The limits that a vector names; the default ones otherwise.
fn limits(input: &Value) -> Limits {
    let mut limits = if input["terse"] == json!(false) {
        Limits::none()
    } else {
        Limits::default()
    };
    for (name, limit) in input["limits"].as_object().into_iter().flatten() {
        let limit = usize::try_from(limit.as_u64().unwrap()).unwrap();
        limits = match name.as_str() {
            "rows" => limits.with_rows(limit),
            "detailed" => limits.with_detailed(limit),
            "elements" => limits.with_elements(limit),
            "text" => limits.with_text(limit),
            "detailed_bytes" => limits.with_detailed_bytes(limit),
            "passage" => limits.with_passage(limit),
            "prose" => limits.with_prose(limit),
            "members" => limits.with_members(limit),
            "depth" => limits.with_depth(limit),
            "bytes" => limits.with_bytes(limit),
            other => panic!("the vector names an unknown limit: {other}"),
        };
    }
    limits
}

/// The value in the form of its output schema.
fn structured<'a>(input: &Value, value: &Json<'a>, limits: &Limits) -> Option<Compact<'a>> {
    let schema = input.get("schema");
    let checked = schema.filter(|_| input["validated"] == json!(true));
    let validator = checked.map(|schema| jsonschema::validator_for(schema).unwrap());
    let accepts = |value: &Value| validator.as_ref().unwrap().is_valid(value);
    let contract = match schema {
        Some(schema) if validator.is_some() => Contract::of(schema).accepted_by(&accepts),
        Some(schema) => Contract::of(schema),
        None => Contract::default(),
    };
    compact_structured(value, &contract, limits, input["whole"].as_str())
}

fn compact_result(input: &Value, limits: Limits) -> Value {
    let whole = input["whole"].as_str().map(|uri| Whole {
        uri,
        is_linked: input["linked"] != json!(false),
    });
    let tool = ToolFacts {
        output_schema: input.get("schema").is_some(),
        ui: input["ui"] == json!(true),
    };
    let policy = default_with::<Policy<'_>>(|it| it.report = input["report"] == json!(true));
    let bound = |name: &str| usize::try_from(input["bounds"][name].as_u64()?).ok();
    let compaction = Compaction {
        limits,
        bounds: Bounds {
            elements: bound("elements"),
            depth: bound("depth"),
            tokens: bound("tokens"),
        },
        contract: input
            .get("schema")
            .map_or(Contract::default(), Contract::of),
        whole,
        reader: input["reader"].as_str(),
        custom_text: None,
    };
    let result = input["result"].to_string();
    let features = features(&input["features"]);
    let plain = tool_result(&result, &features, tool, &policy);
    let short = compact_tool_result(&result, &features, tool, &policy, &compaction);
    assert_eq!(short.left_out.is_empty(), short.whole.is_none());
    assert_eq!(short.shaped != plain, short.is_shorter);
    if short.shaped == plain {
        assert!(short.left_out.is_empty());
        return Value::Null;
    }
    shaped(short.shaped)
}

fn answer(value: &Value) -> Answer {
    let mut answer = Answer::new(&value["value"]).unwrap();
    if let Some(markdown) = value["markdown"].as_str() {
        answer = answer.with_markdown(markdown);
    }
    if let Some(text) = value["text"].as_str() {
        answer = answer.with_text(text);
    }
    if let Some(property) = value["hints_under"].as_str() {
        answer = answer.with_hints_under(property);
    }
    if let Some(uri) = value["whole"].as_str() {
        answer = answer.with_whole(uri);
    }
    for hint in strings(&value["hints"]) {
        answer = answer.with_hint(hint);
    }
    for block in value["blocks"].as_array().into_iter().flatten() {
        answer = answer.with_block(&block.to_string()).unwrap();
    }
    for (key, member) in value["meta"].as_object().into_iter().flatten() {
        answer = answer.with_meta(key, &member.to_string()).unwrap();
    }
    for pair in value["alternatives"].as_array().into_iter().flatten() {
        let condition = string(&pair[0]).parse().unwrap();
        answer = answer.with_alternative(condition, self::answer(&pair[1]));
    }
    answer
}

fn representation(value: &Value) -> Representation {
    if value == "as-served" {
        return Representation::AsServed;
    }
    match value.get("rendered") {
        Some(rendering) => Representation::Rendered(match string(rendering) {
            "markdown" => Rendering::Markdown,
            "text" => Rendering::Text,
            "geo-markdown" => Rendering::GeoMarkdown,
            "geo-text" => Rendering::GeoText,
            other => unreachable!("{other} is no rendering"),
        }),
        None => Representation::text(string(&value["media_type"]), string(&value["text"])).unwrap(),
    }
}

fn report(input: &Value) -> Option<Report<'_>> {
    let variant = input.get("report")?.as_str();
    Some(Report {
        variant,
        whole: None,
    })
}

fn shaped(shaped: Shaped) -> Value {
    match shaped {
        Shaped::Changed { result, .. } => serde_json::from_str(&result).unwrap(),
        Shaped::Unchanged => json!("unchanged"),
    }
}

/// CN-1, CN-2: the grammar of a feature tag.
#[test]
fn tags() {
    holds("tags.json", |input| {
        let Ok(tag) = string(input).parse::<FeatureTag>() else {
            return json!("invalid");
        };
        let form = match tag.form() {
            Form::Presence => "presence",
            Form::Negation => "negation",
            Form::Equality => "equality",
            Form::Inequality => "inequality",
        };
        let mut parts = json!({"form": form, "key": tag.key()});
        if let Some(value) = tag.value() {
            parts["value"] = json!(value);
        }
        parts
    });
}

/// CN-3, CN-4, CN-5, CN-6, CN-11, CN-22: what is chosen when tags conflict or say nothing.
#[test]
fn choice() {
    holds("choice.json", |input| {
        let features = features(&input["features"]);
        let supported: Vec<_> = strings(&input["supported"])
            .map(|value| Format::from_value(value).unwrap())
            .collect();
        let audience = match (features.agent(), features.human()) {
            (true, true) => unreachable!("never both"),
            (true, false) => json!("agent"),
            (false, true) => json!("human"),
            (false, false) => Value::Null,
        };
        let mut choice = json!({
            "audience": audience,
            "format": features.choose_format(&supported).map(Format::as_str),
            "verbosity": features.verbosity().as_str(),
        });
        for tag in strings(&input["ask"]) {
            choice["states"][tag] = json!(state(&features, tag));
        }
        for key in strings(&input["keys"]) {
            choice["values"][key] = json!(features.values(key).collect::<Vec<_>>());
        }
        choice
    });
}

/// EXT-2, EXT-5, EXT-6, EXT-7, CN-1, CN-2, CN-11, SV-4: settings are read tolerantly.
#[test]
fn settings() {
    holds("settings.json", |input| {
        let capabilities = &input["capabilities"];
        if input["extension"] == CONTENT_NEGOTIATION {
            let declared: Declared<Features> = declared(capabilities);
            let tags: Vec<_> = declared.value.tags().map(FeatureTag::as_str).collect();
            json!({
                "carrier": carrier(declared.carrier),
                "features": tags,
                "ignored": declared.ignored.count(),
            })
        } else {
            let declared: Declared<VariantHints> = declared(capabilities);
            let mut hints = json!({});
            for (key, values) in declared.value.iter() {
                hints[key] = json!(values);
            }
            json!({
                "carrier": carrier(declared.carrier),
                "description": declared.value.description(),
                "hints": hints,
                "ignored": declared.ignored.count(),
            })
        }
    });
}

/// EXT-9: an upstream server sees nothing of what the gateway negotiates.
#[test]
fn stripping() {
    holds("stripping.json", |input| {
        strip_meta(string(input), EXTENSIONS).map_or(json!("invalid"), |text| json!(text))
    });
}

/// CN-20: predicates and the choice between alternatives.
#[test]
fn predicates() {
    holds("predicates.json", |input| {
        let features = features(&input["features"]);
        if let Some(predicate) = input.get("predicate") {
            let predicate = string(predicate).parse::<Predicate>();
            return predicate.map_or(json!("invalid"), |p| json!(p.matches(&features)));
        }
        let alternatives = strings(&input["alternatives"])
            .enumerate()
            .map(|(at, predicate)| (predicate.parse().unwrap(), at))
            .collect();
        Alternatives::new(alternatives).map_or(json!("invalid"), |a| json!(a.choose(&features)))
    });
}

/// SV-1: what is refused, and what only warns, when variants are declared.
#[test]
fn variants() {
    holds("variants.json", |input| {
        let declared = input["variants"].as_array().unwrap();
        match Variants::read(declared, string(&input["today"]).parse().unwrap()) {
            Ok((variants, warnings)) => json!({
                "served": variants.iter().map(|variant| &variant.id).collect::<Vec<_>>(),
                "warnings": warnings.iter().map(warning).collect::<Vec<_>>(),
            }),
            Err(mistakes) => {
                json!({"mistakes": mistakes.as_slice().iter().map(mistake).collect::<Vec<_>>()})
            }
        }
    });
}

/// SV-3, SV-5: the order of variants, their scores, and which are advertised.
#[test]
fn ranking() {
    holds("ranking.json", |input| {
        let (hints, _) = VariantHints::read(&json!({"variantHints": {"hints": input["hints"]}}));
        let variants = input["variants"].as_array().unwrap();
        let variants: Vec<_> = variants.iter().map(variant).collect();
        let ranking = rank(&variants, &hints, &weights(&input["weights"]));
        let limit = input["limit"].as_u64();
        let limit = limit.map_or(DEFAULT_ADVERTISED, |n| n.try_into().unwrap());
        let (advertised, more) = ranking.advertise(limit);
        json!({
            "order": ranking.ids().collect::<Vec<_>>(),
            "scores": ranking.entries().iter().map(|entry| entry.score).collect::<Vec<_>>(),
            "advertised": advertised,
            "more": more,
        })
    });
}

/// SV-13: a cursor opens only where it was made.
#[test]
fn cursors() {
    holds("cursors.json", |input| {
        let (sealed, opened) = (&input["sealed"], &input["opened"]);
        let (sealed_for, active) = (id(&sealed["variant"]), id(&opened["variant"]));
        let seal_key = CursorKeys::new(key(&input["sealKey"]));
        let binding_of_seal = binding(sealed, &sealed_for);
        let mut cursor = seal(&seal_key, &binding_of_seal, string(&input["inner"]));
        if let Some(keep) = input["keep"].as_i64() {
            let length = i64::try_from(cursor.len()).unwrap();
            let keep = if keep < 0 { length + keep } else { keep };
            cursor.truncate(keep.try_into().unwrap());
        }
        if let Some(literal) = input["cursor"].as_str() {
            literal.clone_into(&mut cursor);
        }
        let mut keys = input["openKeys"].as_array().unwrap().iter().map(key);
        let keys = CursorKeys::new(keys.next().unwrap()).with_previous(keys);
        match open(&keys, &binding(opened, &active), &cursor) {
            Ok(inner) => json!({"inner": inner}),
            Err(error) => {
                let sees = |id: &VariantId| strings(&input["hidden"]).all(|hidden| *id != hidden);
                json!({"error": wire(&error.into_error(&active, sees).to_error_object())})
            }
        }
    });
}

/// SV-26: the state of a request comes back to that request only, and in time.
#[test]
fn states() {
    holds("states.json", |input| {
        let (sealed, opened) = (&input["sealed"], &input["opened"]);
        let (made, used) = (parameters(sealed), parameters(opened));
        let (sealed_for, active) = (id(&sealed["variant"]), id(&opened["variant"]));
        let expires = input["expires"].as_u64().unwrap();
        let mut state = state::seal(
            &CursorKeys::new(key(&input["sealKey"])),
            &of_state(sealed, &sealed_for, &made),
            string(&input["state"]),
            expires,
        );
        if let Some(keep) = input["keep"].as_i64() {
            let length = i64::try_from(state.len()).unwrap();
            state.truncate((length + keep).try_into().unwrap());
        }
        if let Some(literal) = input["literal"].as_str() {
            literal.clone_into(&mut state);
        }
        let mut keys = input["openKeys"].as_array().unwrap().iter().map(key);
        let keys = CursorKeys::new(keys.next().unwrap()).with_previous(keys);
        let now = input["now"].as_u64().unwrap();
        match state::open(&keys, &of_state(opened, &active, &used), &state, now) {
            Ok(state) => json!({"state": state}),
            Err(StateError::Expired) => json!({"error": "expired"}),
            Err(_) => json!({"error": "invalid"}),
        }
    });
}

fn parameters(request: &Value) -> Parameters {
    let parameters = &request["parameters"];
    let arguments = parameters["arguments"].as_object();
    Parameters::of(string(&parameters["name"]), arguments)
}

fn of_state<'a>(
    request: &'a Value,
    variant: &'a VariantId,
    parameters: &'a Parameters,
) -> state::StateBinding<'a> {
    state::StateBinding {
        variant,
        method: string(&request["method"]),
        principal: string(&request["principal"]),
        parameters,
    }
}

/// EXT-4, SV-9, SV-10, SV-12, SV-13, SV-18, SV-21: what the client is told.
#[test]
fn errors() {
    holds("errors.json", |input| match input.get("error") {
        Some(kind) => wire(&error(string(kind), input).to_error_object()),
        None => {
            let data = input["upstreamData"].as_str();
            json!(with_active_variant(data, &id(&input["active"])))
        }
    });
}

fn error(kind: &str, input: &Value) -> Error {
    let era = || match string(&input["era"]) {
        "legacy" => Era::Legacy,
        _ => Era::Modern,
    };
    match kind {
        "invalid-server-variant" => {
            let available = input
                .get("available")
                .map(|all| strings(all).map(|one| one.parse().unwrap()).collect());
            Error::invalid_variant(&input["requested"], available)
        }
        "variants-not-supported" => Error::VariantsNotSupported,
        "cursor-of-another-variant" => Error::CursorVariantMismatch {
            cursor: id(&input["cursor"]),
            requested: id(&input["requested"]),
        },
        "invalid-cursor" => Error::InvalidCursor {
            active: id(&input["active"]),
        },
        "not-found" => Error::NotFound {
            identifier: identifier(input),
            active: input.get("active").map(id),
            era: era(),
        },
        "required-extension" => Error::RequiredExtension {
            id: string(&input["id"]).parse().unwrap(),
            era: era(),
        },
        "another-variant-in-header" => {
            Error::header_variant_mismatch(string(&input["header"]), &input["requested"], era())
        }
        "too-many-switches" => Error::TooManySwitches {
            active: id(&input["active"]),
            retry_after: input["retryAfter"].as_u64().unwrap(),
        },
        other => unreachable!("no error is {other}"),
    }
}

fn identifier(input: &Value) -> Identifier {
    let named = |key| input.get(key).map(|value| string(value).to_owned());
    named("tool")
        .map(Identifier::Tool)
        .or_else(|| named("prompt").map(Identifier::Prompt))
        .or_else(|| named("resource").map(Identifier::Resource))
        .or_else(|| named("subscribed").map(Identifier::SubscribedResource))
        .expect("something is named")
}

/// The error as a peer reads it.
fn wire(error: &ErrorObject) -> Value {
    serde_json::from_str(&error.to_json()).unwrap()
}

fn mistake(mistake: &VariantDiagnostic) -> &'static str {
    match mistake {
        VariantDiagnostic::Unreadable(..) => "unreadable",
        VariantDiagnostic::Twice(_) => "twice",
        VariantDiagnostic::NoneStable => "none-stable",
        VariantDiagnostic::ReplacesItself(_) => "replaces-itself",
        VariantDiagnostic::UnknownReplacement(..) => "unknown-replacement",
        VariantDiagnostic::Date(..) => "date",
        other => unreachable!("no vector has {other:?}"),
    }
}

fn warning(warning: &Warning) -> &'static str {
    match warning {
        Warning::PastDate(..) => "past-date",
        Warning::NotDeprecated(_) => "not-deprecated",
        other => unreachable!("no vector has {other:?}"),
    }
}

/// A variant with a priority, which the wire does not carry.
fn variant(value: &Value) -> ServerVariant {
    let mut variant = ServerVariant::deserialize(value).unwrap();
    if let Some(priority) = value["priority"].as_u64() {
        variant.priority = priority.try_into().unwrap();
    }
    variant
}

fn weights(value: &Value) -> Weights {
    let mut weights = Weights::default();
    for (key, pair) in value.as_object().into_iter().flatten() {
        let [first, step] = <[i32; 2]>::deserialize(pair).unwrap();
        weights.hints.insert(key.clone(), Weight { first, step });
    }
    weights
}

fn features(tags: &Value) -> Features {
    Features::from_tags(strings(tags)).0
}

fn state(features: &Features, tag: &str) -> &'static str {
    let state = features.state(tag);
    assert_eq!(features.has(tag), state == Presence::Present);
    assert_eq!(features.denies(tag), state == Presence::Absent);
    match state {
        Presence::Present => "present",
        Presence::Absent => "absent",
        Presence::Undeclared => "undeclared",
    }
}

fn carrier(carrier: Option<Carrier>) -> Option<String> {
    carrier.map(|carrier| carrier.path().join("."))
}

fn binding<'a>(value: &'a Value, variant: &'a VariantId) -> CursorBinding<'a> {
    CursorBinding {
        variant,
        method: string(&value["method"]),
        principal: string(&value["principal"]),
    }
}

fn id(value: &Value) -> VariantId {
    string(value).parse().unwrap()
}

fn key(hex: &Value) -> [u8; 32] {
    let digit = |at| u8::from_str_radix(&string(hex)[at..at + 2], 16).unwrap();
    std::array::from_fn(|at| digit(2 * at))
}

#[track_caller]
fn string(value: &Value) -> &str {
    value.as_str().expect("a string")
}

/// The strings of an array; of nothing none.
fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().map(string)
}
