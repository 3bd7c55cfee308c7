//! `prompts`: rules for prompts.

use mcp_vary::shape::Role;
use mcp_vary_results::rules::PromptRules;
use mcp_vary_results::{PromptRule, RuleFailures, Template};
use serde_json::json;

use super::{RuleDraft, RuleScope, ScopeDescriptions, Section, has_key, scope_keys, template};
use crate::clients::Named;
use crate::diagnostic::Diagnostics;
use crate::key_spec::{KeySpec, ValueKind};
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

const SECTION: Section<PartialPromptRule, PromptRule> = Section {
    name: "prompts",
    example: "[{prompts: [plan], when: agent & sampling, text: \"...\"}]",
    gist: "{prompts: [...], text: ...}",
    keys: KEYS,
    rule: PartialPromptRule::rule,
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
    let mut rule = schema.table(&KEYS);
    rule["required"] = json!(["text"]);
    schema.list(&rule)
}

/// A rule while it is read.
struct PartialPromptRule {
    scope: RuleScope,
    role: Role,
    description: Option<String>,
    text: Option<Template>,
}

impl Default for PartialPromptRule {
    fn default() -> Self {
        Self {
            scope: RuleScope::default(),
            role: Role::User,
            description: None,
            text: None,
        }
    }
}

impl PartialPromptRule {
    fn rule(self, reader: &mut Reader<'_>, field: &Located<'_>) -> Option<PromptRule> {
        if !has_key(field, &["text"]) {
            reader.report(field, "has no `text`", "add `text: ...`");
        }
        Some(PromptRule {
            prompts: self.scope.items,
            variants: self.scope.variants,
            when: self.scope.when.unwrap_or_default(),
            applies_to_all: self.scope.everyone,
            role: self.role,
            description: self.description,
            text: self.text?,
            failures: RuleFailures::default(),
        })
    }
}

const ROLES: &[(&str, Role)] = &[("user", Role::User), ("assistant", Role::Assistant)];

impl RuleDraft for PartialPromptRule {
    fn scope(&mut self) -> &mut RuleScope {
        &mut self.scope
    }
}

const KEYS: [&[KeySpec<PartialPromptRule>]; 2] = [SCOPE_KEYS, OWN_KEYS];

const SCOPE_KEYS: &[KeySpec<PartialPromptRule>] = &scope_keys(&ScopeDescriptions {
    items: (
        "prompts",
        "the prompts that the rule applies to: a list of patterns and conditions, or `include` and `exclude`. All without it",
    ),
    when: (
        "the clients that the rule applies to: a condition over their feature tags. If several rules match, the most specific condition decides; ties go to the first rule",
        "*",
    ),
    for_clients: "`negotiating`: for clients that declared features, or whose variant has some. `everyone`: for all",
});

const OWN_KEYS: &[KeySpec<PartialPromptRule>] = &[
    KeySpec {
        key: "text",
        about: "a template for the text that replaces the prompt's texts; required",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::text, |reader, field, draft| {
            draft.text = template(reader, field);
        }),
    },
    KeySpec {
        key: "role",
        about: "the role of the message: `user` or `assistant`",
        default: "user",
        takes: ValueKind::Other(
            |schema| schema.choice(ROLES),
            |reader, field, draft| reader.choice(field, ROLES, &mut draft.role),
        ),
    },
    KeySpec {
        key: "description",
        about: "what the prompt is for, instead of the server's words",
        default: "",
        takes: ValueKind::Scalar(|draft| &mut draft.description),
    },
];
