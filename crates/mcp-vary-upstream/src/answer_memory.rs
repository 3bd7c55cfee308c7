//! The memory for answers of servers: what one takes while it is read, and until its client has it.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary_base::memory_budget::{Exhausted, Lease};
use tokio::time::Instant;

/// The memory for the answers to one client.
pub trait AnswerMemory: Send + Sync {
    /// An empty lease of it.
    fn lease(&self) -> Lease;
}

mcp_vary_base::debug_by_name!(dyn AnswerMemory);

/// What an answer takes of the memory of its client.
#[derive(Debug, Default)]
pub(crate) struct AnswerLease {
    memory: Option<Arc<dyn AnswerMemory>>,
    lease: Option<Lease>,
    /// When the answer began to wait for room.
    waits_since: Option<Instant>,
}

impl AnswerLease {
    pub(crate) fn of(memory: Option<Arc<dyn AnswerMemory>>) -> Self {
        Self {
            memory,
            ..Self::default()
        }
    }

    /// Takes room for this many bytes in all. Small answers need none: their number is bounded.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), Exhausted> {
        match &self.memory {
            Some(memory) if bytes > SMALL => {
                let lease = self.lease.get_or_insert_with(|| memory.lease());
                lease.grow_to(bytes)
            }
            _ => Ok(()),
        }
    }

    /// The same, and waits a while for room. Only for an answer that has none yet, so that no two wait for each other. Safe to
    /// drop while it waits.
    pub(crate) async fn wait_for(&mut self, bytes: usize) -> Result<(), Exhausted> {
        loop {
            let grown = self.grow_to(bytes);
            if grown.is_ok()
                || self.waits_since.get_or_insert_with(Instant::now).elapsed() > LONGEST_WAIT
            {
                return grown;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// What the answer has taken, which it keeps.
    pub(crate) fn take(&mut self) -> Option<Arc<Lease>> {
        self.lease.take().map(Arc::new)
    }
}

/// Smaller answers are not counted.
const SMALL: usize = 64 << 10;
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
