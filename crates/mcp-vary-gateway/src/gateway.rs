//! The gateway as a whole: what it is configured to be now, and what it has from its start to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use mcp_vary_upstream::ConnectError;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::DropGuard;

use crate::pipeline::runtime::Services;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::pool::source::ServerSource;
use crate::settings::config::Config;

/// A running gateway. It serves clients through [`serve_http`](Self::serve_http) and
/// [`serve_stdio`](Self::serve_stdio), any number of them at once, and can be configured anew while it does:
/// [`reload`](Self::reload).
#[derive(Debug)]
pub struct Gateway {
    /// Requests take it without a lock.
    pub(crate) current: ArcSwap<ConfigSnapshot>,
    pub(crate) services: Arc<Services>,
    /// Held while one configuration takes the place of another, and at the end.
    pub(crate) reloading: Mutex<()>,
    /// Whether clients are answered, or wait until the servers are ready.
    is_serving: AtomicBool,
    /// Changes when that does.
    serving: watch::Sender<bool>,
    /// How many ways in there are for clients.
    endpoints: Arc<AtomicUsize>,
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

    /// Begins to connect to the servers and returns at once. Requests of clients wait until every server was read or
    /// could not be connected to, for [`Config::start_wait`] at most, or until `serve_now`;
    /// what servers list after that is announced. Closing the gateway ends in order what was begun.
    pub async fn open(config: Config) -> Arc<Self> {
        let lasting = Arc::new(Services::new(&config));
        let stop_when_dropped = lasting.shutdown.clone().drop_guard();
        let setup = ConfigSnapshot::open(config, Arc::clone(&lasting), None).await;
        let gateway = Arc::new(Self {
            current: ArcSwap::from_pointee(setup),
            services: lasting,
            reloading: Mutex::default(),
            is_serving: AtomicBool::new(false),
            serving: watch::Sender::new(false),
            endpoints: Arc::default(),
            _stop_when_dropped: stop_when_dropped,
        });
        gateway.sweep();
        gateway.serve_when_ready();
        gateway
    }

    /// Answers clients as soon as the servers were read, or when they have been waited for long enough.
    fn serve_when_ready(self: &Arc<Self>) {
        let setup = self.current();
        let (base, limit) = (Arc::clone(setup.pool.base()), setup.config.start_wait);
        let (gateway, stopped) = (Arc::downgrade(self), self.services.shutdown.clone());
        self.services.background_tasks.spawn(async move {
            stopped
                .run_until_cancelled(base.first_readings(limit))
                .await;
            if let Some(gateway) = gateway.upgrade() {
                gateway.serve_now().await;
            }
        });
    }

    /// Answers clients from now on with what the servers have listed; what the others list is announced later.
    pub async fn serve_now(&self) {
        if self.is_serving.load(Ordering::Acquire) {
            return;
        }
        self.current().pool.publish().await;
        self.is_serving.store(true, Ordering::Release);
        self.serving.send_replace(true);
    }

    /// Waits until clients are answered.
    pub(crate) async fn until_serving(&self) {
        if !self.is_serving.load(Ordering::Acquire) {
            // An error would mean that the gateway is gone.
            let _ = self.serving.subscribe().wait_for(|answers| *answers).await;
        }
    }

    /// Waits until the servers were connected to and read, or could not be.
    ///
    /// # Errors
    ///
    /// As those of [`start`](Self::start); the gateway is closed then.
    pub async fn connected(&self) -> Result<(), ConnectError> {
        self.connected_until(|_| false).await
    }

    /// The same, or until `is_enough`, which is asked again whenever another server was read or could not be
    /// connected to.
    ///
    /// # Errors
    ///
    /// As those of [`connected`](Self::connected).
    pub async fn connected_until(
        &self,
        mut is_enough: impl FnMut(&Self) -> bool,
    ) -> Result<(), ConnectError> {
        let setup = self.current();
        let base = setup.pool.base();
        let readings = base.sources().iter().map(|source| source.first_reading());
        let mut readings: FuturesUnordered<_> = readings.collect();
        loop {
            tokio::select! {
                () = self.until_serving() => break,
                Some(_) = readings.next() => {}
            }
            if is_enough(self) {
                self.serve_now().await;
                break;
            }
        }
        let is_up = |source: &Arc<ServerSource>| source.connection.current().is_some();
        if setup.config.allow_empty_start || base.sources().iter().any(is_up) {
            return Ok(());
        }
        let tried = join_all(
            base.sources()
                .iter()
                .map(|source| source.connection.first_attempt()),
        );
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
    pub(crate) fn current(&self) -> Arc<ConfigSnapshot> {
        self.current.load_full()
    }

    /// Closes connections that nobody uses any more, gives up streams that nobody came back to and lets go of
    /// sessions that have expired, in the background.
    fn sweep(self: &Arc<Self>) {
        let (gateway, stopped) = (Arc::downgrade(self), self.services.shutdown.clone());
        let pause = move || {
            let gateway = gateway.upgrade()?;
            let setup = gateway.current();
            gateway.services.replay_streams.sweep();
            gateway.services.sessions.sweep();
            gateway.services.tasks.core_over_ext.completed.sweep();
            let now = (setup.config.environment.now)();
            gateway.services.hub.sweep(now);
            Some(setup.pool.sweep())
        };
        self.services.background_tasks.spawn(async move {
            while let Some(pause) = pause() {
                let slept = stopped.run_until_cancelled(tokio::time::sleep(pause));
                if slept.await.is_none() {
                    return;
                }
            }
        });
    }

    /// Opens a way in for clients.
    pub(crate) fn new_endpoint(&self) -> Endpoint {
        self.endpoints.fetch_add(1, Ordering::Relaxed);
        Endpoint(Arc::clone(&self.endpoints))
    }

    /// Ends the connections to the servers, so that calls which still wait there are answered: that nothing
    /// comes of them any more.
    pub(crate) fn cancel_calls(&self) {
        let setup = self.current();
        self.services
            .background_tasks
            .spawn(async move { setup.pool.close().await });
    }

    /// Ends what runs in the background and the connections to the servers.
    pub async fn close(&self) {
        self.services.shutdown.cancel();
        // What was about to take the place of this configuration is given up now.
        let _replacing = self.reloading.lock().await;
        self.services.background_tasks.close();
        let setup = self.current();
        setup.pool.close().await;
        let drain = setup.config.limits.drain;
        if tokio::time::timeout(drain, self.services.background_tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("tasks were still running at the end");
        }
    }
}

/// A way in for clients; closed when dropped.
#[derive(Debug)]
pub(crate) struct Endpoint(Arc<AtomicUsize>);

impl Endpoint {
    /// Whether clients have no other.
    pub(crate) fn is_last(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 1
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
