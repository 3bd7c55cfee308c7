//! What is offered to whom: the variants, their order for a client, and the one that is active.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_vary::cursor::CursorKeys;
use mcp_vary::error::{Era, Error, Identifier};
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::hints::VariantHints;
use mcp_vary::rank::{Ranking, Weights, rank};
use mcp_vary::variant::{ServerVariant, Status, VariantId, Variants, to_settings};
use rmcp::model::{ErrorCode, JsonObject};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use super::face::{Face, not_found};
use super::features::{declared_by, era};
use super::header::HeaderRule;
use super::selection::{Askers, Audit, Chooser, Outcome, Selection, Step, TooOften};
use super::wire::{to_error_data, with_active_variant};
use crate::limit::SwitchLimit;

pub(super) type Ranker = Arc<dyn Fn(&[&ServerVariant], &VariantHints) -> Vec<usize> + Send + Sync>;
pub(super) type Sees =
    Arc<dyn Fn(&RequestContext<RoleServer>, &ServerVariant) -> bool + Send + Sync>;
pub(super) type Permits =
    Arc<dyn Fn(&RequestContext<RoleServer>, &Identifier) -> bool + Send + Sync>;
pub(super) type Chosen = Arc<dyn Fn(&RequestContext<RoleServer>) -> Option<String> + Send + Sync>;
pub(super) type Principal = Arc<dyn Fn(&RequestContext<RoleServer>) -> String + Send + Sync>;
pub(super) type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The variants of a server, and the rules by which they are offered.
pub(super) struct Offers {
    pub(super) variants: Variants,
    /// In the order of the variants.
    pub(super) faces: Vec<Face>,
    pub(super) weights: Weights,
    pub(super) ranker: Option<Ranker>,
    pub(super) chosen: Option<Chosen>,
    pub(super) header: HeaderRule,
    pub(super) limit: Option<SwitchLimit>,
    pub(super) audit: Option<Audit>,
    pub(super) sees: Option<Sees>,
    pub(super) principal: Option<Principal>,
    pub(super) advertised: usize,
    pub(super) advertised_only: bool,
    pub(super) enumerates: bool,
    pub(super) keys: CursorKeys,
    pub(super) page_size: Option<NonZeroUsize>,
    pub(super) clock: Clock,
    pub(super) state_lifetime: Duration,
    pub(super) rankings: Rankings,
    pub(super) askers: Askers,
}

/// The face that answers a request, and the variant that it belongs to.
pub(super) struct Active<'a> {
    pub(super) variant: Option<&'a VariantId>,
    pub(super) face: &'a Face,
    pub(super) permits: Option<&'a Permits>,
    by: Chooser,
    visible: Vec<&'a ServerVariant>,
}

impl<'a> Active<'a> {
    /// The face of a server without variants.
    pub(super) fn alone(face: &'a Face) -> Self {
        Self {
            variant: None,
            face,
            permits: None,
            by: Chooser::Ranking,
            visible: Vec::new(),
        }
    }

    /// Whether `own` is permitted, or the answer that `shown` does not exist.
    pub(super) fn check(
        &self,
        context: &RequestContext<RoleServer>,
        own: &Identifier,
        shown: &Identifier,
    ) -> Result<(), ErrorData> {
        match self.permits {
            Some(permits) if !permits(context, own) => {
                Err(not_found(shown.clone(), self.variant, era(context)))
            }
            _ => Ok(()),
        }
    }

    /// An error of the handler about `what`, with the active variant.
    ///
    /// Where something may be hidden, what is not there answers as that does.
    pub(super) fn about(&self, error: ErrorData, what: Identifier, era: Era) -> ErrorData {
        let hides = self.face.view.is_some() || self.permits.is_some();
        match error.code {
            ErrorCode::RESOURCE_NOT_FOUND if hides => not_found(what, self.variant, era),
            // The server has the method, and this variant nothing of its kind.
            ErrorCode::METHOD_NOT_FOUND if self.variant.is_some() => {
                not_found(what, self.variant, era)
            }
            _ => with_active_variant(error, self.variant),
        }
    }

    pub(super) fn sees(&self, id: &VariantId) -> bool {
        self.visible.iter().any(|variant| variant.id == *id)
    }
}

/// What a client reads that sees no variant and selected none: the request as such is not at fault.
const NO_VARIANT: &str = "this server has no variant for this client; ask its operator for access";

impl Offers {
    pub(super) fn principal(&self, context: &RequestContext<RoleServer>) -> String {
        self.principal
            .as_ref()
            .map(|of| of(context))
            .unwrap_or_default()
    }

    /// The variant that a request selects, or the default for its client.
    pub(super) fn select(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Active<'_>, ErrorData> {
        let visible = self.visible(context);
        if visible.is_empty() {
            return Err(match context.meta.get(SERVER_VARIANT_META) {
                Some(_) => to_error_data(&Error::VariantsNotSupported),
                // Falling back to some variant would show what is hidden from this client.
                None => ErrorData::invalid_params(NO_VARIANT, None),
            });
        }
        let found = self.find(&visible, context);
        let (id, by) = found.inspect_err(|error| {
            self.tell(&visible, context, Outcome::Refused(error));
        })?;
        let at = self.variants.iter().position(|variant| variant.id == id);
        let active =
            at.and_then(|at| Some((self.variants.as_slice().get(at)?, self.faces.get(at)?)));
        match active {
            Some((variant, face)) => Ok(Active {
                variant: Some(&variant.id),
                face,
                permits: None,
                by,
                visible,
            }),
            None => Err(self.invalid(&json!(id), &visible, context)),
        }
    }

    /// The variant that a request is to run under, and who says so.
    fn find(
        &self,
        visible: &[&ServerVariant],
        context: &RequestContext<RoleServer>,
    ) -> Result<(VariantId, Chooser), ErrorData> {
        let header = self.header.read(context);
        let Some(selector) = context.meta.get(SERVER_VARIANT_META) else {
            let sees = |id: &str| visible.iter().any(|variant| variant.id == *id);
            if let Some(header) = header.filter(|id| self.header == HeaderRule::Strict && !sees(id))
            {
                return Err(self.invalid(&json!(header), visible, context));
            }
            let (ranking, by) = self.rank(visible, context);
            let first = ranking.first().cloned();
            return match first {
                Some(id) => Ok((id, by)),
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
            Some(id) => Ok((id.clone(), Chooser::Selector)),
            None => Err(self.invalid(selector, visible, context)),
        }
    }

    /// Whether anybody counts or records which variants are chosen.
    pub(super) fn is_watched(&self) -> bool {
        self.limit.is_some() || self.audit.is_some()
    }

    /// Records where a client went, or refuses that it goes so often.
    pub(super) fn settle(
        &self,
        active: &Active<'_>,
        context: &RequestContext<RoleServer>,
        step: Result<Step, TooOften>,
    ) -> Result<(), ErrorData> {
        let step = step.map_err(|often| {
            let error = to_error_data(&Error::TooManySwitches {
                active: often.variant,
                retry_after: often.wait.as_secs_f64().ceil() as u64,
            });
            self.tell(&active.visible, context, Outcome::Refused(&error));
            error
        })?;
        if let Some(variant) = active.variant.filter(|_| step.is_new) {
            let outcome = Outcome::Chosen {
                variant,
                before: step.before.as_ref(),
                by: active.by,
            };
            self.tell(&active.visible, context, outcome);
        }
        Ok(())
    }

    fn tell(
        &self,
        visible: &[&ServerVariant],
        context: &RequestContext<RoleServer>,
        outcome: Outcome<'_>,
    ) {
        if let Some(audit) = &self.audit {
            let selection = Selection {
                principal: &self.principal(context),
                hints: &declared_by::<VariantHints>(context).value,
                ranking: &self.rank(visible, context).0,
                outcome,
            };
            audit(context, &selection);
        }
    }

    /// The settings that advertise what this client may choose from; none when that is nothing.
    pub(super) fn advertise(&self, context: &RequestContext<RoleServer>) -> Option<JsonObject> {
        let visible = self.visible(context);
        let (ids, more) = self.rank(&visible, context).0.advertise(self.advertised);
        let sees = |id: &VariantId| visible.iter().any(|variant| variant.id == *id);
        let offered: Vec<ServerVariant> = ids
            .iter()
            .filter_map(|id| self.variants.get(id.as_str()))
            .map(|variant| variant.seen_by(sees))
            .collect();
        match to_settings(&offered, more) {
            Some(Value::Object(settings)) => Some(settings),
            _ => None,
        }
    }

    fn visible(&self, context: &RequestContext<RoleServer>) -> Vec<&ServerVariant> {
        self.variants
            .iter()
            .filter(|variant| self.sees.as_ref().is_none_or(|sees| sees(context, variant)))
            .collect()
    }

    /// The order for a client, with what was chosen for it from outside at the front, and by whom.
    fn rank(
        &self,
        visible: &[&ServerVariant],
        context: &RequestContext<RoleServer>,
    ) -> (Arc<Ranking>, Chooser) {
        let hints = declared_by::<VariantHints>(context).value;
        let hidden = self.hidden(visible);
        let mut ranking = self
            .rankings
            .of((hidden, hints), |hints| self.order(visible, hints));
        let rule = || self.chosen.as_ref().and_then(|chosen| chosen(context));
        let chosen: [(Chooser, &dyn Fn() -> Option<String>); 2] = [
            (Chooser::Header, &|| self.header.read(context)),
            (Chooser::Rule, &rule),
        ];
        for (by, chosen) in chosen {
            if let Some(chosen) = chosen()
                && let Some(variant) = visible.iter().find(|variant| variant.id == *chosen)
            {
                Arc::make_mut(&mut ranking).put_first(&variant.id);
                return (ranking, by);
            }
        }
        (ranking, Chooser::Ranking)
    }

    /// The positions of what is not visible.
    fn hidden(&self, visible: &[&ServerVariant]) -> Vec<usize> {
        let all = self.variants.as_slice();
        if visible.len() == all.len() {
            return Vec::new();
        }
        let sees = |id: &VariantId| visible.iter().any(|variant| variant.id == *id);
        let hidden = all.iter().enumerate().filter(|(_, one)| !sees(&one.id));
        hidden.map(|(at, _)| at).collect()
    }

    /// The order by hints. What a ranker loses is appended, what it invents is not there.
    fn order(&self, visible: &[&ServerVariant], hints: &VariantHints) -> Ranking {
        let mut ranking = rank(visible.iter().copied(), hints, &self.weights);
        // Where nothing can be the default, an order changes nothing.
        if let Some(ranker) = &self.ranker
            && default(&ranking, hints).is_some()
        {
            let mut order = ranker(visible, hints);
            order.truncate(visible.len());
            for variant in order.iter().rev().filter_map(|at| visible.get(*at)) {
                ranking.put_first(&variant.id);
            }
            if let Some(default) = default(&ranking, hints) {
                ranking.put_first(&default);
            }
        }
        ranking
    }

    fn is_advertised(
        &self,
        id: &VariantId,
        visible: &[&ServerVariant],
        context: &RequestContext<RoleServer>,
    ) -> bool {
        let (ranking, _) = self.rank(visible, context);
        ranking.advertise(self.advertised).0.contains(id)
    }

    fn invalid(
        &self,
        requested: &Value,
        visible: &[&ServerVariant],
        context: &RequestContext<RoleServer>,
    ) -> ErrorData {
        let available = self.enumerates.then(|| {
            let (ranking, _) = self.rank(visible, context);
            match self.advertised_only {
                true => ranking.advertise(self.advertised).0,
                false => ranking.ids().cloned().collect(),
            }
        });
        tracing::debug!("variant refused");
        to_error_data(&Error::invalid_variant(requested, available))
    }
}

impl fmt::Debug for Offers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offers")
            .field("variants", &self.variants)
            .finish_non_exhaustive()
    }
}

/// The rankings that were made of late, by what is hidden from a client and by its hints.
///
/// Nobody's name is in the key: two principals who see the same get the same. No time limits them,
/// since nothing else goes into a ranking.
#[derive(Default)]
pub(super) struct Rankings(Mutex<BTreeMap<Asking, Arc<Ranking>>>);

/// The positions of the hidden variants, and the client's hints.
type Asking = (Vec<usize>, VariantHints);

impl Rankings {
    fn of(&self, asking: Asking, rank: impl FnOnce(&VariantHints) -> Ranking) -> Arc<Ranking> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ranking) = known().get(&asking) {
            return Arc::clone(ranking);
        }
        // Not while it is locked: a ranker of the author's may take its time.
        let ranking = Arc::new(rank(&asking.1));
        let mut known = known();
        if known.len() >= MAX_RANKINGS {
            known.clear();
        }
        known.insert(asking, Arc::clone(&ranking));
        ranking
    }
}

/// The best that may be the default: a stable one, or an experimental one for a client that asks.
fn default(ranking: &Ranking, hints: &VariantHints) -> Option<VariantId> {
    let may_be_default = |status: Status| match status {
        Status::Stable => true,
        Status::Experimental => hints.asks_for_experimental(),
        _ => false,
    };
    let entries = ranking.entries();
    let first = entries.iter().find(|entry| may_be_default(entry.status))?;
    Some(first.id.clone())
}

/// How many rankings are kept. Hints have at most 70 KiB; those of real clients have few words.
const MAX_RANKINGS: usize = 64;
