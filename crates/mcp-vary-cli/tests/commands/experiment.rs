//! `vary experiment`, in front of gateways that counted a known number of calls.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::program::{Server, WEATHER, file, run, sky};

/// The operator's address of a gateway with this status, for as many requests as come.
fn gateway(experiments: &Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let status = json!({"version": "0", "servers": [], "experiments": experiments}).to_string();
    std::thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            let head = BufReader::new(socket.try_clone().unwrap()).lines();
            let _ = head
                .take_while(|line| !matches!(line.as_deref(), Ok("") | Err(_)))
                .count();
            let length = status.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            let _ = socket.write_all((head + &status).as_bytes());
        }
    });
    address
}

/// The sums of `clients` with as many calls each, half of them below and half above a mean value per call.
fn sums(clients: f64, calls: f64, (mean, spread): (f64, f64)) -> Value {
    let squares = clients * calls * calls;
    json!({
        "units": clients, "n": clients * calls, "x": clients * calls * mean, "nn": squares,
        "xx": squares * (mean * mean + spread * spread), "nx": squares * mean,
    })
}

/// An arm whose clients made eight calls each, of which a share failed.
fn arm(variant: &str, weight: u32, clients: f64, failed: f64) -> Value {
    json!({"variant": variant, "weight": weight, "metrics": {
        "failed": sums(clients, 8.0, (failed, 0.05)),
        "duration": sums(clients, 8.0, (120.0, 40.0)),
        "calls": sums(clients, 1.0, (8.0, 2.0)),
    }})
}

fn experiment(name: &str, arms: &[Value]) -> Value {
    json!({"name": name, "arms": arms, "metric": "failed", "effect": 0.05})
}

#[test]
fn a_difference_that_is_real_is_declared() {
    let arms = [arm("short", 1, 500.0, 0.2), arm("long", 1, 510.0, 0.12)];
    let address = gateway(&json!([experiment("words", &arms)]));
    insta::assert_snapshot!(run(&["experiment", &address]).data(0), @"
    words

    arm    clients  planned
    short      500      505
    long       510      505

    metric    arm       value         95 % interval  difference            interval       p  power
    failed    short    20.0 %      19.6 % to 20.4 %
    failed    long     12.0 %      11.6 % to 12.4 %        -8.0        -8.6 to -7.4  <0.001  100 %
    duration  short  120.0 ms  116.5 ms to 123.5 ms
    duration  long   120.0 ms  116.5 ms to 123.5 ms     +0.0 ms  -4.9 ms to +4.9 ms   1.000   66 %
    calls     short       8.0            7.8 to 8.2
    calls     long        8.0            7.8 to 8.2        +0.0        -0.2 to +0.2   1.000   89 %

    long: better than the control by `failed`.
    ");
}

#[test]
fn replicas_are_added_and_only_the_named_experiment_is_shown() {
    let arms = [arm("a", 1, 60.0, 0.2), arm("b", 1, 60.0, 0.2)];
    let two = json!([experiment("words", &arms), experiment("other", &arms)]);
    let (one, other) = (gateway(&two), gateway(&two));
    let shown = run(&["experiment", "--name", "words", &one]).data(0);
    insta::assert_snapshot!(shown.lines().last().unwrap(), @"b: too early: 60 clients in the smaller arm; to find a difference of 5 points in `failed`, each arm needs 100. So far: no difference below -1.8 or above +1.8.");
    let shown = run(&["experiment", "--name", "words", &one, &other]).data(0);
    insta::assert_snapshot!(shown, @"
    words

    arm  clients  planned
    a        120      120
    b        120      120

    metric    arm     value         95 % interval  difference              interval      p  power
    failed    a      20.0 %      19.1 % to 20.9 %
    failed    b      20.0 %      19.1 % to 20.9 %        +0.0          -1.3 to +1.3  1.000  100 %
    duration  a    120.0 ms  112.7 ms to 127.3 ms
    duration  b    120.0 ms  112.7 ms to 127.3 ms     +0.0 ms  -10.2 ms to +10.2 ms  1.000   21 %
    calls     a         8.0            7.6 to 8.4
    calls     b         8.0            7.6 to 8.4        +0.0          -0.5 to +0.5  1.000   34 %

    b: no difference of 5 points or more in `failed`.
    ");
    let json = run(&["experiment", "--json", &one, &other]).json(0);
    assert_eq!(json[0]["name"], "words");
    assert_eq!(json[1]["shares"]["arms"][0], json!(["a", 120.0, 120.0]));
}

/// Of two stores: the first one has more clients at its second replica.
#[test]
fn replicas_that_share_their_counts_are_not_added() {
    let shared = |store: &str, clients: f64| {
        let arms = [arm("a", 1, clients, 0.2), arm("b", 1, clients, 0.2)];
        let mut words = experiment("words", &arms);
        words["shared"] = json!(store);
        gateway(&json!([words]))
    };
    let gateways = [
        shared("first", 60.0),
        shared("second", 20.0),
        shared("first", 61.0),
        shared("second", 20.0),
        shared("first", 59.0),
    ];
    let clients = |gateways: &[String]| {
        let arguments = ["experiment", "--json"].into_iter();
        let arguments: Vec<_> = arguments
            .chain(gateways.iter().map(String::as_str))
            .collect();
        let json = run(&arguments).json(0);
        assert_eq!(json.as_array().unwrap().len(), 1);
        json[0]["shares"]["arms"][1][1].clone()
    };
    assert_eq!(clients(&gateways[..1]), 60.0);
    assert_eq!(clients(&[gateways[0].clone(), gateways[4].clone()]), 60.0);
    assert_eq!(clients(&gateways), 81.0);
}

/// Ten points are certain before five would be.
#[test]
fn a_clear_difference_is_declared_early_and_another_one_is_named() {
    let arm = |variant: &str, clients: f64, failed: f64| {
        json!({"variant": variant, "weight": 1, "metrics": {
            "failed": sums(clients, 4.0, (failed, 0.3)), "calls": sums(clients, 1.0, (4.0, 1.0)),
        }})
    };
    let verdict = |arms: [Value; 2]| {
        let address = gateway(&json!([experiment("words", &arms)]));
        let shown = run(&["experiment", &address]).data(0);
        shown.lines().last().unwrap().to_owned()
    };
    let clear = [arm("a", 200.0, 0.1), arm("b", 200.0, 0.3)];
    insta::assert_snapshot!(verdict(clear), @"b: worse than the control by `failed`.");
    let unclear = [arm("a", 200.0, 0.1), arm("b", 200.0, 0.17)];
    insta::assert_snapshot!(verdict(unclear), @"b: too early: 200 clients in the smaller arm; to find a difference of 5 points in `failed`, each arm needs 568. So far: a difference between +1.1 and +12.9.");
    let better = [arm("a", 200.0, 0.17), arm("b", 200.0, 0.1)];
    insta::assert_snapshot!(verdict(better), @"b: too early: 200 clients in the smaller arm; to find a difference of 5 points in `failed`, each arm needs 568. So far: a difference between -12.9 and -1.1.");
    let equal = [arm("a", 200.0, 0.1), arm("b", 200.0, 0.12)];
    insta::assert_snapshot!(verdict(equal), @"b: too early: 200 clients in the smaller arm; to find a difference of 5 points in `failed`, each arm needs 568. So far: no difference below -3.9 or above +7.9.");
}

#[test]
fn uneven_arms_declare_nothing() {
    let arms = [arm("a", 1, 900.0, 0.2), arm("b", 1, 500.0, 0.1)];
    let address = gateway(&json!([experiment("words", &arms)]));
    let shown = run(&["experiment", &address]).data(0);
    insta::assert_snapshot!(shown.lines().last().unwrap(), @"Nothing is declared: the arms do not have the clients that were planned (p <0.001). Look for what loses clients of one arm.");
}

#[test]
fn what_cannot_be_reported_is_refused_with_its_reason() {
    let arms = [arm("a", 1, 60.0, 0.2), arm("b", 1, 60.0, 0.2)];
    let words = gateway(&json!([experiment("words", &arms)]));
    run(&["experiment", "--name", "word", &words])
        .refuses(&["error: no experiment `word`; there is `words`\n"]);
    run(&["experiment", "--name", "word", &gateway(&json!([]))])
        .refuses(&["error: no experiment `word`; there is none\n"]);

    let other = [arm("a", 1, 60.0, 0.2), arm("b", 2, 60.0, 0.2)];
    let other = gateway(&json!([experiment("words", &other)]));
    run(&["experiment", &words, &other]).refuses(&[
        &format!("error: {other}: the replicas run different experiments: "),
        "`words (a: 1, b: 1)` and `words (a: 1, b: 2)`; give them the same configuration",
    ]);

    let newer = gateway(&json!([{"name": "words", "groups": []}]));
    run(&["experiment", &newer]).refuses(&[
        &format!("error: {newer}: its experiments cannot be read: missing field `arms`"),
        "is it another version of Vary?",
    ]);
    run(&["experiment", "1"]).refuses(&["no status from 127.0.0.1:1: "]);
}

#[test]
fn a_gateway_without_experiments_says_where_they_are_configured() {
    let server =
        Server::start(&[&["serve", "--listen", "0", "--admin", "0"][..], &WEATHER].concat());
    assert_eq!(
        run(&["experiment", &server.admin()]).data(0),
        "no experiment; add `experiments` to the configuration\n"
    );
}

#[test]
fn a_running_experiment_is_reported_before_anyone_takes_part() {
    let text = sky("variants:
  short: {description: Short.}
  long: {description: Long.}
experiments:
  - {name: words, arms: {short: 50, long: 50}, salt: s}
");
    let path = file("experiment-none.yaml", &text);
    let server = Server::serve(&["--admin", "0", &path]);
    insta::assert_snapshot!(run(&["experiment", &server.admin()]).data(0), @"
    words

    arm    clients  planned
    short        0        0
    long         0        0

    Too early: 0 clients in the smallest arm, and each needs 100 or more.
    note: clients are not authenticated, and each session counts as a client, so anybody can decide this experiment; add `auth` to count principals
    ");
}
