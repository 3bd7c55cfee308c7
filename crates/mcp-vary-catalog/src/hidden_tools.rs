//! Why a variant does not list a tool, for a person who asks.

use mcp_vary_view::{Candidate, Pattern, Rule, derive};

use crate::item::Item;
use crate::variant_config::{Base, VariantConfig, candidate};

/// Why a variant does not list a tool.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HiddenReason {
    /// A sentence.
    pub detail: String,
    /// Whether the variant does not list the tool either if an entry for it is added to `tools`, or taken out.
    pub is_locked: bool,
}

impl VariantConfig {
    /// Why the variant does not list a tool of `server`; `None` if its selection lists it.
    ///
    /// The first of these decides: what it starts from, `servers`, `tools.include`, `tools.exclude`. Access rules are not considered.
    pub fn why_hidden(&self, item: &Item, server: &str) -> Option<HiddenReason> {
        let tool = candidate(item, server);
        let because = |detail, is_locked| Some(HiddenReason { detail, is_locked });
        if self.base == Base::ReadOnly && !derive::is_read_only(&item.json) {
            let why =
                "it starts from `read-only`, and the tool does not declare `readOnlyHint: true`";
            return because(why.to_owned(), true);
        }
        if !self.tools.covers(server) {
            return because(format!("its `servers` do not have `{server}`"), true);
        }
        let include = &self.tools.include;
        let exclude = &self.tools.exclude;
        if !include.is_empty() && !include.iter().any(|rule| rule.matches(tool)) {
            let why = "no entry of its `tools.include` matches the tool";
            return because(why.to_owned(), false);
        }
        let at = exclude.iter().position(|rule| is_excluded(rule, tool))?;
        let rule = exclude.get(at)?;
        let detail = format!("`tools.exclude[{at}]` (`{rule}`) matches the tool");
        because(detail, !is_of_one_tool(rule))
    }
}

/// Whether a rule is the name of a tool, or everything, which is there only as long as no tool is listed.
fn is_of_one_tool(rule: &Rule) -> bool {
    let name = rule.name.as_ref().map(Pattern::as_str);
    rule.hints.is_empty() && name.is_some_and(|name| name == "*" || is_literal(name))
}

/// Whether a pattern matches one name alone.
fn is_literal(pattern: &str) -> bool {
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '*' | '?' | '[' | '{' => return false,
            _ => {}
        }
    }
    true
}

/// Whether an entry of `exclude` matches, by the rule of a selection of that entry alone.
fn is_excluded(rule: &Rule, candidate: Candidate<'_>) -> bool {
    let selection = mcp_vary_view::Selection {
        exclude: vec![rule.clone()],
        ..mcp_vary_view::Selection::default()
    };
    !selection.selects(candidate)
}
