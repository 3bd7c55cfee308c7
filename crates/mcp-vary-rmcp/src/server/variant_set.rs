//! The variants of a server: their order for a client, and the one that a request selects.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::cursor::CursorKeys;
use mcp_vary::error::Error;
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::hints::VariantHints;
use mcp_vary::rank::{Ranking, Weights, rank};
use mcp_vary::variant::{ServerVariant, Status, VariantId, Variants, to_settings};
use mcp_vary_access::AccessClass;
use rmcp::ErrorData;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::async_ranking::AsyncRanking;
use super::clients::Clients;
use super::errors::to_error_data;
use super::features::{declared_by, era};
use super::header::HeaderPolicy;
use super::permissions::Permissions;
use super::ranking_cache::{RankingCache, RankingKey};
use super::request_record::RequestRecord;
use super::rules::{ClockFn, Context, DefaultVariantFn, McpResult, RankFn, VisibilityFn};
use super::selected_handler::SelectedHandler;
use super::selection::{
    AuditFn, SelectionOutcome, SelectionSource, Switch, SwitchCounters, SwitchRefused,
    VariantSelection,
};
use super::variant_handler::VariantHandler;
use crate::switch_limit::SwitchLimit;

/// The variants of a server and their settings.
pub(super) struct VariantSet {
    pub(super) variants: Variants,
    /// In the order of `variants`.
    pub(super) handlers: Vec<VariantHandler>,
    pub(super) weights: Weights,
    pub(super) ranker: Option<RankFn>,
    pub(super) async_ranking: Option<AsyncRanking>,
    pub(super) default_variant: Option<DefaultVariantFn>,
    pub(super) header: HeaderPolicy,
    pub(super) switch_limit: Option<SwitchLimit>,
    pub(super) audit: Option<AuditFn>,
    pub(super) visibility: Option<VisibilityFn>,
    pub(super) clients: Clients,
    pub(super) permissions: Option<Arc<Permissions>>,
    pub(super) max_advertised: usize,
    pub(super) advertised_only: bool,
    pub(super) lists_available: bool,
    pub(super) keys: CursorKeys,
    pub(super) page_size: Option<NonZeroUsize>,
    pub(super) clock: ClockFn,
    pub(super) state_lifetime: Duration,
    pub(super) ranking_cache: RankingCache,
    pub(super) client_switches: SwitchCounters,
}

/// The error for a client that can see no variant and selected none. The request itself is valid.
const NO_VARIANT: &str = "this server has no variant for this client; ask its operator for access";

impl VariantSet {
    /// The id of the principal, to which cursors and states are bound.
    pub(super) fn principal_id(&self, context: &Context) -> String {
        self.clients.principal_id(context)
    }

    /// Selects the variant of a request: the one it names, or the client's default.
    pub(super) fn select(&self, context: &Context) -> McpResult<SelectedHandler<'_>> {
        let visible = self.visible_variants(context);
        if visible.is_empty() {
            return Err(match context.meta.get(SERVER_VARIANT_META) {
                Some(_) => to_error_data(&Error::VariantsNotSupported),
                // Falling back to another variant would show items that are hidden from this
                // client.
                None => ErrorData::invalid_params(NO_VARIANT, None),
            });
        }
        let found = self.resolve(&visible, context);
        let (id, source) = found.inspect_err(|error| {
            let selector = context.meta.get(SERVER_VARIANT_META).cloned();
            let requested = selector.or_else(|| self.header.read(context).map(Value::from));
            RequestRecord::of(context).variant_refused(&requested.unwrap_or_default());
            self.audit_selection(&visible, context, SelectionOutcome::Rejected(error));
        })?;
        let at = self.variants.iter().position(|variant| variant.id == id);
        let active =
            at.and_then(|at| Some((self.variants.as_slice().get(at)?, self.handlers.get(at)?)));
        match active {
            Some((variant, handler)) => Ok(SelectedHandler {
                variant: Some(&variant.id),
                handler,
                permissions: None,
                source,
                visible,
            }),
            None => Err(self.invalid_variant(&json!(id), &visible, context)),
        }
    }

    /// Finds the variant of a request, and what selected it.
    fn resolve(
        &self,
        visible: &[&ServerVariant],
        context: &Context,
    ) -> McpResult<(VariantId, SelectionSource)> {
        let header = self.header.read(context);
        let Some(selector) = context.meta.get(SERVER_VARIANT_META) else {
            let sees = |id: &str| visible.iter().any(|variant| variant.id == *id);
            if let Some(header) =
                header.filter(|id| self.header == HeaderPolicy::Strict && !sees(id))
            {
                return Err(self.invalid_variant(&json!(header), visible, context));
            }
            let (ranking, source) = self.rank(visible, context);
            let first = ranking.first().cloned();
            return match first {
                Some(id) => Ok((id, source)),
                None => Err(to_error_data(&Error::VariantsNotSupported)),
            };
        };
        if let Some(header) = header {
            let checked = self.header.check(&header, selector, era(context));
            checked.map_err(|error| to_error_data(&error))?;
        }
        let ids = visible.iter().map(|variant| &variant.id);
        let found = selector.as_str().and_then(|wanted| {
            ids.into_iter()
                .find(|id| **id == *wanted)
                .filter(|id| !self.advertised_only || self.is_advertised(id, visible, context))
        });
        match found {
            Some(id) => Ok((id.clone(), SelectionSource::Selector)),
            None => Err(self.invalid_variant(selector, visible, context)),
        }
    }

    /// Whether switches are limited or audited.
    pub(super) fn tracks_selections(&self) -> bool {
        self.switch_limit.is_some() || self.audit.is_some()
    }

    /// Audits a selection, or returns an error if the client has reached the limit.
    pub(super) fn record_selection(
        &self,
        active: &SelectedHandler<'_>,
        context: &Context,
        switch: Result<Switch, SwitchRefused<'_>>,
    ) -> McpResult<()> {
        let record = RequestRecord::of(context);
        let switch = switch.map_err(|refused| {
            let error = refused.to_error();
            record.limited_by(refused.limit());
            self.audit_selection(&active.visible, context, SelectionOutcome::Rejected(&error));
            error
        })?;
        if active.variant != switch.previous.as_ref() {
            record.variant_selected();
        }
        if let Some(variant) = active.variant.filter(|_| switch.is_new) {
            let outcome = SelectionOutcome::Selected {
                variant,
                previous: switch.previous.as_ref(),
                source: active.source,
            };
            self.audit_selection(&active.visible, context, outcome);
        }
        Ok(())
    }

    fn audit_selection(
        &self,
        visible: &[&ServerVariant],
        context: &Context,
        outcome: SelectionOutcome<'_>,
    ) {
        if let Some(audit) = &self.audit {
            let principal = self.clients.principal(context);
            let selection = VariantSelection {
                principal: principal.as_deref(),
                hints: &declared_by::<VariantHints>(context).value,
                ranking: &self.rank(visible, context).0,
                outcome,
            };
            audit(context, &selection);
        }
    }

    /// The settings that advertise the variants to this client; `None` if it can see none.
    pub(super) fn settings_for(&self, context: &Context) -> Option<JsonObject> {
        let visible = self.visible_variants(context);
        let (ids, more) = self
            .rank(&visible, context)
            .0
            .advertise(self.max_advertised);
        let sees = |id: &VariantId| visible.iter().any(|variant| variant.id == *id);
        let offered: Vec<ServerVariant> = ids
            .iter()
            .filter_map(|id| self.variants.get(id.as_str()))
            .map(|variant| variant.visible_to(sees))
            .collect();
        match to_settings(&offered, more) {
            Some(Value::Object(settings)) => Some(settings),
            _ => None,
        }
    }

    fn visible_variants(&self, context: &Context) -> Vec<&ServerVariant> {
        let class = self.access_class(context);
        let is_offered = |variant: &&ServerVariant| {
            let by_rules = class.as_ref();
            by_rules.is_none_or(|class| class.variants().offers(&variant.id))
        };
        self.variants
            .iter()
            .filter(is_offered)
            .filter(|variant| {
                self.visibility
                    .as_ref()
                    .is_none_or(|sees| sees(context, variant))
            })
            .collect()
    }

    fn access_class(&self, context: &Context) -> Option<Arc<AccessClass>> {
        let permissions = self.permissions.as_ref();
        permissions.and_then(|permissions| permissions.class(context))
    }

    /// The order for a client, with the variant from the header or the default rule first, and what
    /// put it there.
    fn rank(
        &self,
        visible: &[&ServerVariant],
        context: &Context,
    ) -> (Arc<Ranking>, SelectionSource) {
        let hints = declared_by::<VariantHints>(context).value;
        let key = RankingKey {
            hidden: self.hidden_positions(visible),
            hints,
        };
        let ranked = |hints: &VariantHints| self.rank_by_hints(visible, hints);
        let mut ranking = match &self.async_ranking {
            None => self.ranking_cache.get_or_rank(key, ranked),
            Some(async_ranking) => {
                let mut ranking = self.ranking_cache.get_or_rank(key.clone(), ranked);
                async_ranking.apply(&key, visible, &mut ranking);
                ranking
            }
        };
        let rule = || {
            self.default_variant
                .as_ref()
                .and_then(|chosen| chosen(context))
        };
        let by_access = || {
            let class = self.access_class(context)?;
            let default = class.variants().default_variant()?;
            Some(default.as_str().to_owned())
        };
        let chosen: [(SelectionSource, &dyn Fn() -> Option<String>); 3] = [
            (SelectionSource::Header, &|| self.header.read(context)),
            (SelectionSource::Rule, &rule),
            (SelectionSource::Rule, &by_access),
        ];
        for (source, chosen) in chosen {
            if let Some(chosen) = chosen()
                && let Some(variant) = visible.iter().find(|variant| variant.id == *chosen)
            {
                Arc::make_mut(&mut ranking).promote(&variant.id);
                return (ranking, source);
            }
        }
        (ranking, SelectionSource::Ranking)
    }

    /// The positions of the variants that the client cannot see.
    fn hidden_positions(&self, visible: &[&ServerVariant]) -> Vec<usize> {
        let all = self.variants.as_slice();
        if visible.len() == all.len() {
            return Vec::new();
        }
        let sees = |id: &VariantId| visible.iter().any(|variant| variant.id == *id);
        let hidden = all.iter().enumerate().filter(|(_, one)| !sees(&one.id));
        hidden.map(|(at, _)| at).collect()
    }

    /// Ranks by hints, then by the author's function. Variants that it leaves out follow; unknown
    /// positions are ignored.
    fn rank_by_hints(&self, visible: &[&ServerVariant], hints: &VariantHints) -> Ranking {
        let mut ranking = rank(visible.iter().copied(), hints, &self.weights);
        // If no variant can be the default, the order has no effect.
        if let Some(ranker) = &self.ranker
            && best_default(&ranking, hints).is_some()
        {
            let mut order = ranker(visible, hints);
            order.truncate(visible.len());
            for variant in order.iter().rev().filter_map(|at| visible.get(*at)) {
                ranking.promote(&variant.id);
            }
            if let Some(default) = best_default(&ranking, hints) {
                ranking.promote(&default);
            }
        }
        ranking
    }

    fn is_advertised(&self, id: &VariantId, visible: &[&ServerVariant], context: &Context) -> bool {
        let (ranking, _) = self.rank(visible, context);
        ranking.advertise(self.max_advertised).0.contains(id)
    }

    fn invalid_variant(
        &self,
        requested: &Value,
        visible: &[&ServerVariant],
        context: &Context,
    ) -> ErrorData {
        let available = self.lists_available.then(|| {
            let (ranking, _) = self.rank(visible, context);
            if self.advertised_only {
                ranking.advertise(self.max_advertised).0
            } else {
                ranking.ids().cloned().collect()
            }
        });
        tracing::debug!("variant rejected");
        to_error_data(&Error::invalid_variant(requested, available))
    }
}

impl fmt::Debug for VariantSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VariantSet")
            .field("variants", &self.variants)
            .finish_non_exhaustive()
    }
}

/// The best variant that may be the default: a stable one, or an experimental one if the client
/// asks for those.
fn best_default(ranking: &Ranking, hints: &VariantHints) -> Option<VariantId> {
    let may_be_default = |status: Status| match status {
        Status::Stable => true,
        Status::Experimental => hints.requests_experimental(),
        _ => false,
    };
    let entries = ranking.entries();
    let first = entries.iter().find(|entry| may_be_default(entry.status))?;
    Some(first.id.clone())
}
