//! What clients were told of a tool's structured value.

use std::sync::{Arc, OnceLock};

use mcp_vary::view::OutputCheck;
use tracing::warn;

use crate::splice;

/// The `outputSchema` of a tool, compiled when a result is first held against it.
#[derive(Debug)]
pub(crate) struct Output {
    /// The tool as it is listed.
    definition: Arc<str>,
    check: OnceLock<Option<OutputCheck>>,
}

impl Output {
    pub(crate) fn new(definition: &Arc<str>) -> Self {
        Self {
            definition: Arc::clone(definition),
            check: OnceLock::new(),
        }
    }

    /// The schema; none where there is none, or nothing can be held against it.
    pub(crate) fn check(&self) -> Option<&OutputCheck> {
        let check = self.check.get_or_init(|| {
            let schema = splice::get(&self.definition, "outputSchema")?;
            let check = OutputCheck::new(schema);
            let told = check.inspect_err(|why| warn!(why, "an `outputSchema` cannot be checked"));
            told.ok()
        });
        check.as_ref()
    }
}
