//! The variant of a client that names none in `_meta`.
//!
//! The first of these decides: the pin of the credential, the address (`/mcp/v/<id>`), the header
//! `MCP-Server-Variant`, the operator's access rules, those for clients, an experiment, the ranking by hints or by a
//! model. The chosen variant becomes the first of the offers; a selector in `_meta` can still choose any of them. A pin leaves no
//! choice: for that client, the other variants do not exist.

use std::sync::Arc;

use mcp_vary::error::Error;
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::json;
use mcp_vary::rank::DEFAULT_ADVERTISED;
use mcp_vary::variant::{Status, VariantId};
use mcp_vary_audit::LongText;
use mcp_vary_base::environment::Environment;
use mcp_vary_base::log_backoff::LogBackoff;
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_catalog::selection::rankings::{RankedVariants, Rankings};
use mcp_vary_catalog::selection::rules::{ClientRules, RuleOutcome};
use mcp_vary_catalog::selection::variant_selection::{
    DecidedBy, Offers, VariantReason, VariantRequest,
};
use mcp_vary_catalog::variant_set::VariantSet;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use serde_json::Value;
use tracing::{debug, warn};

use crate::pipeline::capabilities::ParsedCapabilities;
use crate::pipeline::model_ranking::{BackgroundTasks, ModelRanking, RankedClient};
use crate::pool::access::AllowedVariants;
use mcp_vary_observation::RankingDetails;
use mcp_vary_session::caller::Caller;
use mcp_vary_settings::config::Config;

/// The client's selector, as JSON text of printable ASCII, truncated.
fn loggable(requested: &Value) -> String {
    let mut shown = String::new();
    for character in requested.to_string().chars().take(128) {
        match character {
            ' '..='~' => shown.push(character),
            other => shown.extend(other.escape_unicode()),
        }
    }
    shown
}

/// Selects the variants of clients, by the operator's configuration.
#[derive(Debug)]
pub(crate) struct VariantSelector {
    /// Whether clients are offered variants.
    is_enabled: bool,
    variant_set: Arc<VariantSet>,
    /// The rules for clients, by the names that they give themselves and the headers that they send.
    pub(crate) rules: ClientRules,
    pub(crate) rankings: Arc<Rankings>,
    /// The ranking by a model, if one is configured.
    pub(crate) model_ranking: Option<Arc<ModelRanking>>,
    /// The variant of clients that no rule matches.
    default: Option<VariantId>,
    /// Whether a header that contradicts `_meta` or the address is an error.
    strict_header: bool,
    /// Whether clients can select only variants that they are offered.
    advertised_only: bool,
    /// Whether errors name the variants that exist for the client (SV-9).
    enumerates: bool,
    environment: Environment,
    /// Clients for which no variant exists.
    excluded: LogBackoff,
}

/// The variants that a client may get, before one is selected.
pub(crate) struct Candidates<'a> {
    /// In the order in which they suit the client.
    pub(crate) order: &'a Arc<[VariantIndex]>,
    /// What access rules let the client use; `None` without rules.
    pub(crate) allowed: Option<Arc<AllowedVariants>>,
    /// The outcome of the rules for clients; `None` for a session, to which they were applied when it began.
    pub(crate) outcome: Option<&'a RuleOutcome>,
}

impl VariantSelector {
    /// The selector of a configuration. What a model ranked under the configuration `before` stays if it is the same.
    pub(crate) fn new(
        config: &Config,
        variant_set: Arc<VariantSet>,
        rules: ClientRules,
        background: BackgroundTasks,
        before: Option<&Self>,
    ) -> Self {
        let rankings = Rankings::new(
            variant_set.variants.clone(),
            config.weights.clone(),
            config.advertised,
        );
        let rankings = Arc::new(rankings);
        let ranking = config.model_ranking.as_ref();
        let model = if config.variants { ranking } else { None };
        let earlier = before.and_then(|before| before.model_ranking.as_ref());
        Self {
            is_enabled: config.variants,
            model_ranking: ModelRanking::new(model, &rankings, background, earlier),
            rankings,
            variant_set,
            rules,
            default: config.selection.default.clone(),
            strict_header: config.selection.strict_header,
            advertised_only: config.advertised_only,
            enumerates: config.enumerate_variants,
            environment: config.environment,
            excluded: LogBackoff::default(),
        }
    }

    /// The variants in the order in which they suit a client by the rules, of those that exist for it: `visible`, or
    /// all. None if variants are off.
    pub(crate) fn ranked_by_rules(
        &self,
        client: &ParsedCapabilities,
        visible: Option<&[VariantIndex]>,
    ) -> Arc<RankedVariants> {
        if !self.is_enabled {
            return Arc::default();
        }
        let now = (self.environment.now)();
        let hints = &client.variant_hints;
        self.rankings.get(hints, &client.hints, visible, now)
    }

    /// The same in the order of the model, if it ranked them for such a client before; else by the rules. Also what decided
    /// the first one.
    pub(crate) fn ranked(
        &self,
        client: &ParsedCapabilities,
        caller: &Caller,
        allowed: Option<&AllowedVariants>,
        era: Era,
    ) -> (Arc<RankedVariants>, DecidedBy) {
        let described = ranked_client(client, caller, allowed, era);
        let by_model = || self.model_ranking.as_ref()?.ranked(described.as_ref()?);
        let visible = allowed.map(|allowed| &*allowed.variants);
        match by_model() {
            // The default of these clients is always that of the rules.
            Some(order) if era == Era::Modern => (order, DecidedBy::Ranking),
            Some(order) => (order, DecidedBy::Model),
            None => (self.ranked_by_rules(client, visible), DecidedBy::Ranking),
        }
    }

    /// The variant of a client with this outcome of the rules, and the rule that names it; `None` if none does.
    fn by_rule(&self, outcome: &RuleOutcome) -> Option<DecidedVariant> {
        let known = |id: &VariantId| self.variant_set.index_of(id.as_str());
        let named = outcome.variant.as_ref();
        let named =
            named.and_then(|(id, rule)| Some((known(id)?, format!("clients[{rule}]").into())));
        named.or_else(|| Some((known(self.default.as_ref()?)?, DEFAULT_RULE.into())))
    }

    /// What ranked the variants of a client: its hints, and the variants that it is offered with their points.
    pub(crate) fn ranking_details(
        &self,
        client: &ParsedCapabilities,
        offers: &Offers,
    ) -> RankingDetails {
        let hints = &client.variant_hints;
        let visible = offers.allowed.as_deref();
        let ranking = self.rankings.ranking(hints, visible);
        let texts = hints
            .iter()
            .flat_map(|(key, values)| values.iter().map(move |value| format!("{key}={value}")));
        let order = offers.order.iter().filter_map(|index| {
            let id = self.variant_set.id(*index)?;
            let ranked = ranking.entries().iter().find(|ranked| ranked.id == *id)?;
            Some(format!("{id}={}", ranked.score))
        });
        RankingDetails {
            hints: long_text(&texts.collect::<Vec<_>>()),
            order: long_text(&order.collect::<Vec<_>>()),
        }
    }

    /// The variants of a client, with the selected one first. `experiment` returns the variant of the client's arm; that of
    /// a session was applied when it began.
    ///
    /// # Errors
    ///
    /// `-32602` when no variant exists for the client, or the address or the header names none of its variants; `-32020`,
    /// or `-32602` to legacy clients, when the header contradicts `_meta` or the address and must not.
    pub(crate) fn select(
        &self,
        candidates: &Candidates<'_>,
        request: &VariantRequest,
        params: &Params<'_>,
        experiment: impl FnOnce(&Offers) -> Option<DecidedVariant>,
    ) -> Result<Offers, RpcError> {
        let allowed = candidates.allowed.as_deref();
        let by_access = || Some((allowed?.default?, allowed?.rule.clone()?));
        let pinned = self.pinned_variant(candidates, request);
        let mut offers = pinned.ok_or_else(|| self.no_variant(request, params))?;
        let Some(named) = request.path.as_ref().or(request.header.as_ref()) else {
            if offers.pin.is_none() {
                let ruled = by_access().or_else(|| self.by_rule(candidates.outcome?));
                let by_rule = ruled.filter(|(index, _)| offers.allows(*index));
                let (by, decided) = match by_rule {
                    Some(_) => (DecidedBy::Rule, by_rule),
                    None => (DecidedBy::Experiment, experiment(&offers)),
                };
                if let Some((index, rule)) = decided {
                    offers.reason = VariantReason::new(by, Some(rule));
                    self.promote(&mut offers.order, index);
                }
            }
            return Ok(offers);
        };
        if !self.is_enabled {
            return Err(RpcError::from(&Error::VariantsNotSupported));
        }
        let found = self
            .variant_set
            .index_of(named)
            .filter(|index| offers.allows(*index));
        let requested = || Value::String(named.clone());
        let index = found.ok_or_else(|| self.invalid_variant(&offers, &requested()))?;
        self.check_header(request, params)?;
        if offers.pin.is_none() {
            self.promote(&mut offers.order, index);
        }
        let by = match request.path {
            Some(_) => DecidedBy::Address,
            None => DecidedBy::Header,
        };
        offers.reason = by.into();
        Ok(offers)
    }

    /// The candidates as far as the credential of the request allows them; `None` if it allows none, for example since it is
    /// pinned to a variant that no longer exists.
    fn pinned_variant(
        &self,
        candidates: &Candidates<'_>,
        request: &VariantRequest,
    ) -> Option<Offers> {
        let rules = candidates.allowed.as_deref();
        let allowed = rules.map(|rules| Arc::clone(&rules.variants));
        let by_rule = || rules.and_then(|rules| Some((rules.pin.as_ref()?, rules.rule.clone())));
        let by_credential = request.pin.as_ref().map(|pin| (pin, None));
        let Some((pin, rule)) = by_credential.or_else(by_rule) else {
            return Some(Offers {
                order: self.visible_order(candidates.order, allowed.as_ref())?,
                pin: None,
                allowed,
                reason: VariantReason::default(),
            });
        };
        let found = self.variant_set.index_of(pin.as_str());
        let is_allowed = |index: &VariantIndex| {
            allowed
                .as_ref()
                .is_none_or(|allowed| allowed.contains(index))
        };
        let index = found.filter(is_allowed)?;
        let is_offered = self.is_enabled;
        Some(Offers {
            order: is_offered.then_some(index).into_iter().collect(),
            pin: Some(index),
            allowed,
            reason: VariantReason::new(DecidedBy::Pin, rule),
        })
    }

    /// `order` without the variants that do not exist for the client. If it is left without any, those that exist are
    /// offered, the more stable ones first; `None` if none exists.
    fn visible_order(
        &self,
        order: &Arc<[VariantIndex]>,
        allowed: Option<&Arc<[VariantIndex]>>,
    ) -> Option<Arc<[VariantIndex]>> {
        let Some(allowed) = self.is_enabled.then_some(allowed).flatten() else {
            return Some(Arc::clone(order));
        };
        let visible: Arc<[_]> = order
            .iter()
            .copied()
            .filter(|index| allowed.contains(index))
            .collect();
        if visible.is_empty() {
            let all = self.variant_set.variants.as_slice();
            let mut others = allowed.to_vec();
            others.sort_by_key(|index| index.get(all).map(|variant| variant.status));
            others.truncate(DEFAULT_ADVERTISED);
            (!others.is_empty()).then(|| others.into())
        } else {
            Some(visible)
        }
    }

    /// The error for a client for which no variant exists. A variant that it selects is an invalid one; otherwise, the
    /// request itself is valid.
    fn no_variant(&self, request: &VariantRequest, params: &Params<'_>) -> RpcError {
        match requested_variant(request, params) {
            Some(requested) => self.invalid(&requested, Vec::new()),
            None => RpcError::invalid_params(NO_VARIANT),
        }
    }

    /// Logs that no variant exists for a client, since `rule` leaves none.
    pub(crate) fn log_excluded(&self, rule: &str) {
        if let Some(count) = self.excluded.next() {
            warn!(
                rule,
                count, "no variant exists for a client; change the rules for its variants"
            );
        }
    }

    /// The variants that a client can select, if it was offered `order`: all that are `allowed`, or those of `order`
    /// alone.
    pub(crate) fn selectable(
        &self,
        order: &[VariantIndex],
        allowed: Option<Arc<AllowedVariants>>,
    ) -> Option<Arc<AllowedVariants>> {
        if !self.advertised_only {
            return allowed;
        }
        let is_allowed = |index: &&VariantIndex| {
            let mut rules = allowed.iter();
            rules.all(|rules| rules.variants.contains(index))
        };
        let variants: Arc<[_]> = order.iter().filter(is_allowed).copied().collect();
        if variants.is_empty() {
            return allowed;
        }
        let rules = allowed.as_deref().cloned().unwrap_or_default();
        Some(Arc::new(AllowedVariants { variants, ..rules }))
    }

    /// Restricts a client of 2026-07-28 to the variants that it is offered, if that is configured.
    pub(crate) fn restrict_to_offered(&self, offers: &mut Offers) {
        if self.advertised_only && !offers.order.is_empty() {
            offers.allowed = Some(Arc::clone(&offers.order));
        }
    }

    /// SV-18: `_meta` and the address win over the header, unless the operator wants them to agree.
    fn check_header(&self, request: &VariantRequest, params: &Params<'_>) -> Result<(), RpcError> {
        let written = request.header.as_deref();
        let Some(header) = self.strict_header.then_some(written).flatten() else {
            return Ok(());
        };
        let path = request.path.clone().map(Value::String);
        let member = params.meta.get(SERVER_VARIANT_META);
        let selector = member.map(|text| json::to_value(text).unwrap_or_default());
        let others = [path, selector];
        let Some(other) = others.iter().flatten().find(|other| **other != *header) else {
            return Ok(());
        };
        let era = if params.is_modern() {
            Era::Modern
        } else {
            Era::Legacy
        };
        Err(RpcError::from(&Error::header_variant_mismatch(
            header, other, era,
        )))
    }

    /// SV-9: the error names every variant that the client can choose, those of its order first, unless the operator wants
    /// none named.
    pub(crate) fn invalid_variant(&self, offers: &Offers, requested: &Value) -> RpcError {
        debug!(requested = %loggable(requested), "variant refused");
        let order = &offers.order;
        let others = self
            .variant_set
            .indices()
            .filter(|index| !order.contains(index));
        let all = order.iter().copied().chain(others);
        let visible = all.filter(|index| offers.allows(*index));
        let ids = visible.map(|index| {
            self.variant_set
                .config(index.declared_view())
                .variant
                .id
                .clone()
        });
        self.invalid(requested, ids.collect())
    }

    fn invalid(&self, requested: &Value, available: Vec<VariantId>) -> RpcError {
        let available = self.enumerates.then_some(available);
        RpcError::from(&Error::invalid_variant(requested, available))
    }

    /// Moves `first` to the front of `order`, which gets no longer than may be advertised.
    ///
    /// > The first is the default. (SV-2: whatever fixes a client's default moves that variant to the front.)
    fn promote(&self, order: &mut Arc<[VariantIndex]>, first: VariantIndex) {
        if order.first().is_none_or(|index| *index == first) {
            return;
        }
        let others = order.iter().copied().filter(|index| *index != first);
        let mut all: Vec<_> = std::iter::once(first).chain(others).collect();
        let is_stable = |index: &VariantIndex| {
            let variant = index.get(self.variant_set.variants.as_slice());
            variant.is_some_and(|variant| variant.status == Status::Stable)
        };
        while all.len() > self.rankings.advertised.max(order.len()) {
            // One stable variant stays beside the default, if there is one (SV-3).
            let stable = all.iter().skip(1).filter(|index| is_stable(index)).count();
            let removed = (1..all.len())
                .rev()
                .find(|at| stable > 1 || !is_stable(&all[*at]));
            all.remove(removed.unwrap_or(all.len() - 1));
        }
        *order = all.into();
    }
}

/// A variant that a rule or an experiment decided on, and the name of that.
pub(crate) type DecidedVariant = (VariantIndex, Arc<str>);

/// The variant that a request selects by its address, its header or in `_meta`.
pub(crate) fn requested_variant(request: &VariantRequest, params: &Params<'_>) -> Option<Value> {
    let head = request.path.as_ref().or(request.header.as_ref());
    let selector = || params.meta.get(SERVER_VARIANT_META);
    let by_head = head.map(|id| Value::String(id.clone()));
    by_head.or_else(|| Some(json::to_value(selector()?).unwrap_or_default()))
}

/// The error for a client that selects no variant, and for which none exists.
const NO_VARIANT: &str = "this server has no variant for this client; ask its operator for access";

/// The name of the rule that applies to clients that no other one matches.
const DEFAULT_RULE: &str = "variant";

fn long_text(texts: &[String]) -> Option<LongText> {
    (!texts.is_empty()).then(|| LongText::new(texts.join(" ")))
}

/// The client for which variants are ranked; `None` if its credential leaves it no choice.
fn ranked_client<'a>(
    client: &'a ParsedCapabilities,
    caller: &'a Caller,
    allowed: Option<&'a AllowedVariants>,
    era: Era,
) -> Option<RankedClient<'a>> {
    let is_pinned =
        caller.requested.pin.is_some() || allowed.is_some_and(|allowed| allowed.pin.is_some());
    (!is_pinned).then(|| RankedClient {
        hints: &client.variant_hints,
        hints_key: &client.hints,
        visible: allowed.map(|allowed| &*allowed.variants),
        principal: caller.principal.as_ref(),
        address: caller.address,
        era,
    })
}

#[cfg(test)]
mod tests;
