//! The servers while they start: what is waited for, and what is reported of those that come later.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io;

use mcp_vary_gateway::{Gateway, ServerReport};
use mcp_vary_upstream::ConnectionState;
use tokio::sync::Notify;

use crate::failure::Failure;
use crate::print::servers::{
    extension_notes, first_names, is_up, unread_lists, upstream_variant_notes,
};
use crate::print::terminal::has_cursor;
use crate::print::{progress, sanitize};
use crate::serving;
use crate::serving::start_report::{BURST, MOST_LINES, StartProgress, is_starting, server_status};
use crate::stop::Stop;

use super::args::Serve;

/// Waits until clients can be answered. The command ends if the only server cannot be used as it is configured, and with
/// `--require-all` if any server is down or one of its lists cannot be read.
pub(super) async fn wait_until_ready(
    gateway: &Gateway,
    args: &Serve,
    stop: &mut Stop,
) -> Result<(), Failure> {
    let mut started = StartProgress::new(!has_cursor(&io::stderr()));
    let report = |gateway: &Gateway| {
        started.update(gateway);
        false
    };
    serving::wait(gateway, stop, report).await?;
    // While servers come one after the other, their tools are not counted yet. On standard streams nothing counts them.
    while !args.stdio && is_starting(gateway) && started.is_in_burst() {
        let moment = async {
            tokio::time::sleep(BURST).await;
            Ok(())
        };
        if let Err(interrupted) = stop.unless_requested(moment).await {
            gateway.close().await;
            return Err(interrupted);
        }
        started.update(gateway);
    }
    started.finish(gateway.servers().len());
    let servers = gateway.servers();
    let down = servers.iter().filter(|server| !is_up(&server.state));
    let errors = down.filter_map(|server| match &server.state {
        ConnectionState::Disconnected { error, .. } => Some(error),
        _ => None,
    });
    let is_only = servers.len() == 1;
    let ending = errors.filter(|error| args.require_all || is_only && error.is_permanent());
    let fatal: Vec<_> = ending.cloned().collect();
    let required = if args.require_all { &servers[..] } else { &[] };
    let unread: Vec<_> = required.iter().flat_map(unread_lists).collect();
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
    let arrived = Notify::new();
    let burst = RefCell::new(Vec::new());
    let servers = gateway.servers().into_iter();
    let starting = servers.filter(|server| server.handshake.is_none());
    let mut late: BTreeSet<_> = starting.map(|server| server.name).collect();
    let mut noted = gateway.undecided_extensions();
    let ready = |server: ServerReport| {
        burst.borrow_mut().push(server);
        arrived.notify_one();
    };
    // Servers come together: they and their variants are reported once, when no other has become ready for a moment.
    let report = async {
        loop {
            arrived.notified().await;
            while tokio::time::timeout(BURST, arrived.notified())
                .await
                .is_ok()
            {}
            let servers = burst.take();
            late.retain(|name| servers.iter().all(|server| server.name != *name));
            progress(&late_lines(&servers));
            let undecided = gateway.undecided_extensions();
            let mut further = undecided.clone();
            further.retain(|extension| !noted.contains(extension));
            if !further.is_empty() {
                progress(&sanitize(extension_notes(&further).trim_end()));
            }
            noted = undecided;
            // One that is connected follows when its lists are in the catalogue.
            let is_coming = |it: &ServerReport| {
                let is_connected = matches!(
                    it.state,
                    ConnectionState::Connecting | ConnectionState::Connected(_)
                );
                is_connected && late.contains(&it.name)
            };
            if !gateway.servers().iter().any(is_coming) {
                report_variants();
            }
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

/// A line for each server that became ready after the start, or one for many.
fn late_lines(servers: &[ServerReport]) -> String {
    let after = serving::waited().as_secs();
    let quoted = servers.iter().map(|server| format!("`{}`", server.name));
    let names: Vec<_> = quoted.collect();
    let mut out = String::new();
    if names.len() > MOST_LINES {
        let count = names.len();
        let first = first_names(&names);
        out = format!("{count} more servers are ready after {after} s: {first}\n");
    } else {
        for (name, server) in names.iter().zip(servers) {
            let status = server_status(server);
            out.push_str(&format!("{name} is ready after {after} s: {status}\n"));
        }
    }
    sanitize((out + &upstream_variant_notes(servers)).trim_end())
}

/// How often servers that are still starting are reported.
const REMINDERS: u32 = 8;
