//! What the gateway stores of these tasks.

use std::sync::Arc;

use super::claims::InputClaims;
use super::completed::CompletedTasks;
use crate::tasks::context::TaskContext;

/// The stored state of these tasks.
#[derive(Debug)]
pub(crate) struct CoreOverExt {
    pub(super) context: Arc<TaskContext>,
    pub(crate) completed: CompletedTasks,
    pub(super) input_claims: Arc<InputClaims>,
}

impl CoreOverExt {
    pub(crate) fn new(context: Arc<TaskContext>) -> Self {
        Self {
            completed: CompletedTasks::new(context.environment, context.copies.clone()),
            input_claims: Arc::default(),
            context,
        }
    }
}
