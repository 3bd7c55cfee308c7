//! A `redis-server` for one test, and stores that use it.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_vary_store::{ENDED_ID, ReplicaCall, SessionKey, Store, StoreEvent, StoreState};
use mcp_vary_testkit::wait::until;
use redis::FromRedisValue;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;

/// The password of each server.
pub(crate) const PASSWORD: &str = "hunter2-hunter2";

/// The keys of each replica.
pub(crate) const KEY: [u8; 32] = [1; 32];

/// What it writes to its output.
const LOG: &str = "redis.log";

/// A running `redis-server`.
pub(crate) struct Redis {
    pub(crate) port: u16,
    process: Child,
    folder: PathBuf,
}

impl Redis {
    /// Starts one on a free port, and waits for it.
    pub(crate) fn start() -> Self {
        loop {
            let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
            let mut redis = Self::start_at(free.unwrap().port());
            if redis.is_ready() {
                return redis;
            }
        }
    }

    /// Waits until it accepts connections; `false` if it has ended, because another program took its port.
    fn is_ready(&mut self) -> bool {
        let log = self.folder.join(LOG);
        while self.process.try_wait().unwrap().is_none() {
            let written = fs::read_to_string(&log).unwrap_or_default();
            if written.contains("Ready to accept connections") {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// Starts one that remembers nothing of an earlier one.
    pub(crate) fn start_at(port: u16) -> Self {
        let folder = std::env::temp_dir().join(format!("vary-store-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new("redis-server");
        command
            .args([
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--requirepass",
                PASSWORD,
            ])
            .args(["--port", &port.to_string(), "--dir"])
            .arg(&folder)
            .stdout(File::create(folder.join(LOG)).unwrap());
        let missing = "redis-server is missing; on Debian, type as root: apt-get update && apt-get install -y redis-server";
        Self {
            port,
            process: command.spawn().expect(missing),
            folder,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://:{PASSWORD}@127.0.0.1:{}/1", self.port)
    }

    /// Sends a signal to it, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let process = self.process.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &process])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Sends a command to it, and returns the answer.
    pub(crate) fn query<T: FromRedisValue>(&self, command: &[&str]) -> T {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = client.get_connection().unwrap();
        let mut query = redis::cmd(command[0]);
        query.arg(&command[1..]);
        query.query(&mut connection).unwrap()
    }

    /// All keys that end so.
    pub(crate) fn keys(&self, end: &str) -> Vec<String> {
        self.query(&["KEYS", &format!("*{end}")])
    }

    /// The only key of ended sessions.
    pub(crate) fn ended(&self) -> String {
        let keys = self.keys(":ended");
        assert_eq!(keys.len(), 1, "{keys:?}");
        keys[0].clone()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The numbers of replicas, of which none occurs twice.
static REPLICAS: AtomicU64 = AtomicU64::new(0x1234_5678_0000_0001);

/// A replica, as far as the store is concerned.
pub(crate) struct Replica {
    pub(crate) store: Arc<Store>,
    pub(crate) learned: Arc<Mutex<Vec<StoreEvent>>>,
    /// The requests of other replicas.
    pub(crate) calls: UnboundedReceiver<ReplicaCall>,
    running: JoinHandle<()>,
    stop: Arc<Notify>,
}

impl Replica {
    /// A replica with these keys, which connects.
    pub(crate) fn with_keys(redis: &Redis, keys: impl IntoIterator<Item = [u8; 32]>) -> Self {
        Self::at(&redis.url(), keys)
    }

    /// The same with another address. Requests wait longer than those of clients: a test may run beside many others.
    pub(crate) fn at(url: &str, keys: impl IntoIterator<Item = [u8; 32]>) -> Self {
        Self::with_timeout(url, keys, Duration::from_secs(20))
    }

    /// The same, in which requests wait so long.
    pub(crate) fn with_timeout(
        url: &str,
        keys: impl IntoIterator<Item = [u8; 32]>,
        timeout: Duration,
    ) -> Self {
        let number = REPLICAS.fetch_add(1, Ordering::Relaxed);
        let store = Store::new(url.parse().unwrap(), keys, now, number);
        let store = Arc::new(store.with_timeout(timeout));
        let learned = Arc::<Mutex<Vec<_>>>::default();
        let (running, into) = (Arc::clone(&store), Arc::clone(&learned));
        let (sender, calls) = unbounded_channel();
        let stop = Arc::<Notify>::default();
        let stopped = Arc::clone(&stop);
        let running = tokio::spawn(async move {
            let learn = |event| into.lock().unwrap().push(event);
            let serve = |call| drop(sender.send(call));
            running.run(learn, serve, stopped.notified()).await;
        });
        Self {
            store,
            learned,
            calls,
            running,
            stop,
        }
    }

    /// A replica that is connected.
    pub(crate) async fn start(redis: &Redis) -> Self {
        let replica = Self::with_keys(redis, [KEY]);
        replica.is(StoreState::Up).await;
        replica
    }

    /// Stops it: it refuses requests from now on.
    pub(crate) async fn stop(&mut self) {
        self.calls.close();
        while self.calls.recv().await.is_some() {}
        self.stop.notify_one();
        (&mut self.running).await.unwrap();
    }

    /// Waits until the store is in this state.
    pub(crate) async fn is(&self, state: StoreState) {
        until(async || self.store.state() == state).await;
    }

    /// Waits until it has learned that these sessions have ended.
    pub(crate) async fn learns(&self, sessions: &[SessionKey]) {
        let expected: Vec<_> = sessions.iter().copied().map(StoreEvent::Ended).collect();
        until(async || {
            let learned = self.learned.lock().unwrap();
            expected.iter().all(|event| learned.contains(event))
        })
        .await;
    }

    /// How often an operation had an outcome.
    pub(crate) fn counted(&self, operation: &str, outcome: &str) -> u64 {
        let mut all = self.store.operations();
        all.find(|(names, _)| *names == [operation, outcome])
            .unwrap()
            .1
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.running.abort();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the store has the clock of the system, too"
)]
pub(crate) fn now() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    elapsed.unwrap().as_secs()
}

/// A session that would have expired in a hundred years.
pub(crate) fn session(number: u8) -> SessionKey {
    SessionKey {
        expires: 4_900_000_000,
        id: [number; ENDED_ID],
    }
}

/// A session that would have expired after this time.
pub(crate) fn expiring(number: u8, remaining: Duration) -> SessionKey {
    SessionKey {
        expires: now() + remaining.as_secs(),
        ..session(number)
    }
}
