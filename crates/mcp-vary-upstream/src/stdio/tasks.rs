//! The tasks of one connection: they write the server's input, read its output, log its standard error and wait for its end.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::lines::{Lines, OutputLine};
use super::process::Process;
use super::stderr::LogRate;
use super::{Outgoing, Shared};
use crate::error::UpstreamError;
use crate::message::Event;

/// Writes queued messages until a write fails or the task is stopped; both close the input.
pub(super) async fn write(
    mut input: impl AsyncWrite + Unpin,
    mut outbox: mpsc::UnboundedReceiver<Outgoing>,
    end: CancellationToken,
) {
    loop {
        let outgoing = tokio::select! {
            // Queued messages are written first.
            biased;
            Some(outgoing) = outbox.recv() => outgoing,
            () = end.cancelled() => break,
        };
        let mut line = Vec::with_capacity(outgoing.message.len() + 1);
        line.extend_from_slice(&outgoing.message);
        line.push(b'\n');
        let written = input.write_all(&line).await;
        if written.is_err() || input.flush().await.is_err() {
            break;
        }
    }
    // The other half of a pipe is still read. An error means that the server has closed it.
    let _ = input.shutdown().await;
}

/// Reads the output until it ends.
pub(super) async fn read(output: impl AsyncRead + Unpin, shared: Arc<Shared>) {
    let mut lines = Lines::new(output, shared.limits.message);
    loop {
        match lines.next().await {
            Ok(OutputLine::Text(line)) => shared.receive(line),
            Ok(OutputLine::TooLong(ends)) => shared.on_oversized_line(ends.lost_message()),
            Ok(OutputLine::End) | Err(_) => return,
        }
    }
}

/// Logs standard error line by line, at most [`LOG_RATE`](super::stderr::LOG_RATE) lines of a second.
pub(super) async fn log(stderr: impl AsyncRead + Unpin, shared: Arc<Shared>) {
    let mut lines = Lines::new(stderr, LOG_LINE);
    let mut rate = LogRate::new(&shared.server);
    loop {
        // Cancel-safe: a part of a line that was read is not lost.
        let line = match rate.ends() {
            None => lines.next().await,
            Some(end) => match tokio::time::timeout_at(end, lines.next()).await {
                Ok(line) => line,
                Err(_elapsed) => {
                    rate.begin();
                    continue;
                }
            },
        };
        let line = match line {
            Ok(OutputLine::Text(line)) => shared.secrets.excerpt(&line, LOG_CHARACTERS),
            Ok(OutputLine::TooLong(_)) => format!("a line of over {LOG_LINE} bytes"),
            Ok(OutputLine::End) | Err(_) => return rate.begin(),
        };
        if !line.is_empty() {
            rate.log(&line);
            shared.last_output.lock().line = Some(line.clone());
            shared.stderr_tail.push(line);
        }
    }
}

/// What the watching task owns.
pub(super) struct ProcessSupervisor {
    /// `None` for a server in this process.
    pub(super) process: Option<Process>,
    pub(super) shared: Arc<Shared>,
    pub(super) stop: CancellationToken,
    pub(super) writer: JoinHandle<()>,
    pub(super) end_writer: CancellationToken,
    pub(super) reader: JoinHandle<()>,
    pub(super) logger: JoinHandle<()>,
    pub(super) ended: watch::Sender<bool>,
}

enum End {
    Exited(std::io::Result<ExitStatus>),
    ClosedOutput,
    Stopped,
    /// The supervisor found that the server hangs.
    Hung,
}

/// Waits until the process ends, closes its output or is stopped; then ends it and every call.
pub(super) async fn supervise(mut watch: ProcessSupervisor) {
    let end = tokio::select! {
        status = wait(&mut watch.process) => End::Exited(status),
        _ = &mut watch.reader => End::ClosedOutput,
        () = watch.stop.cancelled() => End::Stopped,
        _ = watch.shared.liveness.ended() => End::Hung,
    };
    let is_unexpected = matches!(end, End::Exited(_) | End::ClosedOutput);
    let how = match end {
        End::Exited(status) => watch.collect(status).await,
        End::ClosedOutput if watch.process.is_none() => "closed its pipe".to_owned(),
        End::ClosedOutput => match tokio::time::timeout(DRAIN, wait(&mut watch.process)).await {
            Ok(status) => watch.collect(status).await,
            Err(_elapsed) => "closed its output".to_owned(),
        },
        End::Stopped => {
            watch.shared.cancel_all();
            "was closed by the gateway".to_owned()
        }
        // The first reason counts.
        End::Hung => "hung".to_owned(),
    };
    let output = if is_unexpected {
        let output = watch.shared.last_output();
        watch.shared.last_output.lock().end = Some(format!("{how}; {output}"));
        output
    } else {
        watch.shared.output_summary()
    };
    watch.shared.last_output.lock().stderr = watch.shared.stderr_tail.shown_lines();
    watch.close(&how, output);
    watch.close_input().await;
    let grace = watch.shared.limits.grace;
    match &mut watch.process {
        Some(process) => process.stop(grace).await,
        None => drain(&mut watch.reader, grace).await,
    }
    watch.reader.abort();
    watch.logger.abort();
    watch.ended.send_replace(true);
}

impl ProcessSupervisor {
    /// Reads what the process wrote before it ended, and returns how it ended.
    async fn collect(&mut self, status: std::io::Result<ExitStatus>) -> String {
        drain(&mut self.reader, DRAIN).await;
        drain(&mut self.logger, DRAIN).await;
        match status {
            Ok(status) => format!("ended ({status})"),
            Err(error) => format!("ended ({error})"),
        }
    }

    /// Closes the input after the queued messages, so that the process exits.
    async fn close_input(&mut self) {
        self.end_writer.cancel();
        if tokio::time::timeout(FLUSH, &mut self.writer).await.is_err() {
            self.writer.abort();
            let _ = (&mut self.writer).await;
        }
    }

    fn close(&self, how: &str, output: String) {
        let server = &self.shared.server;
        let closed = UpstreamError::Closed {
            server: Arc::clone(server),
            reason: how.into(),
            output: output.into(),
        };
        let closed = self.shared.liveness.end(closed);
        let how = closed.details();
        tracing::debug!(server = %server, how, "connection closed");
        self.shared.in_flight().close(&closed);
        self.shared.outbox_permits.close();
        let _ = self.shared.events.send(Event::Closed {
            reason: closed.to_string(),
        });
    }
}

/// Waits for the end of the process; forever without one.
async fn wait(process: &mut Option<Process>) -> std::io::Result<ExitStatus> {
    match process {
        Some(process) => process.wait().await,
        None => std::future::pending().await,
    }
}

/// Waits for a reader whose stream ends now, unless a process outside the group, or a server in this process, keeps it open.
async fn drain(reader: &mut JoinHandle<()>, limit: Duration) {
    if !reader.is_finished() {
        let _ = tokio::time::timeout(limit, reader).await;
    }
}

const LOG_LINE: usize = 64 * 1024;
const LOG_CHARACTERS: usize = 500;
const FLUSH: Duration = Duration::from_millis(200);
const DRAIN: Duration = Duration::from_secs(1);
