//! `prompts`: how prompts are told.

use mcp_vary::predicate::Predicate;
use mcp_vary::shape::Role;
use mcp_vary_results::rules::PromptRules;
use mcp_vary_results::{Failures, PromptRule, Template};
use mcp_vary_view::Selection;
use serde_json::json;

use super::{Section, predicate, says, template};
use crate::diagnostic::Mistakes;
use crate::key_spec::{Setting, Takes};
use crate::reader::{Field, Reader};
use crate::schema::Schema;
use crate::variants::selection;

/// Reads rules from YAML or JSON, as they stand in a configuration under `prompts`.
///
/// # Errors
///
/// Everything that is wrong with them, at once.
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
pub fn read_prompts(text: &str) -> Result<PromptRules, Mistakes> {
    SECTION.read_text(text).map(PromptRules)
}

const SECTION: Section<Draft, PromptRule> = Section {
    name: "prompts",
    example: "[{prompts: [plan], when: agent & sampling, text: \"...\"}]",
    gist: "{prompts: [...], text: ...}",
    settings: SETTINGS,
    rule: Draft::rule,
};

/// Reads the list of rules.
pub(crate) fn read(reader: &mut Reader<'_>, field: &Field<'_>) -> PromptRules {
    PromptRules(SECTION.read(reader, field))
}

/// What may stand under `prompts`.
pub(crate) fn shape(schema: &mut Schema) -> serde_json::Value {
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
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            prompts: Selection::default(),
            when: Predicate::any(),
            role: Role::User,
            description: None,
            text: None,
        }
    }
}

impl Draft {
    fn rule(self, reader: &mut Reader<'_>, field: &Field<'_>) -> Option<PromptRule> {
        if !says(field, &["text"]) {
            reader.wrong(field, "says no text", "add `text: ...`");
        }
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
