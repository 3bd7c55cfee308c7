//! A store that is found by Redis Sentinel, and fails over to another server.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use mcp_vary_store::{Count, StoreState, Verdict};
use mcp_vary_testkit::captured_log::CapturedLog;
use mcp_vary_testkit::wait::until;
use tracing::Level;

use crate::server::{KEY, PASSWORD, Redis, Replica, session};

/// A running Sentinel, which asks for the same password as the servers if it has one.
struct Sentinel {
    port: u16,
    process: Child,
    folder: PathBuf,
}

impl Sentinel {
    /// Watches `server`, which it calls `main`.
    fn start(server: &Redis, password: Option<&str>) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
        let port = port.unwrap().port();
        let folder =
            std::env::temp_dir().join(format!("vary-sentinel-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let asks =
            password.map_or_else(String::new, |password| format!("requirepass {password}\n"));
        let file = folder.join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\n{asks}sentinel monitor main 127.0.0.1 {} 1\n\
             sentinel auth-pass main {PASSWORD}\nsentinel down-after-milliseconds main 500\n\
             sentinel failover-timeout main 5000\n",
            folder.display(),
            server.port
        );
        fs::write(&file, text).unwrap();
        let log = File::create(folder.join("sentinel.log")).unwrap();
        let mut command = Command::new("redis-server");
        let started = command.arg(file).arg("--sentinel").stdout(log).spawn();
        let started = Self {
            port,
            process: started.expect("redis-server is missing"),
            folder,
        };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
        started
    }

    fn url(&self) -> String {
        // Nobody listens at the first one.
        format!(
            "redis+sentinel://:{PASSWORD}@127.0.0.1:1,127.0.0.1:{}/main/1",
            self.port
        )
    }

    /// Waits until it knows a server that it can fail over to.
    async fn knows_replica(&self, password: Option<&str>) {
        until(async || {
            let user = password.map_or_else(String::new, |password| format!(":{password}@"));
            let client =
                redis::Client::open(format!("redis://{user}127.0.0.1:{}", self.port)).unwrap();
            let Ok(mut connection) = client.get_connection() else {
                return false;
            };
            let mut ask = redis::cmd("SENTINEL");
            let known: Vec<Vec<String>> = ask
                .arg("REPLICAS")
                .arg("main")
                .query(&mut connection)
                .unwrap();
            let state = known.first().and_then(|fields| {
                let at = fields.iter().position(|it| it == "master-link-status")?;
                fields.get(at + 1)
            });
            state.is_some_and(|it| it == "ok")
        })
        .await;
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn limit() -> Vec<Count> {
    vec![Count {
        name: "ann".to_owned(),
        interval: Duration::from_secs(3600),
        tolerance: Duration::from_secs(3600),
    }]
}

#[tokio::test]
async fn after_a_failover_the_new_server_is_used_and_has_what_the_old_one_had() {
    for password in [None, Some(PASSWORD)] {
        let (first, second) = (Redis::start(), Redis::start());
        let () = second.query(&["CONFIG", "SET", "masterauth", PASSWORD]);
        let () = second.query(&["REPLICAOF", "127.0.0.1", &first.port.to_string()]);
        let sentinel = Sentinel::start(&first, password);
        sentinel.knows_replica(password).await;
        let replica = Replica::at(&sentinel.url(), [KEY]);
        replica.is(StoreState::Up).await;
        assert_eq!(replica.store.count(limit()).await, Ok(Verdict::Allowed));
        replica.store.end_session(session(1)).await;
        until(async || !second.keys(":ended").is_empty()).await;
        drop(first);
        replica.is(StoreState::Away).await;
        replica.is(StoreState::Up).await;
        // Two are allowed at once.
        assert_eq!(replica.store.count(limit()).await, Ok(Verdict::Allowed));
        let refused = replica.store.count(limit()).await;
        assert!(
            matches!(refused, Ok(Verdict::Refused { index: 0, .. })),
            "{refused:?}"
        );
        let later = Replica::at(&sentinel.url(), [KEY]);
        later.learns(&[session(1)]).await;
    }
}

#[tokio::test]
async fn a_name_that_no_sentinel_knows_is_said() {
    let redis = Redis::start();
    let sentinel = Sentinel::start(&redis, None);
    let (log, _guard) = CapturedLog::listen("mcp_vary_store", Level::TRACE);
    let replica = Replica::at(&sentinel.url().replace("/main", "/other"), [KEY]);
    replica.is(StoreState::Away).await;
    let text = log.take().join("\n");
    assert!(
        text.contains("no Sentinel says where the store is - Io: it knows no server `other`"),
        "{text}"
    );
    assert!(!text.contains(PASSWORD));
}

#[tokio::test]
async fn a_sentinel_that_hangs_or_is_none_is_passed_over() {
    let redis = Redis::start();
    let sentinel = Sentinel::start(&redis, None);
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    let hanging_port = hanging.local_addr().unwrap().port();
    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    let web_port = web.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in web.incoming() {
            socket
                .unwrap()
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .unwrap();
        }
    });
    let others = format!("127.0.0.1:{},127.0.0.1:{web_port},", hanging_port);
    let url = sentinel.url().replace("127.0.0.1:1,", &others);
    let replica = Replica::at(&url, [KEY]);
    replica.is(StoreState::Up).await;
}
