//! Generates the description of a variant if the operator does not write one.

use mcp_vary_catalog::variant_config::{Base, VariantConfig};
use mcp_vary_catalog::variant_set::VariantSet;
use mcp_vary_view::{Description, Rule, SchemaStyle, Selection};

/// Describes what `config` shows: with the description of a built-in variant that shows the same, or with generated text.
pub(super) fn of(config: &VariantConfig, built_in: &VariantSet) -> String {
    let alike = built_in
        .configs()
        .iter()
        .find(|known| shows_the_same(known, config));
    if let Some(known) = alike {
        return known.variant.description.clone();
    }
    let parts = [
        Some(tools(config)),
        some("resources", &config.resources),
        some("prompts", &config.prompts),
        some("skills", &config.skills),
        servers(config),
        short(config),
        (config.base == Base::ReadOnly).then(|| OWN_WORD.to_owned()),
    ];
    let shown: Vec<String> = parts.into_iter().flatten().collect();
    shown.join(" ")
}

fn shows_the_same(one: &VariantConfig, other: &VariantConfig) -> bool {
    one.base == other.base
        && one.style == other.style
        && one.tools == other.tools
        && one.resources == other.resources
        && one.prompts == other.prompts
        && one.skills == other.skills
        && one.tool_overrides == other.tool_overrides
        && one.prompt_overrides == other.prompt_overrides
        && one.resource_overrides == other.resource_overrides
        && one.keep_schemas == other.keep_schemas
}

fn tools(config: &VariantConfig) -> String {
    match (config.base, some("tools", &config.tools)) {
        (Base::ReadOnly, None) => {
            "Only the tools that declare that they change nothing.".to_owned()
        }
        (Base::ReadOnly, Some(some)) => {
            format!("{some} Only those that declare that they change nothing.")
        }
        (Base::Standard | Base::Compact, None) => "All tools.".to_owned(),
        (Base::Standard | Base::Compact, Some(some)) => some,
    }
}

/// Names only what is shown, so that clients do not learn what is hidden.
fn some(what: &str, selection: &Selection) -> Option<String> {
    if !selection.has_rules() {
        return None;
    }
    let named: Vec<String> = selection.include.iter().map(Rule::to_string).collect();
    Some(match named.len() {
        0 => format!("Some of the {what}."),
        1..=MOST_NAMED => format!("Some of the {what}: {}.", named.join("; ")),
        _ => format!(
            "Some of the {what}: {} and more.",
            named[..MOST_NAMED].join("; ")
        ),
    })
}

fn servers(config: &VariantConfig) -> Option<String> {
    let named = &config.tools.servers;
    match named.len() {
        0 => None,
        1..=MOST_NAMED => Some(format!("Servers: {}.", named.join(", "))),
        _ => Some(format!(
            "Servers: {} and more.",
            named[..MOST_NAMED].join(", ")
        )),
    }
}

fn short(config: &VariantConfig) -> Option<String> {
    let is_compact = config.base == Base::Compact;
    let is_cut = is_compact || config.style.description == Description::FirstSentence;
    if config.style.schema.is_on_demand() {
        let cut = "The first sentence of each description, and the names and types of arguments.";
        let whole = "Full descriptions, and the names and types of arguments.";
        let is_cut = config.style.description == Description::FirstSentence;
        let listed = if is_cut { cut } else { whole };
        return Some(format!("{listed} `describe_tools` has the rest."));
    }
    let is_bare = is_compact || config.style.schema == SchemaStyle::Compact;
    match (is_cut, is_bare) {
        (true, true) => Some(
            "The first sentence of each description, and from the rest only what callers need."
                .to_owned(),
        ),
        (true, false) => Some("The first sentence of each description.".to_owned()),
        (false, true) => Some("Schemas with only the prose that callers need.".to_owned()),
        (false, false) => None,
    }
}

const OWN_WORD: &str =
    "It trusts what each server declares, so it does not protect against a server.";

/// The maximum number of patterns, or of servers, to name.
const MOST_NAMED: usize = 8;
