//! What gateways saved on the last days, in a file for the next gateway that serves clients at the same address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use mcp_vary_base::tasks::spawn;
use mcp_vary_gateway::Gateway;
use tokio::task::JoinHandle;

use super::token::{file_name, read_private, write_private};

/// The file of a running gateway, which is written now and then, and when this is dropped.
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
        let (written, file) = (Arc::clone(gateway), name.clone());
        let writer = spawn(async move {
            loop {
                tokio::time::sleep(PAUSE).await;
                // Without it, the next gateway begins anew.
                let _ = write(&written, &file);
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
        let _ = write(&self.gateway, &self.name);
    }
}

/// Writes the days into the file of this name, which is replaced whole.
fn write(gateway: &Gateway, name: &str) -> io::Result<()> {
    let days = gateway.saved_days();
    if days.is_empty() {
        return Ok(());
    }
    let text = serde_json::to_string(&days)?;
    let written = write_private(&format!("{name}{NEW}"), &text)?;
    fs::rename(&written, written.with_extension(""))
}

/// Between two times at which the file is written.
const PAUSE: Duration = Duration::from_secs(600);
/// The end of the names of files.
const SAVED: &str = ".saved";
const NEW: &str = ".new";
