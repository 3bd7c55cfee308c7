//! The servers while they start: what is waited for, and what is reported of those that come later.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io;
use std::time::Duration;

use mcp_vary_gateway::{Gateway, ServerReport};
use mcp_vary_upstream::ConnectionState;
use tokio::sync::Notify;

use crate::failure::Failure;
use crate::print::servers::{is_up, unread_lists, upstream_variant_notes};
use crate::print::terminal::has_cursor;
use crate::print::{progress, sanitize};
use crate::serving;
use crate::start_report::{StartProgress, is_starting, server_status};
use crate::stop::Stop;

/// Waits until clients can be answered. The command ends if the only server cannot be used as it is configured, and with
/// `requires_all` if any server is down or one of its lists cannot be read.
pub(super) async fn wait_until_ready(
    gateway: &Gateway,
    requires_all: bool,
    stop: &mut Stop,
) -> Result<(), Failure> {
    let mut started = StartProgress::new(!has_cursor(&io::stderr()));
    let report = |gateway: &Gateway| {
        started.update(gateway);
        false
    };
    serving::wait(gateway, stop, report).await?;
    let servers = gateway.servers();
    let down = servers.iter().filter(|server| !is_up(&server.state));
    let errors = down.filter_map(|server| match &server.state {
        ConnectionState::Disconnected { error, .. } => Some(error),
        _ => None,
    });
    let is_only = servers.len() == 1;
    let fatal = errors.filter(|error| requires_all || is_only && error.is_permanent());
    let fatal: Vec<_> = fatal.cloned().collect();
    let unread = servers.iter().filter(|_| requires_all);
    let unread: Vec<_> = unread.flat_map(unread_lists).collect();
    let failure = match (fatal.is_empty(), unread.is_empty()) {
        (true, true) => return Ok(()),
        (true, false) => Failure::command(unread.join("\n")),
        (false, _) => unread
            .iter()
            .fold(Failure::servers_down(&fatal), |all, line| {
                all.with_line(line)
            }),
    };
    gateway.close().await;
    Err(failure)
}

/// Reports each server that becomes ready after the start, and then the variants once no other is starting. For some time
/// it also reports which ones are still starting. Never returns.
pub(super) async fn report_late_servers(
    gateway: &Gateway,
    report_variants: impl Fn(),
) -> Infallible {
    let complete = Notify::new();
    let servers = gateway.servers().into_iter();
    let late = servers.filter(|server| server.handshake.is_none());
    let mut late: BTreeSet<_> = late.map(|server| server.name).collect();
    let ready = |server: ServerReport| {
        let after = serving::waited().as_secs();
        let notes = upstream_variant_notes(std::slice::from_ref(&server));
        let line = format!(
            "`{}` is ready after {after} s: {}",
            server.name,
            server_status(&server)
        );
        progress(sanitize(&format!("{line}\n{notes}")).trim_end());
        late.remove(&server.name);
        // One that is connected follows when its lists are in the catalogue.
        let is_coming = |it: &ServerReport| {
            let is_connected = matches!(
                it.state,
                ConnectionState::Connecting | ConnectionState::Connected(_)
            );
            is_connected && late.contains(&it.name)
        };
        if !gateway.servers().iter().any(is_coming) {
            complete.notify_one();
        }
    };
    // Servers come together: their variants are reported once, when no other has become ready for a moment.
    let report = async {
        loop {
            complete.notified().await;
            while tokio::time::timeout(BURST, complete.notified())
                .await
                .is_ok()
            {}
            report_variants();
        }
    };
    let remind = async {
        let mut at = serving::SILENT_WAIT;
        for _ in 0..REMINDERS {
            tokio::time::sleep(at.saturating_sub(serving::waited())).await;
            if is_starting(gateway) && serving::waited() < at + serving::TICK {
                progress(&sanitize(&serving::waiting_line(gateway)));
            }
            at += serving::REMINDER;
        }
    };
    let (_, _, never) = tokio::join!(gateway.late_servers(ready), remind, report);
    never
}

/// How long no server must have become ready before the variants are reported.
const BURST: Duration = Duration::from_millis(200);
/// How often servers that are still starting are reported.
const REMINDERS: u32 = 8;
