//! A task that a server made in another form than its client knows.

use mcp_vary_wire::response::{self, Reply};

use super::Running;

impl Running {
    /// Watches the task that the server made, if it made one that has to be; what its client is told.
    pub(super) fn watch(&mut self, result: &str) -> Option<Reply> {
        let road = self.taken.road.take()?;
        let names = self.finish.downward.task.as_ref()?;
        let own = names.made_by(result)?;
        let road = road.held_by(self.taken.alone.take(), self.taken.class.take());
        let retelling = || self.finish.retelling();
        let made = names.watch(result, &own, &self.finish.client, retelling, road);
        Some(match made {
            Ok(made) => response::result(&self.finish.id, made.as_bytes()),
            Err(failure) => self.finish.failed(&failure),
        })
    }
}
