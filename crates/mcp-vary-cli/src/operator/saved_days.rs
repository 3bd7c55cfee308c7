//! What gateways saved on the last days, in a file for the next gateway that serves clients at the same address.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use mcp_vary_base::tasks::spawn;
use mcp_vary_gateway::{Cost, Gateway};
use tokio::task::JoinHandle;

use super::token::{file_name, read_private, write_private};

/// The file of a running gateway, which is written when a minute changed it, and when this is dropped.
#[derive(Debug)]
pub(crate) struct SavedDays {
    gateway: Arc<Gateway>,
    name: String,
    writer: JoinHandle<()>,
}

impl SavedDays {
    /// Adds what the last gateway that served `clients` saved to what `gateway` counts.
    pub(crate) fn restore(gateway: &Arc<Gateway>, clients: SocketAddr) -> Self {
        let name = file_name(clients, SAVED);
        let text = read_private(&name).unwrap_or_default();
        gateway.restore_saved_days(serde_json::from_str(&text).unwrap_or_default());
        let mut last = gateway.saved_days();
        let (written, file) = (Arc::clone(gateway), name.clone());
        let writer = spawn(async move {
            loop {
                tokio::time::sleep(PAUSE).await;
                // Without it, the next gateway begins anew.
                write_change(&mut last, written.saved_days(), |days| write(days, &file));
            }
        });
        Self {
            gateway: Arc::clone(gateway),
            name,
            writer,
        }
    }
}

impl Drop for SavedDays {
    fn drop(&mut self) {
        self.writer.abort();
        let _ = write(&self.gateway.saved_days(), &self.name);
    }
}

/// Writes what there is `now`, unless it was written `last`. What cannot be written is tried again the next time.
fn write_change<T: PartialEq>(last: &mut T, now: T, write: impl FnOnce(&T) -> io::Result<()>) {
    if now != *last && write(&now).is_ok() {
        *last = now;
    }
}

/// Writes the days into the file of this name, which is replaced whole.
fn write(days: &BTreeMap<u64, Cost>, name: &str) -> io::Result<()> {
    if days.is_empty() {
        return Ok(());
    }
    let text = serde_json::to_string(days)?;
    let written = write_private(&format!("{name}{NEW}"), &text)?;
    fs::rename(&written, written.with_extension(""))
}

/// Between two times at which the file is written: what a gateway that is killed loses.
const PAUSE: Duration = Duration::from_secs(60);
/// The end of the names of files.
const SAVED: &str = ".saved";
const NEW: &str = ".new";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_change_is_written_and_tried_again_if_it_cannot_be() {
        let (mut last, mut tried) = (0, Vec::new());
        for (now, is_full) in [(0, false), (1, true), (1, false), (1, false), (2, false)] {
            write_change(&mut last, now, |days| {
                tried.push(*days);
                if is_full {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                Ok(())
            });
        }
        assert_eq!(tried, [1, 1, 2]);
        assert_eq!(last, 2);
    }
}
