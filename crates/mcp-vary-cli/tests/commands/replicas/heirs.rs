//! Sessions whose replica has ended: each goes on at one other replica, whatever the load balancer does.

use std::collections::BTreeSet;

use mcp_vary_testkit::message::notification;
use serde_json::Value;

use super::forwarding::{self, ROOTS, call_in, of, open, roots, stream_of, text_of};
use super::*;

/// A call must not hang so long, whatever has ended.
const PROMPT: Duration = Duration::from_secs(3);

/// Asks the replicas in turn, as a load balancer without affinity.
struct InTurn<'a> {
    all: &'a [Gateway],
    next: AtomicUsize,
}

impl<'a> InTurn<'a> {
    fn of(replicas: &'a Replicas) -> Self {
        Self {
            all: &replicas.all,
            next: AtomicUsize::new(0),
        }
    }

    fn next(&self) -> &'a Gateway {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        &self.all[number % self.all.len()]
    }

    /// Calls `ask` and answers the question at the next replica. Returns the text of the result.
    async fn ask_and_answer(&self, session: &str) -> String {
        let mut asking = self.next().connect().await;
        asking.send(&call_in(session, "ask").bytes()).await;
        asking.head().await;
        let question = asking.event().await.unwrap();
        assert_eq!(question["method"], "roots/list", "{question}");
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": roots()});
        let accepted = self.next().ask(&of(session, &answer)).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text());
        text_of(&asking.event().await.unwrap()).to_owned()
    }

    /// Opens the stream of a session, subscribes to a resource, has it changed, and awaits the notification, each at another
    /// replica.
    async fn listen_and_subscribe(&self, session: &str) {
        let mut stream = self.next().connect().await;
        stream.send(&stream_of(session).bytes()).await;
        assert_eq!(stream.head().await.status, 200);
        let subscribe = request(
            json!("s"),
            "resources/subscribe",
            json!({"uri": "note://one"}),
        );
        let subscribed = self.next().ask(&of(session, &subscribe)).await.answer();
        assert!(subscribed["result"].is_object(), "{subscribed}");
        let touched = self.next().ask(&call_in(session, "touch")).await.answer();
        assert_eq!(text_of(&touched), "touched");
        let changed = stream.event().await.unwrap();
        assert_eq!(
            changed["method"], "notifications/resources/updated",
            "{changed}"
        );
    }
}

/// Everything that a session does after the end of its replica. Returns the texts of the answered questions.
async fn all_meet_again(replicas: &Replicas, sessions: &[String]) {
    let in_turn = InTurn::of(replicas);
    for round in 0..3 {
        for (number, session) in sessions.iter().enumerate() {
            let began = Instant::now();
            let answering = in_turn.ask_and_answer(session);
            let text = tokio::time::timeout(PROMPT, answering).await;
            assert_eq!(text.as_deref(), Ok(ROOTS), "{round}, {number}");
            assert!(began.elapsed() < PROMPT);
            // Another replica begins the next time.
            in_turn.next();
        }
    }
    for (number, session) in sessions.iter().enumerate() {
        let notified = in_turn.listen_and_subscribe(session);
        let limit = tokio::time::timeout(PROMPT, notified).await;
        assert!(limit.is_ok(), "session {number} was not notified");
    }
}

async fn sessions(replicas: &Replicas, capabilities: &Value) -> Vec<String> {
    let mut sessions = Vec::new();
    for replica in &replicas.all {
        for _ in 0..4 {
            sessions.push(open(replica, capabilities).await);
        }
    }
    sessions
}

/// Three replicas in front of one server, with sessions of both kinds at each: 36 questions, and more than 21 streams.
async fn all_meet_again_after(name: &str, end: impl AsyncFn(&mut Gateway)) {
    let (server, mut replicas) = forwarding::replicas(name, "").await;
    let askable = sessions(&replicas, &json!({"roots": {}})).await;
    let plain = sessions(&replicas, &json!({})).await;
    for session in &askable {
        assert_eq!(InTurn::of(&replicas).ask_and_answer(session).await, ROOTS);
    }
    for replica in &mut replicas.all {
        end(replica).await;
    }
    let before = server.of("tools/call").len();
    all_meet_again(&replicas, &askable).await;
    // For the server, each of them is one client.
    let after: Vec<_> = server.of("tools/call").split_off(before);
    let seen: BTreeSet<_> = after.iter().map(|it| it.header("mcp-session-id")).collect();
    assert_eq!(seen.len(), askable.len(), "{seen:?}");
    let in_turn = InTurn::of(&replicas);
    for (number, session) in plain.iter().enumerate() {
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
