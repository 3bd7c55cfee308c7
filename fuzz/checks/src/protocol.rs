//! What must hold of `mcp_vary` for every sequence of bytes.
//!
//! Each check is run by a fuzz target, and by `tests/corpora.rs`, which replays the corpora.

mod uri;

use mcp_vary::cursor::{CursorBinding, CursorKeys, open, seal};
use mcp_vary::extension::{
    CONTENT_NEGOTIATION, EXTENSIONS, SERVER_VARIANTS, declared, find, strip_capabilities,
};
use mcp_vary::feature::{FeatureTag, Features, Form, MAX_TAG, MAX_TAGS};
use mcp_vary::hints::{MAX_DESCRIPTION, MAX_KEY, MAX_KEYS, MAX_VALUE, MAX_VALUES, VariantHints};
use mcp_vary::json::{Json, MAX_DEPTH, Members, elements, skip, to_value};
use mcp_vary::predicate::Predicate;
use mcp_vary::rank::{Weights, rank};
use mcp_vary::render::{
    Contract, Limits, Part, compact, compact_columns, compact_markdown, compact_structured,
    compact_text, notice, read,
};
use mcp_vary::shape::{
    Compaction, Policy, PromptAlternative, Rendering, Report, Representation, Representations,
    Role, Shaped, ToolFacts, compact_tool_result, prompt_result, resource_result, tool_result,
};
use mcp_vary::variant::{ServerVariant, Status, VariantId};
use mcp_vary::visibility::{Experience, Forward, forward};
use mcp_vary_view::{
    ArgumentError, Dialect, PreparedPrompt, PreparedTool, PromptOverride, Style, ToolOverride,
};
use serde_json::Value;
use serde_json::value::RawValue;

pub use self::uri::uri;

/// A check, after the name of its target and corpus.
type Check = (&'static str, fn(&[u8]));

/// Every check.
pub const CHECKS: &[Check] = &[
    ("check", check),
    ("part", part),
    ("tags", tags),
    ("settings", settings),
    ("predicate", predicate),
    ("hints", hints),
    ("cursor", cursor),
    ("json", json),
    ("result", result),
    ("view", view),
    ("uri", uri),
];

/// What a schema of arguments is checked against gives the same verdict each time, refuses nothing where the schema asks for
/// nothing, and sends what was given.
///
/// The first line is a schema, the rest are arguments.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (schema, arguments) = text.split_once('\n').unwrap_or((text, "{}"));
    let style = Style {
        dialect: Some(Dialect::Gemini),
        ..Style::default()
    };
    let prepared = |schema: &str| {
        let tool = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
        PreparedTool::new(&tool, &ToolOverride::default(), style)
    };
    let Ok((tool, _)) = prepared(schema) else {
        return;
    };
    let verdict = tool.arguments(arguments);
    assert_eq!(tool.arguments(arguments), verdict);
    // Every parser reads them alike: no key repeats, and each number fits into an `f64`.
    let is_object = Json::parse(arguments).is_ok_and(|it| it.as_object().is_some());
    let is_readable = is_object && to_value(arguments).is_ok();
    match verdict {
        Ok(sent) => assert_eq!(sent, arguments),
        Err(faults) => {
            assert!(!faults.is_empty());
            let is_bounded = |fault: &ArgumentError| fault.to_string().chars().count() <= 800;
            assert!(faults.iter().all(is_bounded), "{faults:?}");
        }
    }
    let (open, _) = prepared(r#"{"type":"object"}"#).expect("a tool");
    assert_eq!(
        open.arguments(arguments).is_ok(),
        is_readable,
        "{arguments}"
    );
}

/// A part is asked for as it was read, and reading part after part comes to an end.
pub fn part(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (query, value) = text
        .split_once('\n')
        .unwrap_or((text, r#"{"rows":["a",{"b":"é é"}]}"#));
    let Ok(part) = Part::parse(query) else {
        return;
    };
    assert_eq!(Part::parse(&part.to_query()).as_ref(), Ok(&part));
    let Ok(value) = Json::parse(value) else {
        return;
    };
    let mut next = Some(part);
    for _ in 0..64 {
        let Some(part) = next.take() else {
            break;
        };
        let Ok(page) = read(&value, &part) else {
            break;
        };
        assert!(page.offset <= page.total);
        if let Some(offset) = page.next {
            assert!(
                offset > part.offset && offset <= page.total,
                "{part:?} {offset}"
            );
            next = Some(part.with_offset(offset));
        }
    }
}

/// A tag prints as it was read, and is made of its parts.
pub fn tags(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(tag) = text.parse::<FeatureTag>() else {
        return;
    };
    assert_eq!(tag.to_string(), text);
    assert!(text.len() <= MAX_TAG);
    let (key, value) = (tag.key(), tag.value().unwrap_or_default());
    let parts = match tag.form() {
        Form::Presence => key.to_owned(),
        Form::Negation => format!("!{key}"),
        Form::Equality => format!("{key}={value}"),
        Form::Inequality => format!("{key}!={value}"),
    };
    assert_eq!(parts, text);
}

/// Capabilities are read within the limits, and stripping leaves nothing to read.
pub fn settings(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(capabilities) = serde_json::from_str::<Value>(text) else {
        return;
    };
    let features = declared::<Features>(&capabilities);
    assert!(features.ignored.to_string().is_ascii());
    check_features(&features.value);
    check_hints(&declared::<VariantHints>(&capabilities).value);
    if let Ok(stripped) = strip_capabilities(text, EXTENSIONS) {
        let remaining: Value = serde_json::from_str(&stripped).expect("what is left is JSON");
        for id in [CONTENT_NEGOTIATION, SERVER_VARIANTS] {
            let (found, ignored) = find(&remaining, id);
            assert!(
                found.is_none() && ignored.is_empty(),
                "{id} is left in {stripped}"
            );
        }
    }
}

fn check_features(features: &Features) {
    assert!(features.tags().len() <= MAX_TAGS);
    assert!(!(features.agent() && features.human()));
    let (again, ignored) = Features::read(&features.to_settings());
    assert_eq!(again, *features);
    assert!(ignored.is_empty());
}

/// A predicate reads back as it prints, and can be asked of everybody.
pub fn predicate(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match text.parse::<Predicate>() {
        Ok(predicate) => {
            assert_eq!(predicate.to_string().parse(), Ok(predicate.clone()));
            let silent = predicate.matches(&Features::default());
            assert!(silent || predicate.specificity().required > 0);
        }
        Err(error) => assert!(error.to_string().is_ascii()),
    }
}

/// Hints are read within the limits, and any of them ranks everything.
pub fn hints(data: &[u8]) {
    let Ok(settings) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let (hints, ignored) = VariantHints::read(&settings);
    assert!(ignored.to_string().is_ascii());
    check_hints(&hints);
    let variants = offered();
    let ranking = rank(&variants, &hints, &Weights::default());
    let mut ids: Vec<_> = ranking.ids().collect();
    ids.sort();
    assert_eq!(ids, variants.iter().map(|v| &v.id).collect::<Vec<_>>());
    let stable = ranking.entries()[0].status == Status::Stable;
    assert!(stable || hints.requests_experimental());
}

fn check_hints(hints: &VariantHints) {
    assert!(hints.description().unwrap_or_default().len() <= MAX_DESCRIPTION);
    assert!(hints.iter().count() <= MAX_KEYS);
    for (key, values) in hints.iter() {
        assert!(!key.is_empty() && key.len() <= MAX_KEY);
        assert!(!values.is_empty() && values.len() <= MAX_VALUES);
        assert!(values.iter().all(|v| !v.is_empty() && v.len() <= MAX_VALUE));
    }
    let (again, ignored) = VariantHints::read(&hints.to_settings());
    assert_eq!(again, *hints);
    assert!(ignored.is_empty());
}

fn offered() -> Vec<ServerVariant> {
    let variant = |id| ServerVariant::new(named(id), "");
    vec![
        variant("a")
            .with_hint("modelFamily", "any")
            .with_hint("useCase", "planning"),
        variant("b")
            .with_hint("modelFamily", "anthropic")
            .with_status(Status::Experimental),
        variant("c").with_hint("contextSize", "compact"),
        variant("d")
            .with_hint("modelFamily", "anthropic")
            .with_status(Status::Deprecated),
    ]
}

fn named(id: &str) -> VariantId {
    id.parse().expect("a valid identifier")
}

/// Nothing opens but what we sealed.
pub fn cursor(data: &[u8]) {
    let Ok(cursor) = std::str::from_utf8(data) else {
        return;
    };
    let keys = CursorKeys::new([1; 32]);
    let variant = named("compact");
    let binding = CursorBinding {
        variant: &variant,
        method: "tools/list",
        principal: "alice",
    };
    if let Ok(inner) = open(&keys, &binding, cursor) {
        assert_eq!(seal(&keys, &binding, &inner), cursor);
    }
}

/// What is read as JSON is JSON, and is written as what was read.
pub fn json(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let valid = serde_json::from_str::<&RawValue>(text).is_ok();
    let trimmed = text.trim_end_matches([' ', '\t', '\n', '\r']);
    if skip(trimmed, 0, MAX_DEPTH) == Some(trimmed.len()) {
        assert!(valid);
    }
    if let Ok(members) = Members::parse(text) {
        assert!(valid);
        let written = members.to_json();
        let again = Members::parse(&written).expect("what is written can be read");
        assert!(again.iter().eq(members.iter()));
    }
    if let Ok(all) = elements(text) {
        assert!(valid);
        assert_eq!(elements(&format!("[{}]", all.join(","))).ok(), Some(all));
    }
    if let Ok(value) = Json::parse(text) {
        assert!(valid);
        let written = value.to_json();
        assert_eq!(Json::parse(&written).as_ref(), Ok(&value));
        compacted(&value);
    }
}

/// In fewer words twice is once, and what comes out is JSON.
fn compacted(value: &Json<'_>) {
    let limits = Limits::default()
        .with_rows(4)
        .with_detailed(2)
        .with_elements(1)
        .with_text(8);
    let once = compact(value, &limits).value;
    assert_eq!(compact(&once, &limits).value, once);
    let columns = compact_columns(value, &limits).value.to_json();
    assert!(columns.len() <= once.to_json().len());
    assert!(serde_json::from_str::<&RawValue>(&columns).is_ok());
    if let Some(short) = compact_structured(value, &Contract::default(), &limits, None) {
        assert!(!short.left_out.is_empty());
    }
    for render in [compact_markdown, compact_text] {
        let (_, left_out) = render(value, &limits);
        // What is missing can be read where the notice says.
        for one in &left_out {
            assert!(read(value, &one.part()).is_ok());
        }
        assert!(notice(&left_out, Some("vary://result/x")).len() <= left_out.len());
    }
}

/// Whatever a server answers is shaped to JSON once, and forwarded from one field.
pub fn result(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let representations = Representations::default()
        .with(Representation::Rendered(Rendering::GeoMarkdown))
        .and_then(|all| all.with(Representation::Rendered(Rendering::GeoText)))
        .expect("two formats");
    let prompts = [(
        "human".parse().expect("a condition"),
        PromptAlternative::new(Role::User, "a"),
    )];
    let report = Report::default();
    let policy = Policy {
        report: true,
        ..Policy::default()
    };
    for tags in [["agent", "format=json"], ["human", "verbosity=compact"]] {
        let (features, _) = Features::from_tags(tags);
        once(text, |text| {
            tool_result(text, &features, ToolFacts::default(), &policy)
        });
        once(text, |text| {
            let compaction = Compaction::default();
            compact_tool_result(text, &features, ToolFacts::default(), &policy, &compaction).shaped
        });
        once(text, |text| {
            resource_result(text, &features, |_| Some(&representations), Some(report))
        });
        once(text, |text| {
            prompt_result(text, &features, &prompts, Some(report))
        });
    }
    if let Ok(Forward::Structured { value, others }) = forward(text, Experience::Conversation) {
        assert!(text.contains(value));
        assert!(others.iter().all(|block| text.contains(block)));
    }
}

/// What is shaped is a JSON object, and is not shaped again.
fn once(text: &str, shape: impl Fn(&str) -> Shaped) {
    if let Shaped::Changed { result, .. } = shape(text) {
        assert!(Members::parse(&result).is_ok());
        assert_eq!(shape(&result), Shaped::Unchanged);
    }
}

/// A definition in the first line, arguments in the second: what is listed is JSON with no keyword that the
/// dialect refuses, what is sent is JSON, and what is told is bounded.
pub fn view(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (definition, arguments) = text.split_once('\n').unwrap_or((text, "{}"));
    for dialect in Dialect::ALL {
        let style = Style {
            dialect: Some(dialect),
            ..Style::default()
        };
        let prompt = PreparedPrompt::new(definition, &PromptOverride::default(), style);
        if let Ok((prompt, _)) = prompt {
            assert!(
                prompt
                    .json()
                    .is_none_or(|json| Members::parse(json).is_ok())
            );
        }
        let tool = PreparedTool::new(definition, &ToolOverride::default(), style);
        let Ok((tool, mistakes)) = tool else {
            continue;
        };
        assert!(mistakes.is_empty());
        if let Some(json) = tool.json() {
            let listed = Members::parse(json).expect("what is listed is an object");
            let schema = Json::parse(listed.get("inputSchema").expect("with a schema"));
            has_only(dialect, &schema.expect("that can be read"));
        }
        match tool.arguments(arguments) {
            Ok(sent) => assert!(Members::parse(&sent).is_ok()),
            Err(faults) => assert!(faults.iter().all(|fault| fault.to_string().len() < 2_500)),
        }
    }
}

fn has_only(dialect: Dialect, schema: &Json<'_>) {
    for (keyword, value) in schema.as_object().expect("a schema is an object") {
        assert!(dialect.keywords().contains(&keyword.as_ref()), "{keyword}");
        match (keyword.as_ref(), value) {
            ("properties" | "$defs", Json::Object(named)) => {
                named
                    .iter()
                    .for_each(|(_, schema)| has_only(dialect, schema));
            }
            ("anyOf", Json::Array(schemas)) => {
                schemas.iter().for_each(|schema| has_only(dialect, schema));
            }
            ("items", schema) => has_only(dialect, schema),
            _ => {}
        }
    }
}
