//! Why a variant does not list a tool, for a person who asks.

use mcp_vary_view::{Candidate, Rule, derive};

use crate::item::Item;
use crate::variant_config::{Base, VariantConfig, candidate};

/// Why a variant does not list a tool.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HiddenReason {
    /// The setting that decides: `from`, `servers` or `tools`.
    pub setting: &'static str,
    /// A sentence.
    pub detail: String,
}

impl VariantConfig {
    /// Why the variant does not list a tool of `server`; `None` if its selection lists it.
    ///
    /// The first of these decides: what it starts from, `servers`, `tools.include`, `tools.exclude`. Access rules are not considered.
    pub fn why_hidden(&self, item: &Item, server: &str) -> Option<HiddenReason> {
        let tool = candidate(item, server);
        let by = |setting, detail| Some(HiddenReason { setting, detail });
        if self.base == Base::ReadOnly && !derive::is_read_only(&item.json) {
            let why =
                "it starts from `read-only`, and the tool does not declare `readOnlyHint: true`";
            return by("from", why.to_owned());
        }
        if !self.tools.covers(server) {
            return by("servers", format!("its `servers` do not have `{server}`"));
        }
        let include = &self.tools.include;
        let exclude = &self.tools.exclude;
        if !include.is_empty() && !include.iter().any(|rule| rule.matches(tool)) {
            let why = "no entry of its `tools.include` matches the tool";
            return by("tools", why.to_owned());
        }
        let at = exclude.iter().position(|rule| is_excluded(rule, tool))?;
        let rule = exclude.get(at)?;
        let detail = format!("`tools.exclude[{at}]` (`{rule}`) matches the tool");
        by("tools", detail)
    }
}

/// Whether an entry of `exclude` matches, by the rule of a selection of that entry alone.
fn is_excluded(rule: &Rule, candidate: Candidate<'_>) -> bool {
    let selection = mcp_vary_view::Selection {
        exclude: vec![rule.clone()],
        ..mcp_vary_view::Selection::default()
    };
    !selection.selects(candidate)
}
