//! Applies the operator's rules to prompts.

use mcp_vary::feature::Features;
use mcp_vary::json::{Members, elements};
use mcp_vary::predicate::{Predicate, choose_with_condition};
use mcp_vary::shape::{PromptAlternative, Report, Role, Shaped, prompt_result, replace_prompt};
use mcp_vary::variant::VariantId;
use mcp_vary_view::{Candidate, Selection};

use crate::call_context::CallContext;
use crate::failures::RuleFailures;
use crate::template::{Scope, Template};
use crate::variant_scope::VariantScope;

/// A rule of the operator for prompts.
#[derive(Debug)]
pub struct PromptRule {
    /// The prompts that the rule applies to.
    pub prompts: Selection,
    /// The variants that the rule applies in.
    pub variants: VariantScope,
    /// The condition on the client.
    pub when: Predicate,
    /// Whether the rule also applies to clients that declared no features.
    pub applies_to_all: bool,
    /// The role of the message.
    pub role: Role,
    /// The description that replaces the server's.
    pub description: Option<String>,
    /// The text that replaces the server's messages.
    pub text: Template,
    /// How often the rule failed.
    pub failures: RuleFailures,
}

/// Applies `rules` to the result of `prompts/get` in `variant`, for a client with `features`. `id` is the name of the
/// prompt before a variant renames it.
pub fn apply_prompt_rules(
    rules: &[PromptRule],
    variant: &VariantId,
    (id, called): (&str, &CallContext),
    result: &str,
    features: &Features,
    report: Option<Report<'_>>,
) -> Shaped {
    let candidate = Candidate {
        name: id,
        upstream_name: &called.name,
        server: &called.server,
        hints: None,
    };
    let negotiates = !features.is_empty();
    let about = rules.iter().filter(|rule| {
        (negotiates || rule.applies_to_all)
            && rule.variants.contains(variant)
            && rule.prompts.selects(candidate)
    });
    let conditions: Vec<_> = about.map(|rule| (rule.when.clone(), rule)).collect();
    let chosen = choose_with_condition(&conditions, features);
    let alternative = chosen.and_then(|(when, rule)| Some((when, rule.render(called, result)?)));
    match alternative {
        Some((_, alternative)) if !negotiates => replace_prompt(result, &alternative),
        // Passes the condition of the rule along, because it determines what the report contains.
        Some((when, alternative)) => {
            prompt_result(result, features, &[(when.clone(), alternative)], report)
        }
        None => Shaped::Unchanged,
    }
}

impl PromptRule {
    fn render(&self, called: &CallContext, result: &str) -> Option<PromptAlternative> {
        let text = texts(result);
        let named = [("prompt", &*called.name), ("server", &*called.server)];
        let scope = Scope::new("null", &text, &called.arguments, &named);
        let result = scope.and_then(|scope| self.text.render(&scope));
        let failed = |why: &String| {
            self.failures
                .record(&called.server, &called.name, "text", why)
        };
        let rendered = result.inspect_err(failed).ok()?;
        let alternative = PromptAlternative::new(self.role, &rendered);
        Some(match &self.description {
            Some(description) => alternative.with_description(description),
            None => alternative,
        })
    }
}

/// The texts of the messages, separated by empty lines.
fn texts(result: &str) -> String {
    let result = Members::parse(result).unwrap_or_default();
    let messages = elements(result.get("messages").unwrap_or("[]")).unwrap_or_default();
    let texts = messages.into_iter().filter_map(|message| {
        let message = Members::parse(message).ok()?;
        Members::parse(message.get("content")?)
            .ok()?
            .get_str("text")
    });
    texts.collect::<Vec<_>>().join("\n\n")
}
