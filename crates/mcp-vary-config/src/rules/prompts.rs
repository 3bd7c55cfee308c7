//! `prompts`: rules for prompts.

use mcp_vary::shape::Role;
use mcp_vary_results::rules::PromptRules;
use mcp_vary_results::{PromptRule, RuleFailures, Template};
use serde_json::json;

use super::{PartialRule, Section, audience, has_key, items, template, variants, when};
use crate::clients::Named;
use crate::diagnostic::Diagnostics;
use crate::key_spec::ValueKind::Scalar;
use crate::key_spec::{KeySpec, choice, keys, value};
use crate::reader::{Located, Reader};
use crate::schema_builder::SchemaBuilder;

/// Reads rules from YAML or JSON, as written under `prompts` in a configuration.
///
/// # Errors
///
/// If the rules are invalid. The error lists all problems at once.
///
/// # Examples
///
/// ```
/// use mcp_vary_config::read_prompts;
///
/// let rules = read_prompts(r#"
///   - prompts: [plan_trip]
///     when: agent & sampling
///     text: "1. Parse {{ arguments.goal }}. 2. List the options. 3. Call the tools. 4. Compare."
/// "#);
/// assert!(rules.is_ok());
///
/// // There is nothing to tell.
/// assert!(read_prompts("- {prompts: [plan_trip], when: agent}").is_err());
/// ```
pub fn read_prompts(text: &str) -> Result<PromptRules, Diagnostics> {
    SECTION.read_text(text).map(PromptRules)
}

const SECTION: Section<PromptAction, PromptRule> = Section {
    name: "prompts",
    example: "[{prompts: [plan], when: agent & sampling, text: \"...\"}]",
    gist: "{prompts: [...], text: ...}",
    keys: KEYS,
    rule: PartialRule::<PromptAction>::rule,
};

/// Reads the list of rules. Adds the variants that they name to `named`.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    named: &mut Vec<Named>,
) -> PromptRules {
    PromptRules(SECTION.read(reader, field, named))
}

/// The schema of `prompts`.
pub(crate) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let mut rule = schema.table("a rule of `prompts`", &[KEYS]);
    rule["required"] = json!(["text"]);
    schema.list(&rule)
}

/// What a rule does, while it is read.
#[derive(Default)]
struct PromptAction {
    role: Option<Role>,
    description: Option<String>,
    text: Option<Template>,
}

impl PartialRule<PromptAction> {
    fn rule(self, reader: &mut Reader<'_>, field: &Located<'_>) -> Option<PromptRule> {
        if !has_key(field, &["text"]) {
            reader.report(field, "has no `text`", "add `text: ...`");
        }
        Some(PromptRule {
            prompts: self.items,
            variants: self.variants,
            when: self.when.unwrap_or_default(),
            applies_to_all: self.everyone,
            role: self.action.role.unwrap_or(Role::User),
            description: self.action.description,
            text: self.action.text?,
            failures: RuleFailures::default(),
        })
    }
}

const ROLES: &[(&str, Role)] = &[("user", Role::User), ("assistant", Role::Assistant)];

const KEYS: &[KeySpec<PartialRule<PromptAction>>] = keys![
    /// the prompts that it applies to: a list of patterns and conditions, or `include` and `exclude`. All without it
    "prompts" => items(),
    /// the ids of its variants; all without it
    "variants" => variants(),
    /// a condition over the feature tags of clients. The most specific one decides, then the first rule
    "when" = "*" => when(),
    /// `negotiating`: clients that declared features, or whose variant has some. `everyone`: all
    "for" = "negotiating" => audience(),
    /// a template for the text that replaces the prompt's texts; required
    "text" => value!(SchemaBuilder::text, template, |rule| rule.action.text),
    /// the role of the message: `user` or `assistant`
    "role" = "user" => choice!(ROLES, |rule| &mut rule.action.role),
    /// what the prompt is for, instead of the server's words
    "description" => Scalar(|rule| &mut rule.action.description),
];
