//! The files of a client that another program changed after they were planned.

use serde_json::Value;

use super::FoundClient;
use crate::commands::connect::record::Record;
use crate::commands::up::journal::Journal;
use crate::commands::up::operation::{Kind, Operation};

impl FoundClient {
    /// `operations`, planned again on the client's file as it is now; `None` if that is not another one with the same
    /// servers.
    pub(crate) fn replanned(
        &self,
        operations: &[Operation],
        journal: &Journal,
    ) -> Option<Vec<Operation>> {
        if !operations.iter().any(Operation::is_changed) {
            return None;
        }
        let path = self.file.path.clone();
        let now = Self::read(self.client, path, journal).ok().flatten()?;
        let is_same = now.container == self.container
            && now.written == self.written
            && now.servers == self.servers
            && now.entries_now() == self.entries_now();
        if !is_same {
            return None;
        }
        let record_path = self.file.record();
        let mut beside = operations
            .iter()
            .filter(|operation| matches!(operation.kind, Kind::Beside(_)));
        let record = beside.find(|operation| operation.path == record_path)?;
        let value: Value = serde_json::from_str(&record.after).ok()?;
        let entries = Record::from_json(&value)?.entries;
        now.operations_with(entries, journal).ok()
    }
}
