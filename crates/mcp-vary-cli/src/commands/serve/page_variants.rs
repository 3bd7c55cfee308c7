//! The variants and rules of the served file for the operator's page.

use std::path::PathBuf;

use mcp_vary_base::io_error;
use mcp_vary_config::{FileVariants, file_rules};
use mcp_vary_page::{DraftedVariant, VariantSource, WrittenVariant};
use serde_json::Value;

/// The variants of the file as it is now; those that are built in without a file.
#[derive(Debug)]
pub(crate) struct ServedVariants(pub(crate) Option<PathBuf>);

impl ServedVariants {
    /// The name of the file and its text; `None` without one.
    fn text(&self) -> Result<Option<(String, String)>, String> {
        let Some(path) = &self.0 else {
            return Ok(None);
        };
        let name = path.display().to_string();
        match mcp_vary_config::text(path) {
            Ok(text) => Ok(Some((name, text))),
            Err(error) => {
                let why = io_error::describe(&error);
                Err(format!("{name} cannot be read: {why}"))
            }
        }
    }

    fn read(&self) -> Result<FileVariants, String> {
        match self.text()? {
            Some((name, text)) => FileVariants::read(&name, &text).map_err(|all| all.to_string()),
            None => Ok(FileVariants::built_in()),
        }
    }
}

impl VariantSource for ServedVariants {
    fn written(&self, id: &str) -> Result<Option<WrittenVariant>, String> {
        let variants = self.read()?;
        let value = variants.value(id).zip(variants.yaml(id));
        Ok(value.map(|(value, yaml)| WrittenVariant { value, yaml }))
    }

    fn rules(&self) -> Result<Vec<(String, String)>, String> {
        let Some((name, text)) = self.text()? else {
            return Ok(Vec::new());
        };
        file_rules(&name, &text).map_err(|all| all.to_string())
    }

    fn draft(&self, id: &str, value: Value) -> Result<DraftedVariant, String> {
        let draft = self.read()?.draft(id, value)?;
        Ok(DraftedVariant {
            config: draft.config,
            yaml: draft.yaml,
        })
    }
}
