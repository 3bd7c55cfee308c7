//! All variants that a gateway offers, and their views: each variant in each presentation.

use std::sync::Arc;

use mcp_vary::variant::{Date, VariantDiagnostics, VariantId, Variants};
use mcp_vary_view::UriMap;

use super::access::AccessView;
use super::built_in;
use super::index::{VariantIndex, ViewIndex};
use super::variant_config::VariantConfig;
use crate::selection::rules::Presentation;

/// All variants that a gateway offers.
#[derive(Debug)]
pub struct VariantSet {
    /// The variants as they are declared to clients.
    pub variants: Variants,
    /// One for each view: first the variants in the order of [`variants`](Self::variants), then the variants in the
    /// presentations from rules for clients.
    configs: Vec<VariantConfig>,
    /// For each view, the URIs that it gives to resources and templates.
    uris: Vec<Arc<UriMap>>,
    /// For each presentation, the view of each variant.
    presentations: Vec<(Presentation, Vec<ViewIndex>)>,
}

fn uri_maps(all: &[VariantConfig]) -> Vec<Arc<UriMap>> {
    all.iter().map(|config| Arc::new(config.uris())).collect()
}

impl VariantSet {
    /// The variants of a configuration. [`log_warnings`](Self::log_warnings) reports removal dates that are past.
    ///
    /// # Errors
    ///
    /// All errors in the declarations of the variants.
    pub fn new(all: Vec<VariantConfig>) -> Result<Self, VariantDiagnostics> {
        let declared = all.iter().map(|config| config.variant.clone()).collect();
        // With the first day of 1970, no date is past.
        let (variants, _) = Variants::new(declared, Date::from_unix(0))?;
        Ok(Self {
            variants,
            uris: uri_maps(&all),
            configs: all,
            presentations: Vec::new(),
        })
    }

    /// Logs warnings about what is allowed in these variants but probably a mistake, including removal dates that are
    /// past on `today` (SV-1).
    pub fn log_warnings(&self, today: Date) {
        let warnings = Variants::new(self.variants.as_slice().to_vec(), today).map(|(_, it)| it);
        for warning in warnings.unwrap_or_default() {
            tracing::warn!(%warning, "variant declared oddly");
        }
    }

    /// Adds the views of the variants in these presentations.
    pub fn with_presentations(
        declared_set: &Arc<Self>,
        presentations: &[Presentation],
    ) -> Arc<Self> {
        if presentations.is_empty() {
            return Arc::clone(declared_set);
        }
        let declared = declared_set.variants.as_slice().len();
        let mut all = declared_set.configs[..declared].to_vec();
        let mut add = |presentation: &Presentation| {
            let add_one = |variant| {
                let config: &VariantConfig = &declared_set.configs[variant];
                let style = presentation.apply(config.style);
                // Two presentations may result in the same style.
                let mut known = std::iter::once(variant).chain(declared..all.len());
                let is_it = |at: &usize| {
                    let other = &all[*at];
                    other.variant.id == config.variant.id && other.style == style
                };
                let at = known.find(is_it).unwrap_or_else(|| {
                    let mut styled = config.clone();
                    styled.style = style;
                    all.push(styled);
                    all.len() - 1
                });
                ViewIndex::at(at)
            };
            (0..declared).map(add_one).collect()
        };
        let presented = presentations
            .iter()
            .map(|presentation| (*presentation, add(presentation)));
        let presentations = presented.collect();
        Arc::new(Self {
            variants: declared_set.variants.clone(),
            uris: uri_maps(&all),
            configs: all,
            presentations,
        })
    }

    /// The same variants for the clients of an access class.
    pub fn restricted(&self, access: &Arc<AccessView>) -> Arc<Self> {
        let configs = self.configs.iter().cloned().map(|mut config| {
            config.access = Some(Arc::clone(access));
            config
        });
        Arc::new(Self {
            variants: self.variants.clone(),
            configs: configs.collect(),
            uris: self.uris.clone(),
            presentations: self.presentations.clone(),
        })
    }

    /// What the clients of these variants may see at all; `None` without access rules.
    pub fn access(&self) -> Option<&Arc<AccessView>> {
        self.configs.first()?.access.as_ref()
    }

    /// The view of `variant` in a presentation.
    pub fn presented_view(&self, variant: VariantIndex, presentation: Presentation) -> ViewIndex {
        let mut known = self.presentations.iter();
        let same = known.find(|(known, _)| *known == presentation);
        let view = same.and_then(|(_, views)| variant.get(views).copied());
        view.unwrap_or(variant.declared_view())
    }

    /// One configuration for each view.
    pub fn configs(&self) -> &[VariantConfig] {
        &self.configs
    }

    /// The configurations of all views, each with its index.
    pub fn views(&self) -> impl Iterator<Item = (ViewIndex, &VariantConfig)> {
        ViewIndex::enumerate(&self.configs)
    }

    /// The configuration of a view of this set.
    pub fn config(&self, view: ViewIndex) -> &VariantConfig {
        view.entry(&self.configs)
    }

    /// The mapping between the servers' URIs of resources and templates and those of a view of this set.
    pub fn uris(&self, view: ViewIndex) -> &Arc<UriMap> {
        view.entry(&self.uris)
    }

    /// All variants, in the order of declaration.
    pub fn indices(&self) -> impl Iterator<Item = VariantIndex> + use<> {
        (0..self.variants.as_slice().len()).map(VariantIndex::at)
    }

    /// The variant with this id.
    pub fn index_of(&self, id: &str) -> Option<VariantIndex> {
        let mut variants = self.variants.iter();
        let position = variants.position(|variant| *variant.id.as_str() == *id);
        position.map(VariantIndex::at)
    }

    /// The id of a variant. `None` if there are fewer variants.
    pub fn id(&self, variant: VariantIndex) -> Option<&VariantId> {
        let named = variant.get(self.variants.as_slice());
        named.map(|named| &named.id)
    }

    /// The variant that a view shows.
    pub fn variant_of(&self, view: ViewIndex) -> VariantIndex {
        let id = &self.config(view).variant.id;
        self.index_of(id.as_str()).unwrap_or_default()
    }

    /// The built-in variants.
    pub fn built_in() -> Self {
        match Self::new(built_in::variants()) {
            Ok(variant_set) => variant_set,
            // They are constants, and tests build them.
            Err(diagnostics) => unreachable!("the built-in variants are valid: {diagnostics}"),
        }
    }

    /// The ids of the variants, in the order of declaration.
    pub fn ids(&self) -> impl Iterator<Item = VariantId> {
        self.variants.iter().map(|variant| variant.id.clone())
    }
}
