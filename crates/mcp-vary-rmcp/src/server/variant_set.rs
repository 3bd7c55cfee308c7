//! The variants of a server: their order for a client, and the one that a request selects.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::cursor::CursorKeys;
use mcp_vary::error::Error;
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::hints::VariantHints;
use mcp_vary::rank::{Ranking, Weights, rank};
use mcp_vary::variant::{ServerVariant, Status, VariantId, Variants, to_settings};
use rmcp::ErrorData;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::errors::to_error_data;
use super::features::{declared_by, era};
use super::header::HeaderPolicy;
use super::ranking_cache::{RankingCache, RankingKey};
use super::rules::{
    ClockFn, Context, DefaultVariantFn, McpResult, PrincipalFn, RankFn, VisibilityFn,
};
use super::selected_handler::SelectedHandler;
use super::variant_handler::VariantHandler;

/// The variants of a server and their settings.
pub(super) struct VariantSet {
    pub(super) variants: Variants,
    /// In the order of `variants`.
    pub(super) handlers: Vec<VariantHandler>,
    pub(super) weights: Weights,
    pub(super) ranker: Option<RankFn>,
    pub(super) default_variant: Option<DefaultVariantFn>,
    pub(super) header: HeaderPolicy,
    pub(super) visibility: Option<VisibilityFn>,
    pub(super) principal: Option<PrincipalFn>,
    pub(super) max_advertised: usize,
    pub(super) advertised_only: bool,
    pub(super) lists_available: bool,
    pub(super) keys: CursorKeys,
    pub(super) page_size: Option<NonZeroUsize>,
    pub(super) clock: ClockFn,
    pub(super) state_lifetime: Duration,
    pub(super) ranking_cache: RankingCache,
}

/// The error for a client that can see no variant and selected none. The request itself is valid.
const NO_VARIANT: &str = "this server has no variant for this client; ask its operator for access";

impl VariantSet {
    /// The principal of a request, to which cursors and states are bound; empty for anonymous
    /// clients.
    pub(super) fn principal(&self, context: &Context) -> String {
        let principal = self.principal.as_ref();
        principal
            .and_then(|principal| principal(context))
            .unwrap_or_default()
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
        let id = self.resolve(&visible, context)?;
        let at = self.variants.iter().position(|variant| variant.id == id);
        let active =
            at.and_then(|at| Some((self.variants.as_slice().get(at)?, self.handlers.get(at)?)));
        match active {
            Some((variant, handler)) => Ok(SelectedHandler {
                variant: Some(&variant.id),
                handler,
                visible,
            }),
            None => Err(self.invalid_variant(&json!(id), &visible, context)),
        }
    }

    /// Finds the variant of a request.
    fn resolve(&self, visible: &[&ServerVariant], context: &Context) -> McpResult<VariantId> {
        let header = self.header.read(context);
        let Some(selector) = context.meta.get(SERVER_VARIANT_META) else {
            let sees = |id: &str| visible.iter().any(|variant| variant.id == *id);
            if let Some(header) =
                header.filter(|id| self.header == HeaderPolicy::Strict && !sees(id))
            {
                return Err(self.invalid_variant(&json!(header), visible, context));
            }
            let first = self.rank(visible, context).first().cloned();
            return first.ok_or_else(|| to_error_data(&Error::VariantsNotSupported));
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
            Some(id) => Ok(id.clone()),
            None => Err(self.invalid_variant(selector, visible, context)),
        }
    }

    /// The settings that advertise the variants to this client; `None` if it can see none.
    pub(super) fn settings_for(&self, context: &Context) -> Option<JsonObject> {
        let visible = self.visible_variants(context);
        let (ids, more) = self.rank(&visible, context).advertise(self.max_advertised);
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
        self.variants
            .iter()
            .filter(|variant| {
                self.visibility
                    .as_ref()
                    .is_none_or(|sees| sees(context, variant))
            })
            .collect()
    }

    /// The order for a client, with the variant from the header or the default rule first.
    fn rank(&self, visible: &[&ServerVariant], context: &Context) -> Arc<Ranking> {
        let key = RankingKey {
            hidden: self.hidden_positions(visible),
            hints: declared_by::<VariantHints>(context).value,
        };
        let ranked = |hints: &VariantHints| self.rank_by_hints(visible, hints);
        let mut ranking = self.ranking_cache.get_or_rank(key, ranked);
        let find = |id: String| visible.iter().find(|variant| variant.id == *id);
        let by_rule = || {
            let rule = self.default_variant.as_ref()?;
            rule(context).and_then(find)
        };
        let by_header = self.header.read(context).and_then(find);
        if let Some(variant) = by_header.or_else(by_rule) {
            Arc::make_mut(&mut ranking).promote(&variant.id);
        }
        ranking
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
        let ranking = self.rank(visible, context);
        ranking.advertise(self.max_advertised).0.contains(id)
    }

    fn invalid_variant(
        &self,
        requested: &Value,
        visible: &[&ServerVariant],
        context: &Context,
    ) -> ErrorData {
        let available = self.lists_available.then(|| {
            let ranking = self.rank(visible, context);
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

mcp_vary_base::debug_by_name!(VariantSet);

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
