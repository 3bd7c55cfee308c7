//! Which arm a client gets.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use mcp_vary_experiment::{Arm, Experiment, ExperimentError, MAX_WEIGHT, Unit};
use proptest::prelude::*;

const KEY: &[u8] = b"a key of the configuration";

fn arm(variant: &str, weight: u32) -> Arm {
    Arm {
        variant: variant.to_owned(),
        weight,
    }
}

fn experiment(weights: [u32; 3]) -> Experiment {
    let [control, verbose, structured] = weights;
    let arms = vec![
        arm("control", control),
        arm("treatment-verbose", verbose),
        arm("treatment-structured", structured),
    ];
    Experiment::new("tool-desc-2026-q1", arms).unwrap()
}

fn client(number: usize) -> Unit {
    let identity = format!("https://idp.example\0user-{number}");
    Experiment::unit(KEY, "tool-desc-2026-q1", identity.as_bytes())
}

fn arms_of(experiment: &Experiment, clients: usize) -> Vec<usize> {
    (0..clients)
        .map(|number| experiment.assign(KEY, client(number)))
        .collect()
}

#[test]
fn of_20000_clients_each_arm_gets_its_share_within_three_standard_deviations() {
    let arms = arms_of(&experiment([50, 30, 20]), 20_000);
    for (at, share) in [0.5_f64, 0.3, 0.2].into_iter().enumerate() {
        let clients = arms.iter().filter(|arm| **arm == at).count();
        let clients = f64::from(u32::try_from(clients).unwrap());
        let deviation = (20_000.0 * share * (1.0 - share)).sqrt();
        let expected = 20_000.0 * share;
        assert!(
            (clients - expected).abs() < 3.0 * deviation,
            "{at}: {clients}"
        );
    }
}

/// The values are written down: another release must not move a client in the middle of an experiment.
#[test]
fn every_replica_and_every_release_makes_the_same_assignment() {
    let experiment = experiment([50, 30, 20]);
    let arms: Vec<_> = (0..24)
        .map(|number| experiment.assign(KEY, client(number)))
        .collect();
    let expected = [
        0, 1, 0, 0, 2, 0, 1, 2, 2, 2, 2, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0,
    ];
    assert_eq!(arms, expected);
}

#[test]
fn a_change_of_one_weight_moves_clients_only_to_or_from_that_arm() {
    let before = arms_of(&experiment([50, 30, 20]), 4_000);
    for (weights, changed) in [([50, 60, 20], 1), ([50, 30, 0], 2), ([10, 30, 20], 0)] {
        let after = arms_of(&experiment(weights), 4_000);
        let moved = before.iter().zip(&after).filter(|(old, new)| old != new);
        let moved: Vec<_> = moved.collect();
        assert!(!moved.is_empty());
        for (old, new) in moved {
            assert!(*old == changed || *new == changed, "{old} to {new}");
        }
    }
}

#[test]
fn another_key_or_another_experiment_assigns_anew() {
    let experiment = experiment([1, 1, 1]);
    let same = |key: &'static [u8], name: &'static str| {
        let same = (0..3_000).filter(|number| {
            let unit = Experiment::unit(key, name, format!("user-{number}").as_bytes());
            let first = Experiment::unit(KEY, "one", format!("user-{number}").as_bytes());
            experiment.assign(key, unit) == experiment.assign(KEY, first)
        });
        same.count()
    };
    assert_eq!(same(KEY, "one"), 3_000);
    for other in [same(b"other", "one"), same(KEY, "two")] {
        assert!((850..1_150).contains(&other), "{other} of 3,000");
    }
}

#[test]
fn an_experiment_that_cannot_be_meant_says_what_to_change() {
    let message = |name: &str, arms: Vec<Arm>| Experiment::new(name, arms).unwrap_err().to_string();
    let two = |weight| vec![arm("a", weight), arm("b", 0)];
    assert_eq!(message("", two(1)), "`` must have 1 to 128 bytes");
    let expected = "an experiment has 2 to 16 arms; this one has 1";
    assert_eq!(message("x", vec![arm("a", 1)]), expected);
    let expected = "two arms have the variant `a`";
    assert_eq!(message("x", vec![arm("a", 1), arm("a", 1)]), expected);
    let expected = "the weight of `a` is more than 1000000; write less";
    assert_eq!(message("x", two(MAX_WEIGHT + 1)), expected);
    assert_eq!(Experiment::new("x", two(0)), Err(ExperimentError::NoWeight));
}

proptest! {
    #[test]
    fn an_arm_of_weight_0_gets_nobody(identity in any::<Vec<u8>>(), key in any::<Vec<u8>>()) {
        let experiment = Experiment::new("x", vec![arm("a", 0), arm("b", 7), arm("c", 0)]).unwrap();
        let unit = Experiment::unit(&key, "x", &identity);
        prop_assert_eq!(experiment.assign(&key, unit), 1);
    }
}
