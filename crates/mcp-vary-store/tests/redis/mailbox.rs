//! Requests that another replica answers.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use mcp_vary_store::{
    ForwardError, MAX_EXCHANGES, MAX_OF_ONE, ReplicaBody, ReplicaResponse, RequestHead, Responder,
    SILENCE, StoreState,
};
use mcp_vary_testkit::wait::until;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::server::{KEY, PASSWORD, Redis, Replica};

fn head() -> RequestHead {
    head_of("sesame")
}

/// A request with this credential.
fn head_of(credential: &str) -> RequestHead {
    let credential = HeaderValue::try_from(format!("Bearer {credential}")).unwrap();
    let headers = [
        (AUTHORIZATION, credential),
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
    ];
    RequestHead {
        method: Method::POST,
        uri: Uri::from_static("/mcp/agent?x=1"),
        headers: headers.into_iter().collect(),
        address: Some("192.0.2.7".parse().unwrap()),
        certificate: Some("CN=ann, O=Acme".to_owned()),
    }
}

/// Sends a request from `from` to the replica with the tag `to`, in the background.
fn forward(
    from: &Replica,
    to: u32,
    body: Vec<u8>,
) -> JoinHandle<Result<ReplicaResponse, ForwardError>> {
    let store = Arc::clone(&from.store);
    tokio::spawn(async move { store.forward(to, &head(), &body).await })
}

/// The same for a request with this head.
fn forward_head(
    from: &Replica,
    to: u32,
    head: RequestHead,
) -> JoinHandle<Result<ReplicaResponse, ForwardError>> {
    let store = Arc::clone(&from.store);
    tokio::spawn(async move { store.forward(to, &head, &[]).await })
}

/// A store, and two replicas that use it.
async fn two_replicas() -> (Redis, Replica, Replica) {
    let redis = Redis::start();
    let (a, b) = (Replica::start(&redis).await, Replica::start(&redis).await);
    (redis, a, b)
}

/// Why a request has no response.
async fn refusal(response: JoinHandle<Result<ReplicaResponse, ForwardError>>) -> ForwardError {
    response.await.unwrap().unwrap_err()
}

/// All bytes of a body.
async fn read(body: &mut ReplicaBody) -> Result<Vec<u8>, ForwardError> {
    let mut all = Vec::new();
    while let Some(bytes) = poll_fn(|cx| body.poll_data(cx)).await {
        all.extend_from_slice(&bytes?);
    }
    Ok(all)
}

/// The next request at `owner`, whose body was read.
async fn next(owner: &mut Replica) -> (RequestHead, Vec<u8>, Responder) {
    let call = owner.calls.recv().await.unwrap();
    let (head, mut body, responder) = call.open().await.unwrap();
    let body = read(&mut body).await.unwrap();
    (head, body, responder)
}

/// Begins a response without headers.
async fn begin(responder: &mut Responder, first: &[u8], is_last: bool) {
    let headers = HeaderMap::new();
    let begun = responder.begin(StatusCode::OK, &headers, first, is_last);
    begun.await.unwrap();
}

/// Bytes that do not repeat soon.
fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 251 + at) as u8).collect()
}

#[tokio::test]
async fn a_request_arrives_as_it_was_sent_and_its_response_comes_back() {
    let (_redis, a, mut b) = two_replicas().await;
    for length in [0, 10, 16 << 10, 300_000] {
        let response = forward(&a, b.store.tag(), bytes(length));
        let (read_head, body, mut responder) = next(&mut b).await;
        assert_eq!(format!("{read_head:?}"), format!("{:?}", head()));
        assert!(body == bytes(length), "{length}");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("x/y"))]);
        let begun = responder.begin(StatusCode::ACCEPTED, &headers, b"done", true);
        begun.await.unwrap();
        let mut response = response.await.unwrap().unwrap();
        assert_eq!(response.status, StatusCode::ACCEPTED);
        assert_eq!(response.headers, headers);
        assert_eq!(response.body.take_whole().as_deref(), Some(&b"done"[..]));
    }
    assert_eq!(a.counted("forward", "ok"), 4);
    let mut large = head();
    large.certificate = Some("x".repeat(256 << 10));
    let refused = a.store.forward(b.store.tag(), &large, b"").await;
    assert_eq!(refused.unwrap_err(), ForwardError::NotSent);
    assert_eq!(b.counted("receive", "failed"), 0);
}

#[tokio::test]
async fn a_response_of_a_megabyte_is_streamed_and_a_slow_reader_stops_its_sender() {
    let (_redis, a, mut b) = two_replicas().await;
    let response = forward(&a, b.store.tag(), Vec::new());
    let (_, _, mut responder) = next(&mut b).await;
    begin(&mut responder, b"", false).await;
    let mut response = response.await.unwrap().unwrap();
    let sender = tokio::spawn(async move {
        for chunk in bytes(1 << 20).chunks(10_000) {
            let chunk = Bytes::copy_from_slice(chunk);
            responder.send(chunk, false).await.unwrap();
        }
        responder.send(Bytes::new(), true).await.unwrap();
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!sender.is_finished(), "nobody has read anything");
    // Signs of life continue meanwhile.
    tokio::time::sleep(SILENCE).await;
    assert!(read(&mut response.body).await.unwrap() == bytes(1 << 20));
    sender.await.unwrap();
}

#[tokio::test]
async fn an_event_arrives_when_it_is_sent() {
    let (_redis, a, mut b) = two_replicas().await;
    let response = forward(&a, b.store.tag(), Vec::new());
    let (_, _, mut responder) = next(&mut b).await;
    begin(&mut responder, b"1", false).await;
    let mut body = response.await.unwrap().unwrap().body;
    for event in [&b"1"[..], b"2", b"3"] {
        let arrived = poll_fn(|cx| body.poll_data(cx)).await;
        assert_eq!(arrived.unwrap().unwrap(), event);
        let next = Bytes::from(vec![event[0] + 1]);
        responder.send(next, false).await.unwrap();
    }
    drop(responder);
    assert_eq!(read(&mut body).await, Err(ForwardError::Unanswered));
}

#[tokio::test]
async fn a_client_that_hangs_up_ends_its_request_at_the_owner() {
    let (_redis, a, mut b) = two_replicas().await;
    // Before the response, and in the middle of it.
    for has_response in [false, true] {
        let response = forward(&a, b.store.tag(), Vec::new());
        let (_, _, mut responder) = next(&mut b).await;
        if has_response {
            begin(&mut responder, b"", false).await;
            drop(response.await.unwrap().unwrap());
        } else {
            response.abort();
        }
        let abandoned = timeout(Duration::from_secs(2), responder.abandoned());
        abandoned.await.unwrap();
        let sent = responder.send(Bytes::from_static(b"late"), false).await;
        assert_eq!(sent, Err(ForwardError::Unanswered));
    }
}

#[tokio::test]
async fn a_request_that_takes_long_is_acknowledged_and_a_short_one_is_not() {
    let (_redis, a, mut b) = two_replicas().await;
    for _ in 0..50 {
        let response = forward(&a, b.store.tag(), b"short".to_vec());
        let (_, _, mut responder) = next(&mut b).await;
        begin(&mut responder, b"done", true).await;
        drop(response.await.unwrap().unwrap());
    }
    // The responses, and few signs of life.
    let received = a.counted("receive", "ok");
    assert!((50..75).contains(&received), "{received}");

    let response = forward(&a, b.store.tag(), b"long".to_vec());
    let (_, _, mut responder) = next(&mut b).await;
    tokio::time::sleep(SILENCE + Duration::from_millis(500)).await;
    assert!(!response.is_finished());
    begin(&mut responder, b"done", true).await;
    assert_eq!(response.await.unwrap().unwrap().status, StatusCode::OK);
}

#[tokio::test]
async fn an_owner_that_breaks_off_may_have_handled_the_request_unless_it_refuses_it() {
    let (_redis, a, mut b) = two_replicas().await;
    let response = forward(&a, b.store.tag(), Vec::new());
    drop(next(&mut b).await);
    assert_eq!(refusal(response).await, ForwardError::Unanswered);
    let response = forward(&a, b.store.tag(), Vec::new());
    drop(b.calls.recv().await);
    assert_eq!(refusal(response).await, ForwardError::NotSent);
}

#[tokio::test]
async fn an_owner_that_has_ended_is_known_at_once() {
    let (_redis, a, mut b) = two_replicas().await;
    let tag = b.store.tag();
    let response = forward(&a, tag, Vec::new());
    let _responder = next(&mut b).await;
    // It dies with a request, which it may have handled.
    drop(b);
    let died = Instant::now();
    assert_eq!(refusal(response).await, ForwardError::Unanswered);
    assert!(died.elapsed() < 2 * SILENCE, "{:?}", died.elapsed());
    let began = Instant::now();
    for _ in 0..10 {
        let refused = forward(&a, tag, Vec::new());
        assert_eq!(refusal(refused).await, ForwardError::Ended);
    }
    assert!(began.elapsed() < SILENCE);
}

#[tokio::test]
async fn a_replica_that_stops_sends_what_it_has_answered_and_leaves_no_request_in_doubt() {
    let (_redis, a, mut b) = two_replicas().await;
    let tag = b.store.tag();
    let response = forward(&a, tag, Vec::new());
    let (_, _, mut responder) = next(&mut b).await;
    let refused: Vec<_> = (0..100).map(|_| forward(&a, tag, bytes(100))).collect();
    begin(&mut responder, &bytes(40_000), true).await;
    b.stop().await;
    // Its process still exists, and so does its store.
    let began = Instant::now();
    let mut response = response.await.unwrap().unwrap();
    assert_eq!(read(&mut response.body).await, Ok(bytes(40_000)));
    for refused in refused {
        assert_ne!(refusal(refused).await, ForwardError::Unanswered);
    }
    let late = forward(&a, tag, Vec::new());
    assert_eq!(refusal(late).await, ForwardError::Ended);
    assert!(began.elapsed() < SILENCE);
}

/// A client that reads the channel of a replica, but is not one.
struct Listener(redis::Connection);

impl Listener {
    fn start(redis: &Redis, tag: u32) -> Self {
        let pattern = format!("*:mailbox:{tag:08x}");
        let channels: Vec<String> = redis.query(&["PUBSUB", "CHANNELS", &pattern]);
        let client = redis::Client::open(redis.url()).unwrap();
        let mut listener = Self(client.get_connection().unwrap());
        let subscribe = redis::cmd("SUBSCRIBE").arg(&channels).get_packed_command();
        listener.0.send_packed_command(&subscribe).unwrap();
        listener.0.recv_response().unwrap();
        listener
    }

    /// The next message, and its channel.
    fn next(&mut self) -> (String, Vec<u8>) {
        let received = self.0.recv_response().unwrap();
        let (_, channel, message): (String, String, Vec<u8>) =
            redis::from_redis_value(received).unwrap();
        (channel, message)
    }
}

#[tokio::test]
async fn an_owner_that_is_silent_is_given_up_and_not_asked_again_for_a_while() {
    let (redis, a, b) = two_replicas().await;
    let tag = b.store.tag();
    // Somebody receives the messages, so that the store does not know that it is gone.
    let _listener = Listener::start(&redis, tag);
    drop(b);
    let began = Instant::now();
    let silent = forward(&a, tag, Vec::new());
    assert_eq!(refusal(silent).await, ForwardError::Unanswered);
    assert!(began.elapsed() >= SILENCE && began.elapsed() < 2 * SILENCE);
    let began = Instant::now();
    let refused = forward(&a, tag, Vec::new());
    assert_eq!(refusal(refused).await, ForwardError::NotSent);
    assert!(began.elapsed() < SILENCE);
    assert_eq!(a.counted("forward", "skipped"), 1);
}

#[tokio::test]
async fn an_owner_that_lives_is_asked_again_although_a_request_has_no_answer() {
    let (_redis, a, mut b) = two_replicas().await;
    let response = forward(&a, b.store.tag(), Vec::new());
    let unread = b.calls.recv().await;
    assert_eq!(refusal(response).await, ForwardError::Unanswered);
    let response = forward(&a, b.store.tag(), Vec::new());
    let (_, _, mut responder) = next(&mut b).await;
    begin(&mut responder, b"done", true).await;
    assert_eq!(response.await.unwrap().unwrap().status, StatusCode::OK);
    drop(unread);
}

#[tokio::test]
async fn messages_that_are_forged_or_come_twice_are_refused_and_counted() {
    let (redis, a, mut b) = two_replicas().await;
    let mut listener = Listener::start(&redis, b.store.tag());
    let response = forward(&a, b.store.tag(), b"secret".to_vec());
    let (_, body, mut responder) = next(&mut b).await;
    assert_eq!(body, b"secret");
    let (channel, message) = listener.next();
    let is_readable = |part: &[u8]| message.windows(part.len()).any(|it| it == part);
    assert!(!is_readable(b"secret") && !is_readable(b"sesame") && !is_readable(b"/mcp"));
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    let mut forged = message.clone();
    forged[40] ^= 1;
    let other = a.store.tag();
    let elsewhere = channel.replace(&format!("{:08x}", b.store.tag()), &format!("{other:08x}"));
    for (to, sent) in [
        (&channel, &message),
        (&channel, &forged),
        (&elsewhere, &message),
    ] {
        let mut publish = redis::cmd("PUBLISH");
        let receivers: u64 = publish.arg(to).arg(sent).query(&mut connection).unwrap();
        assert!(receivers > 0, "{to}");
    }
    let () = redis.query(&["PUBLISH", &channel, ""]);
    until(async || b.counted("receive", "failed") == 3).await;
    until(async || a.counted("receive", "failed") == 1).await;
    assert!(b.calls.try_recv().is_err(), "the request came once");
    // The exchange itself goes on.
    begin(&mut responder, b"", true).await;
    assert_eq!(response.await.unwrap().unwrap().status, StatusCode::OK);
    // Gateways with other keys have other mailboxes.
    let stranger = Replica::with_keys(&redis, [[2; 32]]);
    stranger.is(StoreState::Up).await;
    let refused = forward(&stranger, b.store.tag(), Vec::new());
    assert_eq!(refusal(refused).await, ForwardError::Ended);
}

#[tokio::test]
async fn without_the_store_nothing_is_sent_and_what_waited_ends() {
    let redis = Redis::start();
    let port = redis.port;
    let (a, mut b) = (Replica::start(&redis).await, Replica::start(&redis).await);
    let tag = b.store.tag();
    let waiting = forward(&a, tag, Vec::new());
    let (_, _, responder) = next(&mut b).await;
    drop(redis);
    assert_eq!(refusal(waiting).await, ForwardError::Unanswered);
    let abandoned = timeout(Duration::from_secs(2), responder.abandoned());
    abandoned.await.unwrap();
    a.is(StoreState::Away).await;
    let refused = forward(&a, tag, Vec::new());
    assert_eq!(refusal(refused).await, ForwardError::NotSent);
    let _redis = Redis::start_at(port);
    a.is(StoreState::Up).await;
    b.is(StoreState::Up).await;
    let again = forward(&a, tag, Vec::new());
    let (_, _, mut responder) = next(&mut b).await;
    begin(&mut responder, b"", true).await;
    assert_eq!(again.await.unwrap().unwrap().status, StatusCode::OK);
}

#[tokio::test]
async fn a_replica_that_was_cut_off_ends_what_it_shared_with_others() {
    let (redis, a, mut b) = two_replicas().await;
    let response = forward(&a, b.store.tag(), Vec::new());
    let (_, _, responder) = next(&mut b).await;
    let () = redis.query(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert_eq!(refusal(response).await, ForwardError::Unanswered);
    timeout(2 * SILENCE, responder.abandoned()).await.unwrap();
}

#[tokio::test]
async fn a_store_that_takes_no_writes_is_away_however_many_messages_come() {
    let (redis, a, mut b) = two_replicas().await;
    let response = forward(&a, b.store.tag(), Vec::new());
    let (_, _, mut responder) = next(&mut b).await;
    begin(&mut responder, b"", false).await;
    // From now on, they send each other signs of life.
    let _open = response.await.unwrap().unwrap();
    let () = redis.query(&["CONFIG", "SET", "maxmemory", "1"]);
    timeout(Duration::from_secs(10), a.is(StoreState::Away))
        .await
        .unwrap();
}

#[tokio::test]
async fn there_are_at_most_so_many_exchanges() {
    let (redis, a, mut b) = two_replicas().await;
    let tag = b.store.tag();
    let mut waiting = Vec::new();
    // A few at a time: on a slow machine all of them would wait too long to be acknowledged.
    while waiting.len() < MAX_EXCHANGES {
        let few = (0..64).map(|at| forward_head(&a, tag, head_of(&format!("key-{at}"))));
        let few: Vec<_> = few.collect();
        for response in few {
            let (_, _, responder) = next(&mut b).await;
            waiting.push((response, responder));
        }
    }
    let refused = forward(&a, tag, Vec::new());
    assert_eq!(refusal(refused).await, ForwardError::Full);
    // An owner that has too many refuses one more without handling it.
    let c = Replica::start(&redis).await;
    let refused = forward(&c, tag, Vec::new());
    assert_eq!(refusal(refused).await, ForwardError::NotSent);
    for (response, responder) in waiting {
        drop(responder);
        assert_eq!(refusal(response).await, ForwardError::Unanswered);
    }
    // A request that was not opened was not handled.
    let response = forward(&a, tag, Vec::new());
    drop(b.calls.recv().await.unwrap());
    assert_eq!(refusal(response).await, ForwardError::NotSent);
    let freed = forward(&c, tag, Vec::new());
    let _responder = next(&mut b).await;
    freed.abort();
}

#[tokio::test]
async fn one_credential_has_a_share_of_the_exchanges_here_and_at_the_owner() {
    let (redis, a, mut b) = two_replicas().await;
    let tag = b.store.tag();
    let mut waiting = Vec::new();
    while waiting.len() < MAX_OF_ONE {
        let few: Vec<_> = (0..64).map(|_| forward(&a, tag, Vec::new())).collect();
        for response in few {
            let (_, _, responder) = next(&mut b).await;
            waiting.push((response, responder));
        }
    }
    let refused = forward(&a, tag, Vec::new());
    assert_eq!(refusal(refused).await, ForwardError::Full);
    // Through another replica, the owner refuses it without handling it.
    let c = Replica::start(&redis).await;
    let refused = forward(&c, tag, Vec::new());
    let call = b.calls.recv().await.unwrap();
    assert_eq!(call.open().await.unwrap_err(), ForwardError::Full);
    assert_eq!(refusal(refused).await, ForwardError::NotSent);
    for from in [&a, &c] {
        let response = forward_head(from, tag, head_of("another"));
        let (_, _, mut responder) = next(&mut b).await;
        let headers = HeaderMap::new();
        let begun = responder.begin(StatusCode::OK, &headers, b"{}", true);
        begun.await.unwrap();
        assert!(response.await.unwrap().is_ok());
    }
    drop(waiting);
}

#[tokio::test]
async fn streams_of_all_leave_a_quarter_of_the_exchanges_to_calls() {
    let (_redis, a, mut b) = two_replicas().await;
    let tag = b.store.tag();
    let stream = |at: usize| RequestHead {
        method: Method::GET,
        ..head_of(&format!("key-{at}"))
    };
    let mut waiting = Vec::new();
    while waiting.len() < MAX_EXCHANGES / 4 * 3 {
        let few: Vec<_> = (0..64)
            .map(|at| forward_head(&a, tag, stream(at)))
            .collect();
        for response in few {
            let (_, _, responder) = next(&mut b).await;
            waiting.push((response, responder));
        }
    }
    let refused = forward_head(&a, tag, stream(0));
    assert_eq!(refusal(refused).await, ForwardError::Full);
    let response = forward(&a, tag, Vec::new());
    let (_, _, mut responder) = next(&mut b).await;
    begin(&mut responder, b"{}", true).await;
    assert!(response.await.unwrap().is_ok());
    drop(waiting);
}

/// While `keys` are replaced, replicas seal with different ones, and each opens both.
#[tokio::test]
async fn replicas_reach_each_other_while_keys_are_replaced() {
    let redis = Redis::start();
    let new = [2; 32];
    let a = Replica::with_keys(&redis, [KEY, new]);
    let mut b = Replica::with_keys(&redis, [new, KEY]);
    a.is(StoreState::Up).await;
    b.is(StoreState::Up).await;
    let response = forward(&a, b.store.tag(), Vec::new());
    let (_, _, mut responder) = next(&mut b).await;
    begin(&mut responder, b"", true).await;
    assert_eq!(response.await.unwrap().unwrap().status, StatusCode::OK);
    assert!(!format!("{:?}", a.store).contains(PASSWORD));
}
