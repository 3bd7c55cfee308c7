//! What is printed while a tool does not answer.

use std::pin::pin;
use std::time::{Duration, Instant};

use crate::print::{progress, sanitize};
use crate::server_target::session::TargetSession;
use crate::serving::{REMINDER, SILENT_WAIT};

/// Runs `call`, and prints a line after 5 seconds and then every 15.
pub(super) async fn with_reminders<T>(
    call: impl Future<Output = T>,
    tool: &str,
    session: &TargetSession,
) -> T {
    let began = Instant::now();
    let mut answered = pin!(call);
    let mut pause = SILENT_WAIT;
    loop {
        tokio::select! {
            answer = &mut answered => return answer,
            () = tokio::time::sleep(pause) => {}
        }
        let mut served = session.summary.served.iter();
        let item = served.find(|item| item.list == "tools/list" && *item.id == *tool);
        let server = item.map(|item| item.server.as_str());
        progress(&sanitize(&waiting_line(tool, server, began.elapsed())));
        pause = REMINDER;
    }
}

/// The line about a call of `tool` that has no answer after `elapsed`.
fn waiting_line(tool: &str, server: Option<&str>, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    let late = match server {
        Some(server) if elapsed >= SILENT_WAIT + REMINDER => {
            format!("; `{server}` has not answered yet")
        }
        _ => String::new(),
    };
    format!("waiting for the answer of `{tool}` ... {seconds} s{late} (Ctrl-C gives up)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_hangs_names_its_server_when_it_is_late() {
        let line = |seconds| waiting_line("slow", Some("sky"), Duration::from_secs(seconds));
        assert_eq!(
            line(5),
            "waiting for the answer of `slow` ... 5 s (Ctrl-C gives up)"
        );
        assert_eq!(
            line(20),
            "waiting for the answer of `slow` ... 20 s; `sky` has not answered yet (Ctrl-C gives up)"
        );
        let unknown = waiting_line("slow", None, Duration::from_secs(35));
        assert_eq!(
            unknown,
            "waiting for the answer of `slow` ... 35 s (Ctrl-C gives up)"
        );
    }
}
