//! A variant of a file, before it becomes the configuration of a variant.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_vary::feature::Features;
use mcp_vary::variant::{DeprecationInfo, ServerVariant, Status, VariantId};
use mcp_vary_catalog::variant_config::{Base, VariantConfig};
use mcp_vary_view::{
    ArgumentCheck, Description, Dialect, ListedArguments, ResultFields, Rule, SchemaStyle,
    Selection,
};

use super::overrides::Overrides;
use crate::reader::Placed;

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
    pub(super) servers: Option<Vec<Placed<String>>>,
    pub(super) tools: Option<Selection>,
    pub(super) resources: Option<Selection>,
    pub(super) prompts: Option<Selection>,
    pub(super) skills: Option<Selection>,
    pub(super) descriptions: Option<Description>,
    pub(super) schemas: Option<SchemaStyle>,
    pub(super) keep_schemas: Option<Vec<Rule>>,
    pub(super) arguments: Option<ListedArguments>,
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
        let mut config = start;
        let Some(id) = &self.id else { return config };
        self.leave_compact(&mut config);
        let is_start = config.variant.id == *id;
        let mut variant = if is_start {
            config.variant.clone()
        } else {
            // Status and deprecation are not inherited.
            let mut variant = ServerVariant::new(id.clone(), config.variant.description.clone());
            variant.hints = config.variant.hints.clone();
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
        config.variant = variant;
        self.select(&mut config);
        self.set_schemas(&mut config);
        config.style.description = self.descriptions.unwrap_or(config.style.description);
        config.style.dialect = self.dialect.unwrap_or(config.style.dialect);
        config.style.result = self.result.unwrap_or(config.style.result);
        if let Some(features) = &self.features {
            config.features = Some(Arc::new(features.clone()));
        }
        self.overrides.add_to(&mut config);
        config
    }

    /// Sets what is shown. The servers apply to each kind of items.
    fn select(&self, config: &mut VariantConfig) {
        let servers: Vec<String> = match &self.servers {
            Some(servers) => servers.iter().map(|server| server.value.clone()).collect(),
            None => config.tools.servers.clone(),
        };
        for (selection, written) in [
            (&mut config.tools, &self.tools),
            (&mut config.resources, &self.resources),
            (&mut config.prompts, &self.prompts),
            (&mut config.skills, &self.skills),
        ] {
            if let Some(written) = written {
                selection.clone_from(written);
            }
            selection.servers.clone_from(&servers);
        }
    }

    /// Sets how schemas are listed. Where clients get them on demand, descriptions are short and calls are checked unless
    /// the variant says otherwise; elsewhere, the settings for that do not apply.
    fn set_schemas(&self, config: &mut VariantConfig) {
        if self.schemas.is_some_and(SchemaStyle::is_on_demand) {
            config.style.description = Description::FirstSentence;
            if !config.style.schema.is_on_demand() {
                config.style.check = ArgumentCheck::On;
            }
        }
        config.style.schema = self.schemas.unwrap_or(config.style.schema);
        if !config.style.schema.is_on_demand() {
            config.style.check = ArgumentCheck::Off;
            config.style.arguments = ListedArguments::All;
            config.keep_schemas.clear();
            return;
        }
        config.style.arguments = self.arguments.unwrap_or(config.style.arguments);
        config.style.check = self.check.unwrap_or(config.style.check);
        config.search_above = self.search_above.unwrap_or(config.search_above);
        if let Some(rules) = &self.keep_schemas {
            config.keep_schemas.clone_from(rules);
        }
    }

    /// If only one of descriptions and schemas is set to `full`, the other one stays compact.
    fn leave_compact(&self, config: &mut VariantConfig) {
        let is_full =
            self.descriptions == Some(Description::Full) || self.schemas == Some(SchemaStyle::Full);
        if is_full && config.base == Base::Compact {
            config.base = Base::Standard;
            config.style.description = Description::FirstSentence;
            if !config.style.schema.is_on_demand() {
                config.style.schema = SchemaStyle::Compact;
            }
            config.variant.hints.remove("contextSize");
        }
    }
}
