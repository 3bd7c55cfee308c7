//! The variants of the served file for the operator's page.

use std::path::PathBuf;

use mcp_vary_base::io_error;
use mcp_vary_config::FileVariants;
use mcp_vary_page::{DraftedVariant, VariantSource, WrittenVariant};
use serde_json::Value;

/// The variants of the file as it is now; those that are built in without a file.
#[derive(Debug)]
pub(crate) struct ServedVariants(pub(crate) Option<PathBuf>);

impl ServedVariants {
    fn read(&self) -> Result<FileVariants, String> {
        let Some(path) = &self.0 else {
            return Ok(FileVariants::built_in());
        };
        let name = path.display().to_string();
        let text = mcp_vary_config::text(path).map_err(|error| {
            let why = io_error::describe(&error);
            format!("{name} cannot be read: {why}")
        })?;
        FileVariants::read(&name, &text).map_err(|all| all.to_string())
    }
}

impl VariantSource for ServedVariants {
    fn written(&self, id: &str) -> Result<Option<WrittenVariant>, String> {
        let variants = self.read()?;
        let value = variants.value(id).zip(variants.yaml(id));
        Ok(value.map(|(value, yaml)| WrittenVariant { value, yaml }))
    }

    fn draft(&self, id: &str, value: Value) -> Result<DraftedVariant, String> {
        let draft = self.read()?.draft(id, value)?;
        Ok(DraftedVariant {
            config: draft.config,
            yaml: draft.yaml,
        })
    }
}
