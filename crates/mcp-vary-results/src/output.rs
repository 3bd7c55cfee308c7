//! Validates structured values against the schema that clients have of a tool.

use std::sync::{Arc, OnceLock};

use mcp_vary::json::edit;
use mcp_vary_view::OutputCheck;
use tracing::warn;

/// The `outputSchema` of a tool, compiled when a result is first held against it.
#[derive(Debug)]
pub struct OutputValidator {
    /// The tool as it is listed.
    definition: Arc<str>,
    check: OnceLock<Option<OutputCheck>>,
}

impl OutputValidator {
    /// Reads the schema of a tool when it is first needed.
    pub fn new(definition: &Arc<str>) -> Self {
        Self {
            definition: Arc::clone(definition),
            check: OnceLock::new(),
        }
    }

    /// The schema; none where there is none, or nothing can be held against it.
    pub fn check(&self) -> Option<&OutputCheck> {
        let check = self.check.get_or_init(|| {
            let schema = edit::get(&self.definition, "outputSchema")?;
            let check = OutputCheck::new(schema);
            let told = check.inspect_err(|why| warn!(why, "an `outputSchema` cannot be checked"));
            told.ok()
        });
        check.as_ref()
    }
}
