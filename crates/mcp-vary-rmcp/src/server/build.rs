//! Checks a declaration and builds the server.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcp_vary::cursor::CursorKeys;
use mcp_vary::rank::{DEFAULT_ADVERTISED, Weights};
use mcp_vary::variant::{Date, Variants};

use super::build_error::{BuildDiagnostic, BuildError};
use super::builder::Builder;
use super::header::HeaderPolicy;
use super::ranking_cache::RankingCache;
use super::variant_set::VariantSet;
use super::vary_server::{CapabilitiesCache, Handlers, ServerState, VaryServer};

impl Builder {
    /// Checks the declaration and builds the server.
    ///
    /// # Errors
    ///
    /// Returns all problems of the declaration.
    pub fn build(mut self) -> Result<VaryServer, BuildError> {
        let mut problems = self.diagnostics();
        let handler = self.handler.take();
        let (handlers, warnings) = match handler {
            Some(handler) if self.variants.is_empty() => {
                (Some(Handlers::Single(Box::new(handler))), Vec::new())
            }
            _ => self.variant_set(&mut problems),
        };
        match handlers {
            Some(handlers) if problems.is_empty() => {
                for warning in &warnings {
                    tracing::warn!(%warning, "variant declared with a warning");
                }
                Ok(VaryServer::new_with(ServerState {
                    handlers,
                    negotiates_content: self.negotiates_content,
                    required_extensions: self.required_extensions,
                    extensions: self
                        .extensions
                        .into_iter()
                        .filter_map(|(id, settings)| Some((id, settings?)))
                        .collect(),
                    warnings,
                    capabilities_cache: CapabilitiesCache::default(),
                }))
            }
            _ => Err(BuildError(problems)),
        }
    }

    fn diagnostics(&self) -> Vec<BuildDiagnostic> {
        let mut problems = Vec::new();
        match (&self.handler, self.variants.is_empty()) {
            (None, true) => problems.push(BuildDiagnostic::NothingToServe),
            (Some(_), false) => problems.push(BuildDiagnostic::HandlerAndVariants),
            (Some(_), true) if self.has_variant_settings() => {
                problems.push(BuildDiagnostic::NoVariants);
            }
            _ => {}
        }
        let unsettled = self
            .extensions
            .iter()
            .filter(|(_, settings)| settings.is_none());
        problems.extend(unsettled.map(|(id, _)| BuildDiagnostic::SettingsNotObject(id.clone())));
        if self
            .max_advertised
            .is_some_and(|limit| !(2..=DEFAULT_ADVERTISED).contains(&limit))
        {
            problems.push(BuildDiagnostic::AdvertisedOutOfRange);
        }
        let handlers = self
            .variants
            .iter()
            .map(|(variant, handler)| (Some(&variant.id), handler));
        for (variant, handler) in handlers.chain(self.handler.iter().map(|handler| (None, handler)))
        {
            let views = handler.view.iter().flat_map(|view| view.diagnostics());
            problems.extend(views.map(|what| BuildDiagnostic::View {
                variant: variant.cloned(),
                what,
            }));
        }
        problems
    }

    fn has_variant_settings(&self) -> bool {
        self.ranker.is_some()
            || self.default_variant.is_some()
            || self.header != HeaderPolicy::Ignored
            || self.state_lifetime.is_some()
            || self.visibility.is_some()
            || self.max_advertised.is_some()
            || self.advertised_only
            || self.hides_available
            || self.keys.is_some()
            || self.page_size.is_some()
            || self.weights != Weights::default()
    }

    fn variant_set(
        &mut self,
        problems: &mut Vec<BuildDiagnostic>,
    ) -> (Option<Handlers>, Vec<mcp_vary::variant::Warning>) {
        if self.variants.is_empty() {
            return (None, Vec::new());
        }
        let (declared, handlers): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.variants).into_iter().unzip();
        let (variants, warnings) =
            match Variants::new(declared, self.today.unwrap_or(Date::from_unix(0))) {
                Ok(checked) => checked,
                Err(wrong) => {
                    problems.extend(
                        wrong
                            .as_slice()
                            .iter()
                            .cloned()
                            .map(BuildDiagnostic::Variant),
                    );
                    return (None, Vec::new());
                }
            };
        let Some(keys) = self.keys.take().or_else(random_keys) else {
            problems.push(BuildDiagnostic::NoRandomness);
            return (None, warnings);
        };
        let variant_set = VariantSet {
            variants,
            handlers,
            weights: std::mem::take(&mut self.weights),
            ranker: self.ranker.take(),
            default_variant: self.default_variant.take(),
            header: self.header,
            visibility: self.visibility.take(),
            principal: self.principal.take(),
            max_advertised: self.max_advertised.unwrap_or(DEFAULT_ADVERTISED),
            advertised_only: self.advertised_only,
            lists_available: !self.hides_available,
            keys,
            page_size: self.page_size,
            clock: self.clock.take().unwrap_or_else(|| Arc::new(system_clock)),
            state_lifetime: self.state_lifetime.unwrap_or(STATE_LIFETIME),
            ranking_cache: RankingCache::default(),
        };
        (Some(Handlers::Variants(Box::new(variant_set))), warnings)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the lifetime of states needs the same clock in every replica; an author may set another"
)]
fn system_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// One hour: enough for a person to log in at another site.
const STATE_LIFETIME: Duration = Duration::from_secs(60 * 60);

fn random_keys() -> Option<CursorKeys> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).ok()?;
    Some(CursorKeys::new(key))
}
