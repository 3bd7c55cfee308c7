//! A variant of a file, before it becomes the configuration of a variant.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_vary::feature::Features;
use mcp_vary::variant::{DeprecationInfo, ServerVariant, Status, VariantId};
use mcp_vary_catalog::variant_config::{Base, VariantConfig};
use mcp_vary_view::{
    ArgumentCheck, Description, Dialect, ResultFields, Rule, SchemaStyle, Selection,
};

use super::overrides::Overrides;

/// A variant while it is read: the settings that apply on top of what it starts from.
#[derive(Default)]
pub(super) struct PartialVariant {
    pub(super) id: Option<VariantId>,
    pub(super) from: Option<String>,
    pub(super) description: Option<String>,
    pub(super) hints: Option<BTreeMap<String, String>>,
    pub(super) status: Option<Status>,
    pub(super) deprecation: Option<DeprecationInfo>,
    pub(super) priority: Option<u32>,
    pub(super) tools: Option<Selection>,
    pub(super) resources: Option<Selection>,
    pub(super) prompts: Option<Selection>,
    pub(super) descriptions: Option<Description>,
    pub(super) schemas: Option<SchemaStyle>,
    pub(super) keep_schemas: Option<Vec<Rule>>,
    pub(super) check: Option<ArgumentCheck>,
    pub(super) search_above: Option<usize>,
    pub(super) dialect: Option<Option<Dialect>>,
    pub(super) result: Option<ResultFields>,
    pub(super) features: Option<Features>,
    pub(super) overrides: Overrides,
}

impl PartialVariant {
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_ref().map(VariantId::as_str)
    }

    /// Applies the settings of this variant on top of `start`.
    pub(super) fn on(&self, start: VariantConfig) -> VariantConfig {
        let mut face = start;
        let Some(id) = &self.id else { return face };
        self.leave_compact(&mut face);
        let is_start = face.variant.id == *id;
        let mut variant = if is_start {
            face.variant.clone()
        } else {
            // Status and deprecation are not inherited.
            let mut variant = ServerVariant::new(id.clone(), face.variant.description.clone());
            variant.hints = face.variant.hints.clone();
            variant
        };
        if let Some(description) = &self.description {
            variant.description.clone_from(description);
        }
        variant.hints = self.hints.clone().unwrap_or(variant.hints);
        variant.status = self.status.unwrap_or(variant.status);
        if let Some(info) = &self.deprecation {
            variant.status = self.status.unwrap_or(Status::Deprecated);
            variant.deprecation_info = Some(info.clone());
        }
        variant.priority = self.priority.unwrap_or(variant.priority);
        face.variant = variant;
        face.tools = self.tools.clone().unwrap_or(face.tools);
        face.resources = self.resources.clone().unwrap_or(face.resources);
        face.prompts = self.prompts.clone().unwrap_or(face.prompts);
        self.set_schemas(&mut face);
        face.style.description = self.descriptions.unwrap_or(face.style.description);
        face.style.dialect = self.dialect.unwrap_or(face.style.dialect);
        face.style.result = self.result.unwrap_or(face.style.result);
        if let Some(features) = &self.features {
            face.features = Some(Arc::new(features.clone()));
        }
        self.overrides.add_to(&mut face);
        face
    }

    /// Sets how schemas are listed. Where clients get them on demand, descriptions are short and calls are checked unless
    /// the variant says otherwise; elsewhere, the settings for that do not apply.
    fn set_schemas(&self, face: &mut VariantConfig) {
        if self.schemas.is_some_and(SchemaStyle::is_on_demand) {
            face.style.description = Description::FirstSentence;
            if !face.style.schema.is_on_demand() {
                face.style.check = ArgumentCheck::On;
            }
        }
        face.style.schema = self.schemas.unwrap_or(face.style.schema);
        if !face.style.schema.is_on_demand() {
            face.style.check = ArgumentCheck::Off;
            face.keep_schemas.clear();
            return;
        }
        face.style.check = self.check.unwrap_or(face.style.check);
        face.search_above = self.search_above.unwrap_or(face.search_above);
        if let Some(rules) = &self.keep_schemas {
            face.keep_schemas.clone_from(rules);
        }
    }

    /// If only one of descriptions and schemas is set to `full`, the other one stays compact.
    fn leave_compact(&self, face: &mut VariantConfig) {
        let is_full =
            self.descriptions == Some(Description::Full) || self.schemas == Some(SchemaStyle::Full);
        if is_full && face.base == Base::Compact {
            face.base = Base::Standard;
            face.style.description = Description::FirstSentence;
            if !face.style.schema.is_on_demand() {
                face.style.schema = SchemaStyle::Compact;
            }
            face.variant.hints.remove("contextSize");
        }
    }
}
