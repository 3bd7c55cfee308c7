//! Signals that end the process, or make it reload its configuration.

use std::pin::pin;

use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::print::notice;

/// Receives `SIGINT` and `SIGTERM` (Ctrl-C on systems other than Unix).
#[derive(Debug)]
pub(crate) struct Stop {
    /// For a command that ends when its terminal is closed.
    hangup: Option<Hangup>,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Stop {
    /// Receives signals from now on.
    pub(crate) fn listen() -> Result<Self, Failure> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let listen = |kind| {
                signal(kind).map_err(|error| {
                    Failure::command(format!("cannot listen for signals: {error}"))
                })
            };
            Ok(Self {
                hangup: None,
                interrupt: listen(SignalKind::interrupt())?,
                terminate: listen(SignalKind::terminate())?,
            })
        }
        #[cfg(not(unix))]
        Ok(Self { hangup: None })
    }

    /// Receives `SIGHUP`, too: the terminal was closed, and nothing reloads a configuration. A process that was started to
    /// ignore it, as by `nohup`, goes on; where that cannot be known, the signal does what it did.
    pub(crate) fn with_hangup(self) -> Result<Self, Failure> {
        let hangup = match ignores_hangup() {
            Some(false) => Some(Hangup::listen()?),
            Some(true) | None => None,
        };
        Ok(Self { hangup, ..self })
    }

    /// Waits for the next signal.
    pub(crate) async fn requested(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.received().await,
                None => std::future::pending().await,
            }
        };
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = hangup => {}
        }
        #[cfg(not(unix))]
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = hangup => {}
        }
    }

    /// Runs `work` until a signal is received.
    pub(crate) async fn unless_requested<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            done = work => done,
            () = self.requested() => Err(Failure::command("interrupted")),
        }
    }

    /// Runs `work` until a signal is received. Then `ending` is cancelled, and `work` ends what it has started; another
    /// signal drops it.
    pub(crate) async fn ending<T>(
        &mut self,
        ending: &CancellationToken,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut work = pin!(work);
        tokio::select! {
            done = &mut work => return done,
            () = self.requested() => {}
        }
        ending.cancel();
        notice("ending what was started; Ctrl-C again ends at once");
        tokio::select! {
            _ = work => {}
            () = self.requested() => {}
        }
        Err(Failure::command("interrupted"))
    }
}

/// Whether this process was started to ignore `SIGHUP`, as far as the system tells it. Linux does.
fn ignores_hangup() -> Option<bool> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))?;
    let ignored = u64::from_str_radix(ignored.trim(), 16).ok()?;
    // The lowest bit is that of signal 1, `SIGHUP`.
    Some(ignored & 1 == 1)
}

/// Receives `SIGHUP`, which only Unix has.
#[derive(Debug)]
pub(crate) struct Hangup {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

impl Hangup {
    /// Receives the signal from now on. Before, the signal ends the process.
    pub(crate) fn listen() -> Result<Self, Failure> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let hangup = signal(SignalKind::hangup())
                .map_err(|error| Failure::command(format!("cannot listen for signals: {error}")))?;
            Ok(Self { signal: hangup })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Waits for the next signal.
    pub(crate) async fn received(&mut self) {
        #[cfg(unix)]
        if self.signal.recv().await.is_some() {
            return;
        }
        std::future::pending().await
    }
}
