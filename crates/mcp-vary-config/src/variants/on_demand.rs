//! What excludes, and what needs, schemas on demand.

use mcp_vary_catalog::variant_config::VariantConfig;
use mcp_vary_view::Rule;

use super::draft::PartialVariant;
use super::selection;
use crate::document::Value;
use crate::reader::{Located, Reader};

/// Reads which tools keep their schemas.
pub(super) fn keep_schemas(reader: &mut Reader<'_>, field: &Located<'_>) -> Vec<Rule> {
    if matches!(&field.node.value, Value::List(items) if items.is_empty()) {
        reader.report(field, "is empty", "name tools, or leave it out");
    }
    selection::rules(reader, field)
}

/// Reports settings that have no effect without schemas on demand, and a dialect beside them.
pub(super) fn check(
    reader: &mut Reader<'_>,
    drafts: &[(Located<'_>, PartialVariant)],
    variants: &[VariantConfig],
) {
    for (field, draft) in drafts {
        let mut configs = variants.iter();
        let resolved = configs.find(|config| draft.id() == Some(config.variant.id.as_str()));
        let Some(config) = resolved else { continue };
        if !config.style.schema.is_on_demand() {
            let settings = [
                ("keep-schemas", draft.keep_schemas.is_some()),
                ("arguments", draft.arguments.is_some()),
                ("check", draft.check.is_some()),
                ("search-above", draft.search_above.is_some()),
            ];
            for (key, _) in settings.iter().filter(|(_, is_set)| *is_set) {
                reader.report(
                    &field.deepest(&[key]),
                    "has no effect without `schemas: on-demand`",
                    "add that, or take this out",
                );
            }
        } else if let Some(dialect) = config.style.dialect {
            let (key, other) = match draft.dialect {
                Some(_) => ("dialect", "schemas: on-demand".to_owned()),
                None => ("schemas", format!("dialect: {}", dialect.as_str())),
            };
            let what = format!(
                "cannot be combined with `{other}`: models with a dialect give only the arguments that a schema lists"
            );
            let fix = "write `schemas: compact`, or `dialect: none`";
            reader.report(&field.deepest(&[key]), what, fix);
        }
    }
}
