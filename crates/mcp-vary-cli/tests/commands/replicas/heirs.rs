//! Sessions whose replica has ended: each goes on at one other replica, whatever the load balancer does.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use mcp_vary_testkit::message::notification;
use serde_json::Value;

use super::forwarding::{self, ROOTS, call_in, of, open, roots, stream_of, text_of};
use super::*;

/// A call must not hang so long, whatever has ended.
const PROMPT: Duration = Duration::from_secs(3);

/// Asks at these addresses in turn, as a load balancer without affinity does.
struct InTurn {
    addresses: Vec<SocketAddr>,
    next: AtomicUsize,
}

impl InTurn {
    fn at(addresses: Vec<SocketAddr>) -> Self {
        Self {
            addresses,
            next: AtomicUsize::new(0),
        }
    }

    fn of(replicas: &Replicas) -> Self {
        let addresses = replicas.all.iter().map(|replica| replica.server.address);
        Self::at(addresses.collect())
    }

    async fn connect(&self) -> RawHttp {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        RawHttp::connect(self.addresses[number % self.addresses.len()]).await
    }

    /// Calls `ask` and answers the question at the next replica. Returns the text of the result.
    async fn ask_and_answer(&self, session: &str) -> String {
        let mut asking = self.connect().await;
        asking.send(&call_in(session, "ask").bytes()).await;
        asking.head().await;
        let question = asking.event().await.unwrap();
        assert_eq!(question["method"], "roots/list", "{question}");
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": roots()});
        let accepted = self.connect().await.ask(&of(session, &answer)).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text());
        text_of(&asking.event().await.unwrap()).to_owned()
    }

    /// Opens the stream of a session, subscribes to a resource, has it changed, and awaits the notification, each at another
    /// replica.
    async fn listen_and_subscribe(&self, session: &str) {
        let mut stream = self.connect().await;
        stream.send(&stream_of(session).bytes()).await;
        assert_eq!(stream.head().await.status, 200);
        let subscribe = request(
            json!("s"),
            "resources/subscribe",
            json!({"uri": "note://one"}),
        );
        let subscribed = self
            .connect()
            .await
            .ask(&of(session, &subscribe))
            .await
            .answer();
        assert!(subscribed["result"].is_object(), "{subscribed}");
        let touched = self
            .connect()
            .await
            .ask(&call_in(session, "touch"))
            .await
            .answer();
        assert_eq!(text_of(&touched), "touched");
        let changed = stream.event().await.unwrap();
        assert_eq!(
            changed["method"], "notifications/resources/updated",
            "{changed}"
        );
    }
}

/// Opens this many sessions of clients with these capabilities at each replica.
async fn sessions(replicas: &Replicas, number: usize, capabilities: &Value) -> Vec<String> {
    let mut sessions = Vec::new();
    for replica in &replicas.all {
        for _ in 0..number {
            sessions.push(open(replica, capabilities).await);
        }
    }
    sessions
}

/// Three replicas behind HAProxy in turn, with 96 sessions: 36 are asked, and all of them listen and subscribe. Nothing
/// fails and nothing hangs after `end` of each replica.
async fn all_meet_again_after(name: &str, end: impl AsyncFn(&mut Gateway)) {
    let (server, mut replicas) = forwarding::replicas(name, "").await;
    let haproxy = drills::in_turn(&replicas).await;
    let in_turn = InTurn::at(vec![haproxy.address]);
    let askable = sessions(&replicas, 12, &json!({"roots": {}})).await;
    let plain = sessions(&replicas, 20, &json!({})).await;
    for session in &askable {
        assert_eq!(in_turn.ask_and_answer(session).await, ROOTS);
    }
    for replica in &mut replicas.all {
        end(replica).await;
    }
    // HAProxy has seen that they are back.
    let ping = of(&plain[0], &request(json!("p"), "ping", json!({})));
    until(async || in_turn.connect().await.ask(&ping).await.status == 200).await;
    let before = server.of("tools/call").len();
    for (number, session) in askable.iter().enumerate() {
        let answered = tokio::time::timeout(PROMPT, in_turn.ask_and_answer(session)).await;
        assert_eq!(answered.as_deref(), Ok(ROOTS), "session {number}");
    }
    // For the server, each of them is one client.
    let after: Vec<_> = server.of("tools/call").split_off(before);
    let seen: BTreeSet<_> = after
        .iter()
        .map(|call| call.header("mcp-session-id"))
        .collect();
    assert_eq!(seen.len(), askable.len(), "{seen:?}");
    for (number, session) in askable.iter().chain(&plain).enumerate() {
        let notified = tokio::time::timeout(PROMPT, in_turn.listen_and_subscribe(session));
        assert!(notified.await.is_ok(), "session {number} was not notified");
    }
    replicas.end();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn after_a_roll_each_session_goes_on_at_one_replica() {
    all_meet_again_after("heirs-roll", async |replica| {
        replica.replace_after("TERM", false).await;
        replica.is_ready_with_store("up").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn after_kills_each_session_goes_on_at_one_replica() {
    let number = AtomicUsize::new(0);
    all_meet_again_after("heirs-kill", async |replica| {
        // One of them lives on, and the killed ones are started again.
        if number.fetch_add(1, Ordering::Relaxed) < 2 {
            replica.replace_after("KILL", false).await;
            replica.is_ready_with_store("up").await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn what_cannot_go_on_after_a_kill_is_told_at_once() {
    let (_server, mut replicas) = forwarding::replicas("heirs-told", "").await;
    let session = open(&replicas.all[0], &json!({"roots": {}})).await;
    let mut asking = replicas.all[1].connect().await;
    asking.send(&call_in(&session, "ask").bytes()).await;
    asking.head().await;
    let question = asking.event().await.unwrap();
    signal("KILL", replicas.all[0].server.child.id());
    drop(replicas.all.remove(0));
    let killed = Instant::now();
    // The answer belongs to a question that nobody asks any more, and the call ends.
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": roots()});
    let refused = replicas.all[1].ask(&of(&session, &answer)).await;
    assert_eq!(refused.status, 400);
    assert_contains(&refused.text(), &["has not asked that"]);
    until(async || asking.is_closed().await).await;
    assert!(killed.elapsed() < PROMPT, "{:?}", killed.elapsed());
    // A cancellation of what does not run reaches nobody, and the session goes on.
    let cancel = notification("notifications/cancelled", json!({"requestId": "ask"}));
    assert_eq!(
        replicas.all[0].ask(&of(&session, &cancel)).await.status,
        202
    );
    let in_turn = InTurn::of(&replicas);
    assert_eq!(in_turn.ask_and_answer(&session).await, ROOTS);
    replicas.end();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn a_question_whose_answer_cannot_arrive_is_refused_at_once() {
    let (_server, mut replicas) = forwarding::replicas("heirs-away", "").await;
    let session = open(&replicas.all[0], &json!({"roots": {}})).await;
    replicas.redis = None;
    for replica in &replicas.all {
        replica.is_ready_with_store("away").await;
    }
    let began = Instant::now();
    // The server gets an error in place of the answer, and its result is what it makes of it.
    let answer = replicas.all[1]
        .ask(&call_in(&session, "ask"))
        .await
        .answer();
    assert_eq!(text_of(&answer), "null", "{answer}");
    assert!(began.elapsed() < PROMPT, "{:?}", began.elapsed());
    // Where the session is at home, it is asked.
    let mut asking = replicas.all[0].connect().await;
    asking.send(&call_in(&session, "ask").bytes()).await;
    asking.head().await;
    assert_eq!(asking.event().await.unwrap()["method"], "roots/list");
    drop(asking);
    replicas.end();
}
