//! Validates structured values against the `outputSchema` that clients know for a tool.

use std::sync::{Arc, OnceLock};

use mcp_vary::json::edit;
use mcp_vary_view::OutputCheck;
use tracing::warn;

/// The `outputSchema` of a tool, compiled when a result is first validated.
#[derive(Debug)]
pub struct OutputValidator {
    /// The definition of the tool, as listed.
    definition: Arc<str>,
    check: OnceLock<Option<OutputCheck>>,
}

impl OutputValidator {
    /// Creates a validator. The schema is compiled when it is first needed.
    pub fn new(definition: &Arc<str>) -> Self {
        Self {
            definition: Arc::clone(definition),
            check: OnceLock::new(),
        }
    }

    /// The compiled schema. `None` if the tool has no schema or it cannot be compiled.
    pub fn check(&self) -> Option<&OutputCheck> {
        let check = self.check.get_or_init(|| {
            let schema = edit::get(&self.definition, "outputSchema")?;
            let check = OutputCheck::new(schema);
            let compiled =
                check.inspect_err(|why| warn!(why, "an `outputSchema` cannot be checked"));
            compiled.ok()
        });
        check.as_ref()
    }
}
