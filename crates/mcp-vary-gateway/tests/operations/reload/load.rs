//! Reloads while many clients call tools.

use super::*;

/// Calls of many clients over HTTP and stdio while servers come, go and change: each is answered once, by the
/// server that it was for, and it ran once.
#[tokio::test(flavor = "multi_thread")]
async fn no_call_is_lost_or_run_twice_under_load() {
    const RELOADS: usize = 30;
    let diary = Arc::new(Diary::new());
    let harness = Arc::new(started(diary.config(&["kept", "changed"])).await);
    let kept = process(&harness, "kept_who").await;
    let done = Arc::new(AtomicBool::new(false));
    let numbers = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for n in 0..8 {
        let (harness, done, numbers) = (
            Arc::clone(&harness),
            Arc::clone(&done),
            Arc::clone(&numbers),
        );
        let way = ClientKind::ALL[n % ClientKind::ALL.len()];
        clients.spawn(async move { call_until(way, &harness, &done, &numbers).await });
    }
    for round in 0..RELOADS {
        let mut servers = vec![diary.server("kept"), diary.changed("changed", round / 2)];
        if round % 3 == 0 {
            servers.insert(0, diary.server("passing"));
        }
        let config = diary.config_of(servers);
        match round % 5 {
            4 => {
                let none = UpstreamConfig::new("none", Target::command("no-such-program", []));
                let refused = harness.gateway.reload(diary.config_of(vec![none])).await;
                assert!(refused.is_err());
            }
            _ => drop(harness.reload(config).await),
        }
    }
    done.store(true, Ordering::Relaxed);
    let mut called = Vec::new();
    while let Some(client) = clients.join_next().await {
        called.extend(client.unwrap());
    }
    assert!(called.len() > RELOADS, "{}", called.len());
    let ran = runs_of_calls(&diary);
    for (server, number) in &called {
        assert_eq!(
            ran.get(&format!("{server} {number}")),
            Some(&1),
            "{server} {number}"
        );
    }
    assert_eq!(process(&harness, "kept_who").await, kept);
    assert_eq!(diary.count("kept", "start"), 1);
    harness.reload(diary.config(&["kept"])).await;
    diary.runs(1).await;
    harness.gateway.close().await;
    diary.runs(0).await;
}

/// How often each call ran, by its server and number.
fn runs_of_calls(diary: &Diary) -> BTreeMap<String, usize> {
    let mut ran = BTreeMap::new();
    for line in diary.lines() {
        let mut terms = line.split(' ');
        let (server, what, number) = (terms.next(), terms.nth(1), terms.next());
        if let (Some(server), Some("call"), Some(number)) = (server, what, number) {
            *ran.entry(format!("{server} {number}")).or_insert(0) += 1;
        }
    }
    ran
}

/// Calls one server after the other until it is enough; what was called.
async fn call_until(
    kind: ClientKind,
    harness: &Harness,
    done: &AtomicBool,
    numbers: &AtomicUsize,
) -> Vec<(&'static str, usize)> {
    let mut client = Client::open(harness, kind, &json!({})).await;
    let mut called = Vec::new();
    while !done.load(Ordering::Relaxed) {
        for (server, name) in [("kept", "kept_who"), ("changed", "changed_change")] {
            let number = numbers.fetch_add(1, Ordering::Relaxed);
            let params = json!({"name": name, "arguments": {"n": number}});
            let answer = client.ask("tools/call", params).await;
            assert_eq!(answer["id"], called.len() + 1, "{kind:?}: {answer}");
            assert_eq!(answer["result"]["n"], number, "{kind:?}: {answer}");
            assert_eq!(answer["result"]["by"], server, "{kind:?}: {answer}");
            called.push((server, number));
        }
    }
    called
}
