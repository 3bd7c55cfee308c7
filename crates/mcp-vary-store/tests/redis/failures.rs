//! A store that is away, slow, full, or takes no writes.

use std::future::pending;
use std::time::{Duration, Instant};

use mcp_vary_store::{
    Count, SavedKind, SharedTally as _, Store, StoreAway, StoreState, TIMEOUT, VariantUse, Verdict,
};
use mcp_vary_testkit::captured_log::CapturedLog;
use mcp_vary_testkit::wait::until;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tracing::Level;

use crate::server::{KEY, PASSWORD, Redis, Replica, now, session};
use crate::tallies::Counted;

fn limit() -> Vec<Count> {
    vec![Count {
        name: "ann".to_owned(),
        interval: Duration::from_secs(1),
        tolerance: Duration::from_secs(999),
    }]
}

#[tokio::test]
async fn a_store_that_ends_is_away_at_once_and_comes_back_by_itself() {
    let redis = Redis::start();
    let port = redis.port;
    let replica = Replica::start(&redis).await;
    drop(redis);
    replica.is(StoreState::Away).await;
    let began = Instant::now();
    for _ in 0..100 {
        assert_eq!(replica.store.count(limit()).await, Err(StoreAway));
    }
    assert!(began.elapsed() < TIMEOUT);
    assert!(replica.counted("count", "skipped") >= 100);
    let _redis = Redis::start_at(port);
    replica.is(StoreState::Up).await;
    assert_eq!(replica.store.count(limit()).await, Ok(Verdict::Allowed));
}

#[tokio::test]
async fn a_store_that_hangs_holds_up_requests_for_a_moment_only() {
    let redis = Redis::start();
    let replica = Replica::with_timeout(&redis.url(), [KEY], TIMEOUT);
    replica.is(StoreState::Up).await;
    redis.signal("STOP");
    let began = Instant::now();
    assert_eq!(replica.store.count(limit()).await, Err(StoreAway));
    assert!(began.elapsed() >= TIMEOUT && began.elapsed() < Duration::from_secs(5));
    replica.is(StoreState::Away).await;
    redis.signal("CONT");
    replica.is(StoreState::Up).await;
    assert_eq!(replica.store.count(limit()).await, Ok(Verdict::Allowed));
}

#[tokio::test]
async fn a_store_that_takes_no_writes_is_away() {
    let redis = Redis::start();
    let replica = Replica::start(&redis).await;
    let () = redis.query(&["CONFIG", "SET", "maxmemory", "1"]);
    replica.is(StoreState::Away).await;
    let () = redis.query(&["CONFIG", "SET", "maxmemory", "0"]);
    replica.is(StoreState::Up).await;
    let () = redis.query(&["REPLICAOF", "127.0.0.1", "1"]);
    replica.is(StoreState::Away).await;
    let () = redis.query(&["REPLICAOF", "NO", "ONE"]);
    replica.is(StoreState::Up).await;
}

#[tokio::test]
async fn what_is_no_store_is_away_whatever_it_answers() {
    for answer in [
        "",
        "HTTP/1.1 400\r\n\r\n",
        "$99999999999\r\n",
        "*-5\r\n",
        "%9\r\n",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut peer, _)) = listener.accept().await {
                let _ = peer.write_all(answer.as_bytes()).await;
            }
        });
        let replica = Replica::at(&url, [KEY]);
        replica.is(StoreState::Away).await;
        assert_eq!(replica.store.count(limit()).await, Err(StoreAway));
        assert!(replica.learned.lock().unwrap().is_empty(), "{answer}");
    }
}

#[tokio::test]
async fn scripts_that_the_store_forgot_are_sent_again() {
    let redis = Redis::start();
    let replica = Replica::start(&redis).await;
    for _ in 0..3 {
        assert_eq!(replica.store.count(limit()).await, Ok(Verdict::Allowed));
        let () = redis.query(&["SCRIPT", "FLUSH"]);
    }
    assert_eq!(replica.counted("count", "ok"), 3);
}

#[tokio::test]
async fn the_log_has_a_line_when_the_store_goes_and_one_when_it_is_back_without_its_password() {
    let (log, _guard) = CapturedLog::listen("mcp_vary_store", Level::TRACE);
    let redis = Redis::start();
    let port = redis.port;
    let replica = Replica::start(&redis).await;
    drop(redis);
    replica.is(StoreState::Away).await;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let _redis = Redis::start_at(port);
    replica.is(StoreState::Up).await;
    let lines = log.take();
    let begins: Vec<_> = lines.iter().filter_map(|it| it.split(';').next()).collect();
    // The first one may find that the server has not begun to listen.
    let begins = begins.strip_prefix(&["WARN store away"]).unwrap_or(&begins);
    let expected = [
        "INFO store connected",
        "WARN store away",
        "INFO store connected",
    ];
    assert_eq!(begins, expected, "{lines:?}");
    let shown = format!("{lines:?} {:?}", replica.store);
    let address = format!("redis://127.0.0.1:{port}/1");
    assert!(shown.contains(&address), "{shown}");
    assert!(!shown.contains(PASSWORD), "{shown}");
}

/// docs/how-to/replicas.md
#[tokio::test]
async fn the_user_of_the_page_may_do_all_that_is_needed() {
    let redis = Redis::start();
    let replica = Replica::start(&redis).await;
    let page = include_str!("../../../../docs/how-to/replicas.md");
    let line = page.lines().find(|line| line.starts_with("ACL SETUSER"));
    let line = line.unwrap().replace("PASSWORD", PASSWORD);
    let () = redis.query(&line.split(' ').collect::<Vec<_>>());
    let url = redis.url().replace("redis://:", "redis://vary:");
    let user = Replica::at(&url, [KEY]);
    user.is(StoreState::Up).await;
    assert_eq!(user.store.count(limit()).await, Ok(Verdict::Allowed));
    user.store.end_session(session(1)).await;
    replica.learns(&[session(1)]).await;
    replica.store.end_session(session(2)).await;
    user.learns(&[session(2)]).await;
    assert_eq!(user.counted("end_session", "ok"), 1);
    let minute = Duration::from_secs(60);
    user.store
        .save(SavedKind::Task, "a", b"text".to_vec(), minute);
    until(async || user.counted("save", "ok") == 1).await;
    let loaded = user.store.load(SavedKind::Task, "a").await.unwrap();
    assert_eq!(loaded.as_deref(), Some(&b"text"[..]));
    assert_eq!(user.store.would_refuse(limit()).await, Ok(Verdict::Allowed));
    for variant in ["standard", "compact"] {
        let used = VariantUse {
            client: "ann",
            variant,
            available: &["standard", "compact"],
            counts: &limit(),
        };
        assert_eq!(user.store.use_variant(&used).await, Ok(None));
    }
    let [there, here] = [&replica, &user].map(|it| Counted::shared_by(it, 1));
    here.count(7, 1);
    there.has(&[(7, here.source(), 1)]).await;
    assert_eq!(user.counted("tally", "failed"), 0);
    assert_eq!(user.counted("read", "failed"), 0);
}

/// The page had no commands for tallies in earlier versions.
#[tokio::test]
async fn a_user_that_may_not_share_tallies_can_still_do_everything_else() {
    let redis = Redis::start();
    let rule = format!("ACL SETUSER vary on >{PASSWORD} ~vary:* &vary:* +@all -hset -hscan");
    let () = redis.query(&rule.split(' ').collect::<Vec<_>>());
    let url = redis.url().replace("redis://:", "redis://vary:");
    let user = Replica::at(&url, [KEY]);
    user.is(StoreState::Up).await;
    Counted::shared_by(&user, 1).count(7, 1);
    until(async || user.counted("read", "failed") > 1).await;
    let () = redis.query(&["ACL", "SETUSER", "vary", "+hscan"]);
    until(async || user.counted("tally", "failed") > 1).await;
    assert_eq!(user.store.state(), StoreState::Up);
    assert_eq!(user.store.count(limit()).await, Ok(Verdict::Allowed));
}

#[tokio::test]
async fn a_wrong_password_is_logged_as_such_and_not_repeated() {
    let (log, _guard) = CapturedLog::listen("mcp_vary_store", Level::TRACE);
    let redis = Redis::start();
    Replica::start(&redis).await;
    log.take();
    let url = redis.url().replace(PASSWORD, "swordfish");
    let store = Store::new(url.parse().unwrap(), [KEY], now, 1);
    let is_away = until(async || store.state() == StoreState::Away);
    tokio::select! {
        () = store.run(|_| (), drop, pending()) => unreachable!("nothing stops it"),
        () = is_away => {}
    }
    let lines = log.take();
    let [line] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert!(!line.contains("swordfish"), "{line}");
    assert!(
        line.contains("WRONGPASS") || line.contains("AUTH"),
        "{line}"
    );
}
