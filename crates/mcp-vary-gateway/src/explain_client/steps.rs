//! What each step of the order finds.

use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_catalog::selection::rules::RuleOutcome;
use mcp_vary_catalog::selection::variant_selection::{DecidedBy, Offers, VariantReason};
use mcp_vary_wire::response::RpcError;

use super::{ExplainedStep, Question};
use crate::pool::access::AllowedVariants;

/// What the steps of the order find.
pub(super) struct Steps<'a> {
    pub(super) question: &'a Question<'a>,
    pub(super) allowed: Option<&'a AllowedVariants>,
    pub(super) outcome: &'a RuleOutcome,
}

impl Steps<'_> {
    /// The steps, and which of them decides.
    pub(super) fn explained(
        &self,
        reason: &VariantReason,
        offers: &Offers,
        selected: VariantIndex,
    ) -> Vec<ExplainedStep> {
        let by_access = self.allowed.and_then(|allowed| allowed.rule.as_ref());
        let decided = match reason.by {
            DecidedBy::Rule if by_access.is_some() && reason.rule.as_ref() == by_access => "access",
            DecidedBy::Model => "ranking",
            by => by.as_str(),
        };
        let selected_id = self.question.id_of(selected);
        let id = selected_id.map_or_else(String::new, ToString::to_string);
        let experiment = match reason.by {
            DecidedBy::Experiment => {
                let name = reason.rule.as_deref().unwrap_or_default();
                format!("the experiment `{name}` assigns `{id}`")
            }
            _ if self.question.snapshot.experiments.is_empty() => "there is none".to_owned(),
            _ => "none assigns a variant to this client, as far as it is known here".to_owned(),
        };
        let first = offers.order.first().and_then(|at| self.question.id_of(*at));
        let ranking = match first {
            _ if decided != "ranking" => "by the hints; an earlier step decides".to_owned(),
            Some(first) => format!("`{first}` ranks first, by the client's hints if it has any"),
            None => "variants are off".to_owned(),
        };
        let before = self.before_ranking().into_iter();
        let steps = before.chain([("experiment", experiment), ("ranking", ranking)]);
        explained_steps(steps, decided)
    }

    /// The steps of a request that is refused for this reason.
    pub(super) fn refused(&self, refusal: &RpcError) -> Vec<ExplainedStep> {
        let before = self.before_ranking().into_iter();
        let steps = before.chain([("refused", refusal.message().to_owned())]);
        explained_steps(steps, "refused")
    }

    fn before_ranking(&self) -> [(&'static str, String); 6] {
        let Question {
            requested, params, ..
        } = self.question;
        let pin = self.allowed.and_then(|allowed| allowed.pin.as_ref());
        let rule = self.allowed.and_then(|allowed| allowed.rule.as_deref());
        let access_rule = rule.unwrap_or("access");
        let none = |what: &str| format!("{what} names no variant");
        let named = |what: &str, id: &str| format!("{what} names `{id}`");
        let member = params.meta.get(SERVER_VARIANT_META);
        let selector = member.map(|id| format!("`_meta` selects {id}"));
        let address = requested.path.as_ref().map(|id| named("the address", id));
        let written = requested.header.as_ref();
        let header = written.map(|id| named("the header `MCP-Server-Variant`", id));
        let index = self.allowed.and_then(|allowed| allowed.default);
        let default = index.and_then(|index| self.question.id_of(index));
        let access = match (self.allowed, default) {
            (None, _) => "there are no access rules".to_owned(),
            (Some(_), Some(id)) => format!("the rule `{access_rule}` gives `{id}`"),
            (Some(allowed), None) => {
                let indices = allowed.variants.iter();
                let known = indices.filter_map(|index| self.question.id_of(*index));
                let ids: Vec<_> = known.map(|id| format!("`{id}`")).collect();
                format!(
                    "no rule gives a variant; the client may use {}",
                    ids.join(", ")
                )
            }
        };
        [
            (
                "pin",
                pin.map_or_else(
                    || "no rule leaves the client one variant alone".to_owned(),
                    |id| format!("the rule `{access_rule}` leaves `{id}` alone"),
                ),
            ),
            (
                "selector",
                selector.unwrap_or_else(|| "`_meta` selects no variant".to_owned()),
            ),
            ("address", address.unwrap_or_else(|| none("the address"))),
            (
                "header",
                header.unwrap_or_else(|| none("the header `MCP-Server-Variant`")),
            ),
            ("access", access),
            ("rule", self.client_rule()),
        ]
    }

    fn client_rule(&self) -> String {
        let selection = &self.question.snapshot.config.selection;
        match (&self.outcome.variant, &selection.default) {
            (Some((id, at)), _) => {
                let is_written = *at < selection.rules.len();
                let built_in = if is_written {
                    ""
                } else {
                    ", which is built in,"
                };
                format!("`clients[{at}]`{built_in} gives `{id}`")
            }
            (None, Some(id)) => {
                format!("no rule of `clients` that has a variant matches; `variant` gives `{id}`")
            }
            (None, None) => {
                "no rule of `clients` that has a variant matches, and `variant` is not set"
                    .to_owned()
            }
        }
    }
}

/// The steps, of which the one with the name `decided` decides.
fn explained_steps(
    steps: impl Iterator<Item = (&'static str, String)>,
    decided: &str,
) -> Vec<ExplainedStep> {
    let explained = steps.map(|(step, detail)| ExplainedStep {
        step,
        decided: step == decided,
        detail,
    });
    explained.collect()
}
