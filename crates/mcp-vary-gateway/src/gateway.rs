//! The gateway as a whole: what it is configured to be now, and what it has from its start to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use tokio::sync::Mutex;
use tokio_util::sync::DropGuard;

use crate::catalog::source::Source;
use crate::config::Config;
use crate::lasting::Lasting;
use crate::setup::Setup;
use crate::upstream::ConnectError;

/// A running gateway. It serves clients through [`serve_http`](Self::serve_http) and
/// [`serve_stdio`](Self::serve_stdio), any number of them at once, and can be configured anew while it does:
/// [`reload`](Self::reload).
#[derive(Debug)]
pub struct Gateway {
    /// Requests take it without a lock.
    pub(crate) current: ArcSwap<Setup>,
    pub(crate) lasting: Arc<Lasting>,
    /// Held while one configuration takes the place of another, and at the end.
    pub(crate) replacing: Mutex<()>,
    /// How many ways in there are for clients.
    entrances: Arc<AtomicUsize>,
    /// Whoever drops the gateway without closing it ends what runs in the background, too.
    _stop_when_dropped: DropGuard,
}

impl Gateway {
    /// Connects to the servers and reads what they offer.
    ///
    /// A server that cannot be connected to does not stop the others, and is tried again. When there is none
    /// yet, the gateway starts only if the configuration says so.
    ///
    /// # Errors
    ///
    /// When no server can be started or reached, or speaks MCP; the error says which and why.
    pub async fn start(config: Config) -> Result<Arc<Self>, ConnectError> {
        let gateway = Self::open(config).await;
        gateway.connected().await?;
        Ok(gateway)
    }

    /// Begins to connect to the servers and returns at once. Until [`connected`](Self::connected) there is
    /// little to list; whoever will not wait for it closes the gateway, which ends in order what was begun.
    pub async fn open(config: Config) -> Arc<Self> {
        let lasting = Arc::new(Lasting::new(&config));
        let stop_when_dropped = lasting.stopped.clone().drop_guard();
        let setup = Setup::open(config, Arc::clone(&lasting), None).await;
        let gateway = Arc::new(Self {
            current: ArcSwap::from_pointee(setup),
            lasting,
            replacing: Mutex::default(),
            entrances: Arc::default(),
            _stop_when_dropped: stop_when_dropped,
        });
        gateway.sweep();
        gateway
    }

    /// Waits until the servers were connected to and read, or could not be.
    ///
    /// # Errors
    ///
    /// As those of [`start`](Self::start); the gateway is closed then.
    pub async fn connected(&self) -> Result<(), ConnectError> {
        let setup = self.current();
        let base = setup.classes.base();
        base.first_readings(setup.config.start_patience).await;
        let is_up = |source: &Arc<Source>| source.line.up().is_some();
        if setup.config.start_without_servers || base.sources().iter().any(is_up) {
            return Ok(());
        }
        let tried = join_all(base.sources().iter().map(|source| source.line.tried()));
        let errors = tried.await.into_iter().filter_map(Result::err);
        match errors.into_iter().next() {
            Some(error) => {
                self.close().await;
                Err(error)
            }
            None => Ok(()),
        }
    }

    /// What the gateway is configured to be at this moment.
    pub(crate) fn current(&self) -> Arc<Setup> {
        self.current.load_full()
    }

    /// Closes connections that nobody uses any more, gives up streams that nobody came back to and lets go of
    /// sessions that have expired, in the background.
    fn sweep(self: &Arc<Self>) {
        let (gateway, stopped) = (Arc::downgrade(self), self.lasting.stopped.clone());
        let pause = move || {
            let gateway = gateway.upgrade()?;
            let setup = gateway.current();
            gateway.lasting.streams.sweep();
            gateway.lasting.sessions.sweep();
            gateway.lasting.finished.sweep();
            let now = (setup.config.outside.now)();
            gateway.lasting.audience.sweep(now);
            Some(setup.classes.sweep())
        };
        self.lasting.tasks.spawn(async move {
            while let Some(pause) = pause() {
                let slept = stopped.run_until_cancelled(tokio::time::sleep(pause));
                if slept.await.is_none() {
                    return;
                }
            }
        });
    }

    /// Opens a way in for clients.
    pub(crate) fn entrance(&self) -> Entrance {
        self.entrances.fetch_add(1, Ordering::Relaxed);
        Entrance(Arc::clone(&self.entrances))
    }

    /// Ends the connections to the servers, so that calls which still wait there are answered: that nothing
    /// comes of them any more.
    pub(crate) fn give_up_calls(&self) {
        let setup = self.current();
        self.lasting
            .tasks
            .spawn(async move { setup.classes.close().await });
    }

    /// Ends what runs in the background and the connections to the servers.
    pub async fn close(&self) {
        self.lasting.stopped.cancel();
        // What was about to take the place of this configuration is given up now.
        let _replacing = self.replacing.lock().await;
        self.lasting.tasks.close();
        let setup = self.current();
        setup.classes.close().await;
        let drain = setup.config.limits.drain;
        if tokio::time::timeout(drain, self.lasting.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("tasks were still running at the end");
        }
    }
}

/// A way in for clients; closed when dropped.
#[derive(Debug)]
pub(crate) struct Entrance(Arc<AtomicUsize>);

impl Entrance {
    /// Whether clients have no other.
    pub(crate) fn is_last(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 1
    }
}

impl Drop for Entrance {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
