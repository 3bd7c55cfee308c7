//! Experiments with known truth, a thousand times: how often is something found that is not there, or not found that is?
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;

use mcp_vary_experiment::{ArmTotals, Metric, Report, Sums, Totals, Verdict};

/// Repeatable random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn share(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap()) / f64::from(u32::MAX)
    }

    fn happens(&mut self, rate: f64) -> bool {
        self.share() < rate
    }
}

/// Clients with `calls` each at most, of which a share of `rate` ± `spread` fails.
#[derive(Clone, Copy)]
struct Clients {
    number: u32,
    calls: u32,
    rate: f64,
    spread: f64,
}

impl Clients {
    const fn with_rate(self, rate: f64) -> Self {
        Self { rate, ..self }
    }
}

const fn clients(number: u32, calls: u32, rate: f64, spread: f64) -> Clients {
    Clients {
        number,
        calls,
        rate,
        spread,
    }
}

fn simulated(random: &mut Random, clients: Clients) -> Sums {
    let mut sums = Sums::default();
    for _ in 0..clients.number {
        let n = 1 + u32::try_from(random.next() % u64::from(clients.calls)).unwrap();
        let rate = clients.rate + clients.spread * (2.0 * random.share() - 1.0);
        let x = (0..n).filter(|_| random.happens(rate)).count();
        let (x, n) = (f64::from(u32::try_from(x).unwrap()), f64::from(n));
        sums.units += 1.0;
        sums.n += n;
        sums.x += x;
        sums.nn += n * n;
        sums.xx += x * x;
        sums.nx += n * x;
    }
    sums
}

fn arm(variant: &str, failed: Sums) -> ArmTotals {
    let everyone = Sums {
        n: failed.units,
        ..failed
    };
    let metrics = [(Metric::Failed, failed), (Metric::Calls, everyone)];
    let metrics = metrics.map(|(metric, sums)| (metric.name().to_owned(), sums));
    ArmTotals {
        variant: variant.to_owned(),
        weight: 1,
        metrics: BTreeMap::from(metrics),
    }
}

fn verdict(control: Sums, treatment: Sums) -> Verdict {
    let totals = Totals {
        name: "simulated".to_owned(),
        arms: vec![arm("control", control), arm("treatment", treatment)],
        shared: None,
    };
    let report = Report::of(&totals, Metric::Failed, 0.05);
    let decided = report.comparisons.iter().find_map(|it| it.verdict);
    decided.unwrap()
}

const RUNS: u32 = 1_000;

/// The verdicts of a thousand experiments.
fn verdicts(seed: u64, control: Clients, treatment: Clients) -> Vec<Verdict> {
    let mut random = Random(seed);
    (0..RUNS)
        .map(|_| {
            let control = simulated(&mut random, control);
            verdict(control, simulated(&mut random, treatment))
        })
        .collect()
}

fn count(verdicts: &[Verdict], which: impl Fn(&Verdict) -> bool) -> usize {
    verdicts.iter().filter(|it| which(it)).count()
}

fn is_alarm(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::Worse)
}

/// Most runs must have had enough clients, else the test would say nothing.
fn assert_few_false_alarms(verdicts: &[Verdict]) {
    let undecided = count(verdicts, |it| matches!(it, Verdict::TooFew { .. }));
    assert!(undecided <= 50, "{undecided} runs had too few clients");
    let alarms = count(verdicts, is_alarm);
    assert!((20..=65).contains(&alarms), "{alarms} of {RUNS}");
}

#[test]
fn equal_arms_of_clients_with_one_call_each_differ_in_at_most_65_of_1000_experiments() {
    let all = clients(2_000, 1, 0.5, 0.0);
    assert_few_false_alarms(&verdicts(1, all, all));
}

#[test]
fn equal_arms_of_clients_with_rates_of_their_own_differ_in_at_most_65_of_1000_experiments() {
    let all = clients(600, 50, 0.5, 0.4);
    assert_few_false_alarms(&verdicts(2, all, all));
}

/// What the intervals by client are for: by call, the same data would alarm in every third experiment.
#[test]
fn the_same_clients_judged_by_call_would_differ_far_too_often() {
    let all = clients(600, 50, 0.5, 0.4);
    let mut random = Random(2);
    let alarms = (0..RUNS).filter(|_| {
        let [one, other] = [(); 2].map(|()| simulated(&mut random, all));
        let rate = (one.x + other.x) / (one.n + other.n);
        let error = (rate * (1.0 - rate) * (1.0 / one.n + 1.0 / other.n)).sqrt();
        ((one.x / one.n - other.x / other.n) / error).abs() > 1.96
    });
    let alarms = alarms.count();
    assert!(alarms > 250, "{alarms} of {RUNS}");
}

#[test]
fn a_difference_of_50_to_55_percent_is_found_in_at_least_800_of_1000_experiments() {
    let control = clients(2_000, 1, 0.5, 0.0);
    let treatment = control.with_rate(0.55);
    let verdicts = verdicts(3, control, treatment);
    let found = count(&verdicts, |it| *it == Verdict::Worse);
    assert!(found >= 800, "{found} of {RUNS}");
    assert_eq!(count(&verdicts, |it| *it == Verdict::Better), 0);
}

/// 600 clients an arm find 50 → 55 % in four of ten cases: what they show may be chance, and is not declared.
#[test]
fn nothing_is_declared_before_there_are_enough_clients() {
    let control = clients(600, 1, 0.5, 0.0);
    let treatment = control.with_rate(0.55);
    let verdicts = verdicts(4, control, treatment);
    let declared = count(&verdicts, is_alarm);
    assert!(declared <= 70, "{declared} of {RUNS}");
    let Some(Verdict::TooFew { have, need, .. }) = verdicts.first() else {
        panic!("{:?}", verdicts.first());
    };
    assert_eq!(*have, 600.0);
    assert!((1_450.0..1_600.0).contains(need), "{need}");
}

/// 400 sessions show 10 against 30 % of failures long before they would show 5 points.
#[test]
fn a_difference_of_10_to_30_percent_is_found_with_200_clients_in_each_arm() {
    let control = clients(200, 5, 0.1, 0.1);
    let treatment = control.with_rate(0.3);
    let verdicts = verdicts(6, control, treatment);
    let found = count(&verdicts, |it| *it == Verdict::Worse);
    assert!(found >= 990, "{found} of {RUNS}");
}

/// Somebody looks after each hundred clients and takes the first verdict.
#[test]
fn looking_early_finds_few_differences_that_do_not_exist() {
    let mut random = Random(7);
    let hundred = clients(100, 5, 0.3, 0.2);
    let is_alarming = |_: &u32| {
        let [mut one, mut other] = [Sums::default(); 2];
        let looks = (0..10).map(|_| {
            one = sum(one, simulated(&mut random, hundred));
            other = sum(other, simulated(&mut random, hundred));
            verdict(one, other)
        });
        let mut declared = looks.filter(|it| !matches!(it, Verdict::TooFew { .. }));
        declared.next().is_some_and(|it| is_alarm(&it))
    };
    let alarms = (0..RUNS).filter(is_alarming).count();
    assert!(alarms <= 65, "{alarms} of {RUNS}");
}

fn sum(one: Sums, other: Sums) -> Sums {
    Sums {
        units: one.units + other.units,
        n: one.n + other.n,
        x: one.x + other.x,
        nn: one.nn + other.nn,
        xx: one.xx + other.xx,
        nx: one.nx + other.nx,
    }
}

/// All calls of one arm fail, and none of the other.
#[test]
fn an_arm_that_always_fails_is_worse() {
    let mut random = Random(8);
    let arms = [-1.0, 2.0].map(|rate| simulated(&mut random, clients(100, 1, rate, 0.0)));
    let [control, treatment] = arms;
    assert_eq!(verdict(control, treatment), Verdict::Worse);
}

#[test]
fn arms_with_other_shares_than_planned_get_no_verdict() {
    let mut random = Random(5);
    let mut sums = |number| simulated(&mut random, clients(number, 1, 0.5, 0.0));
    let control = sums(4_000);
    assert_eq!(verdict(control, sums(3_600)), Verdict::Uneven);
    // Shares that differ by chance do.
    assert_eq!(verdict(control, sums(3_950)), Verdict::NoDifference);
}
