//! `prompts`: how prompts are told.

use std::sync::Arc;

use mcp_vary::predicate::Predicate;
use mcp_vary::shape::Role;
use mcp_vary::view::Selection;
use serde_json::json;

use super::mistake::Mistakes;
use super::reader::{Field, Reader};
use super::results::{listed, predicate, section, template};
use super::schema::Schema;
use super::setting::{Setting, Takes};
use super::tree::Value;
use super::variants::selection;
use crate::results::{Failures, PromptRule, Template};

const EXAMPLE: &str = "[{prompts: [plan], when: agent & sampling, text: \"...\"}]";

/// How prompts are told: the rules of a configuration's section `prompts`.
///
/// # Examples
///
/// ```
/// use mcp_vary_gateway::config::PromptRules;
///
/// let rules = PromptRules::read(r#"
///   - prompts: [plan_trip]
///     when: agent & sampling
///     text: "1. Parse {{ arguments.goal }}. 2. List the options. 3. Call the tools. 4. Compare."
/// "#);
/// assert!(rules.is_ok());
///
/// // There is nothing to tell.
/// assert!(PromptRules::read("- {prompts: [plan_trip], when: agent}").is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct PromptRules(pub(crate) Arc<[PromptRule]>);

impl PromptRules {
    /// Reads rules from YAML or JSON, as they stand in a configuration under `prompts`.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with them, at once.
    pub fn read(text: &str) -> Result<Self, Mistakes> {
        section("prompts", text, read)
    }
}

/// Reads the list of rules.
pub(super) fn read(reader: &mut Reader<'_>, field: &Field<'_>) -> PromptRules {
    let mut rules = Vec::new();
    for item in listed(reader, field, EXAMPLE) {
        let mut draft = Draft::default();
        reader.settings(
            &item,
            &[SETTINGS],
            &mut draft,
            "{prompts: [...], text: ...}",
        );
        if matches!(item.node.value, Value::Table(_)) && !draft.says_text {
            reader.wrong(&item, "says no text", "add `text: ...`");
        }
        rules.extend(draft.rule());
    }
    PromptRules(rules.into())
}

/// What may stand under `prompts`.
pub(super) fn shape(schema: &mut Schema) -> serde_json::Value {
    let mut rule = schema.table(&[SETTINGS]);
    rule["required"] = json!(["text"]);
    schema.list(&rule)
}

/// A rule while it is read.
struct Draft {
    prompts: Selection,
    when: Predicate,
    role: Role,
    description: Option<String>,
    text: Option<Template>,
    /// Whether `text` was given, whatever it was worth.
    says_text: bool,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            prompts: Selection::default(),
            when: Predicate::any(),
            role: Role::User,
            description: None,
            text: None,
            says_text: false,
        }
    }
}

impl Draft {
    fn rule(self) -> Option<PromptRule> {
        Some(PromptRule {
            prompts: self.prompts,
            when: self.when,
            role: self.role,
            description: self.description,
            text: self.text?,
            failures: Failures::default(),
        })
    }
}

const ROLES: &[(&str, Role)] = &[("user", Role::User), ("assistant", Role::Assistant)];

const SETTINGS: &[Setting<Draft>] = &[
    Setting {
        key: "prompts",
        about: "the prompts that it is about: a list of patterns and conditions, or `include` and `exclude`. All without it",
        default: "",
        takes: Takes::Other(selection::shape, |reader, field, draft| {
            draft.prompts = selection::read(reader, field)
        }),
    },
    Setting {
        key: "when",
        about: "the clients that it is for: a condition over their feature tags. Of several that hold the one that asks for most decides, then the first",
        default: "*",
        takes: Takes::Other(Schema::word, |reader, field, draft| {
            draft.when = predicate(reader, field).unwrap_or_default()
        }),
    },
    Setting {
        key: "text",
        about: "a template of what the prompt says, in the place of its texts; required",
        default: "",
        takes: Takes::Other(Schema::text, |reader, field, draft| {
            draft.says_text = true;
            draft.text = template(reader, field);
        }),
    },
    Setting {
        key: "role",
        about: "who says it: `user` or `assistant`",
        default: "user",
        takes: Takes::Other(
            |schema| schema.choice(ROLES),
            |reader, field, draft| reader.choice(field, ROLES, &mut draft.role),
        ),
    },
    Setting {
        key: "description",
        about: "what the prompt is for, instead of the server's words",
        default: "",
        takes: Takes::Word(|draft| &mut draft.description),
    },
];
