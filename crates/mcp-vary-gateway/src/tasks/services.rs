//! The tasks of a gateway.

use std::sync::Arc;

use mcp_vary::cursor::CursorKeys;
use mcp_vary_results::link_index::LinkIndex;

use super::context::TaskContext;
use super::proxy::ProxiedTasks;
use super::registry::TaskRegistry;

/// The stored state of all tasks, which is independent of the configuration.
#[derive(Debug)]
pub(crate) struct TaskServices {
    pub(crate) context: Arc<TaskContext>,
    pub(crate) registry: Arc<TaskRegistry>,
    pub(crate) proxied: Arc<ProxiedTasks>,
    /// Seal the ids that clients get.
    pub(crate) cursor_keys: Arc<CursorKeys>,
    pub(crate) link_index: Arc<LinkIndex>,
}

impl TaskServices {
    /// None yet. `instance` is part of the ids of proxied tasks.
    pub(crate) fn new(
        context: TaskContext,
        instance: u64,
        cursor_keys: Arc<CursorKeys>,
        link_index: Arc<LinkIndex>,
    ) -> Self {
        let context = Arc::new(context);
        Self {
            registry: Arc::new(TaskRegistry::new(Arc::clone(&context.observer))),
            proxied: Arc::new(ProxiedTasks::new(Arc::clone(&context), instance)),
            cursor_keys,
            link_index,
            context,
        }
    }
}
