//! What a tally makes of calls.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use CallOutcome::{Failed, InvalidArguments, Succeeded};
use mcp_vary_experiment::{
    Arm, Call, CallOutcome, Experiment, MAX_UNITS, Metric, Sums, Tally, TotalsError, Unit,
};

fn tally(weight: u32) -> Tally {
    let arm = |variant: &str, weight| Arm {
        variant: variant.to_owned(),
        weight,
    };
    let arms = vec![arm("control", 1), arm("verbose", weight)];
    Tally::new(Experiment::new("words", arms).unwrap())
}

fn unit(name: &str) -> Unit {
    Experiment::unit(b"key", "words", name.as_bytes())
}

/// A call of the tool 1 after some seconds, which took 20 ms and returned 100 tokens.
fn call(name: &str, second: u64, arguments: u64, outcome: CallOutcome) -> Call {
    Call {
        unit: unit(name),
        arm: 1,
        tool: 1,
        arguments,
        outcome,
        ended: Duration::from_secs(second),
        duration: Duration::from_millis(20),
        tokens: 100,
    }
}

fn sums(tally: &Tally, metric: Metric) -> Sums {
    tally.totals().arms[1].sums(metric)
}

fn ratio(tally: &Tally, metric: Metric) -> (f64, f64) {
    let sums = sums(tally, metric);
    (sums.x, sums.n)
}

#[test]
fn each_metric_is_a_ratio_over_the_clients_of_an_arm() {
    let tally = tally(1);
    tally.take_part(unit("silent"), 1);
    for call in [
        call("ann", 1, 1, Succeeded),
        call("ann", 2, 2, Failed),
        call("ann", 3, 3, InvalidArguments),
        call("bob", 4, 4, Succeeded),
    ] {
        tally.record(&call);
    }
    assert_eq!(ratio(&tally, Metric::Failed), (2.0, 4.0));
    assert_eq!(ratio(&tally, Metric::InvalidArguments), (1.0, 4.0));
    assert_eq!(ratio(&tally, Metric::Repaired), (0.0, 2.0));
    assert_eq!(ratio(&tally, Metric::Duration), (80.0, 4.0));
    assert_eq!(ratio(&tally, Metric::Tokens), (400.0, 4.0));
    assert_eq!(ratio(&tally, Metric::Calls), (4.0, 3.0));
    // Squares are of clients: ann has 3 calls of which 2 failed, bob has 1 of which none did.
    let failed = sums(&tally, Metric::Failed);
    assert_eq!(
        failed,
        Sums {
            units: 2.0,
            n: 4.0,
            x: 2.0,
            nn: 10.0,
            xx: 4.0,
            nx: 6.0
        }
    );
    assert_eq!(sums(&tally, Metric::Repaired).units, 1.0);
}

#[test]
fn a_success_with_other_arguments_within_a_minute_repairs_the_failure() {
    for (second, arguments, tool, repaired) in [
        (61, 2, 1, 1.0), // one minute later
        (62, 2, 1, 0.0), // more than a minute later
        (2, 1, 1, 0.0),  // with the same arguments: the server was at fault
        (2, 2, 2, 0.0),  // another tool
    ] {
        let tally = tally(1);
        tally.record(&call("ann", 1, 1, InvalidArguments));
        tally.record(&Call {
            tool,
            ..call("ann", second, arguments, Succeeded)
        });
        let case = format!("{second} s, arguments {arguments}, tool {tool}");
        assert_eq!(ratio(&tally, Metric::Repaired), (repaired, 1.0), "{case}");
    }
}

#[test]
fn a_failure_is_repaired_once_and_only_by_the_client_that_had_it() {
    let tally = tally(1);
    tally.record(&call("ann", 1, 1, Failed));
    tally.record(&call("bob", 2, 2, Succeeded));
    assert_eq!(ratio(&tally, Metric::Repaired), (0.0, 1.0));
    tally.record(&call("ann", 3, 3, Succeeded));
    tally.record(&call("ann", 4, 4, Succeeded));
    assert_eq!(ratio(&tally, Metric::Repaired), (1.0, 1.0));
}

#[test]
fn clients_beyond_the_bound_are_forgotten_and_their_calls_still_count() {
    let tally = tally(1);
    let clients = MAX_UNITS + MAX_UNITS / 4;
    for number in 0..clients {
        tally.record(&call(&number.to_string(), 1, 1, Failed));
    }
    let expected = f64::from(u32::try_from(clients).unwrap());
    assert_eq!(ratio(&tally, Metric::Failed), (expected, expected));
}

#[test]
fn a_call_of_an_arm_that_does_not_exist_changes_nothing() {
    let tally = tally(1);
    let before = tally.totals();
    tally.record(&Call {
        arm: 2,
        ..call("ann", 1, 1, Failed)
    });
    assert_eq!(tally.totals(), before);
}

#[test]
fn the_longest_calls_with_the_longest_results_overflow_nothing() {
    let tally = tally(1);
    for second in 0..4 {
        tally.record(&Call {
            duration: Duration::MAX,
            tokens: u64::MAX,
            ..call("ann", second, 1, Failed)
        });
    }
    assert_eq!(ratio(&tally, Metric::Tokens), ((1_u64 << 50) as f64, 4.0));
}

#[test]
fn totals_of_replicas_are_added_as_json() {
    let [one, other, both] = [(); 3].map(|()| tally(1));
    for (tally, name) in [(&one, "ann"), (&other, "bob")] {
        for tally in [tally, &both] {
            tally.record(&call(name, 1, 1, Failed));
            tally.record(&call(name, 2, 2, Succeeded));
        }
    }
    let sent = serde_json::to_string(&other.totals()).unwrap();
    let mut totals = one.totals();
    totals.add(&serde_json::from_str(&sent).unwrap()).unwrap();
    assert_eq!(totals, both.totals());
}

#[test]
fn totals_of_other_experiments_are_refused_with_both_named() {
    let mut totals = tally(1).totals();
    let error = totals.add(&tally(2).totals()).unwrap_err();
    assert_eq!(
        error,
        TotalsError(
            "words (control: 1, verbose: 1)".to_owned(),
            "words (control: 1, verbose: 2)".to_owned()
        )
    );
    assert_eq!(totals, tally(1).totals());
}
