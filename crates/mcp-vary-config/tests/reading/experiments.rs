//! `experiments`: what is compared, and every mistake at its place.

use mcp_vary_experiment::Metric;
use mcp_vary_settings::experiments::ExperimentConfig;

use super::*;

const SERVERS: &str = "servers: {git: {command: x}}\n\
    variants: {standard: {}, verbose: {}}\n";

/// The experiments of a file, and what is noted of it.
#[track_caller]
fn experiments(remaining: &str) -> (Vec<ExperimentConfig>, Vec<String>) {
    let file = read("vary.yaml", &format!("{SERVERS}{remaining}"));
    let notes = notes(&file);
    let config = file.into_config(Environment::new(|| 0, |_| {}));
    (config.experiments, notes)
}

/// Checks what is wrong with experiments, which begin in line 3.
#[track_caller]
fn refuses_experiments(remaining: &str, expected: &str) {
    refuses("vary.yaml", &format!("{SERVERS}{remaining}"), expected);
}

/// Checks what is wrong with one experiment, which begins at 3:15.
#[track_caller]
fn refuses_experiment(experiment: &str, expected: &str) {
    refuses_experiments(&format!("experiments: [{experiment}]"), expected);
}

#[test]
fn an_experiment_is_read_whole() {
    let (read, notes) = experiments(
        "experiments: [{name: words, arms: {verbose: 30, standard: 70}, salt: s, opt-in: in, opt-out: out, kind: slow, \
         metric: repaired, effect: 10}]",
    );
    assert_eq!(notes, [""; 0]);
    let [experiment] = read.as_slice() else {
        panic!("{read:?}");
    };
    let arms = experiment.experiment.arms().iter();
    let arms: Vec<_> = arms.map(|arm| (arm.variant.as_str(), arm.weight)).collect();
    // The first arm is the control, whatever the names.
    assert_eq!(arms, [("verbose", 30), ("standard", 70)]);
    assert_eq!(experiment.experiment.name(), "words");
    let texts = [
        &experiment.salt,
        &experiment.opt_in,
        &experiment.opt_out,
        &experiment.kind,
    ];
    assert_eq!(
        texts.map(|text| text.as_deref().unwrap()),
        ["s", "in", "out", "slow"]
    );
    assert_eq!(experiment.metric, Metric::Repaired);
    assert_eq!(experiment.effect, 0.1);
}

#[test]
fn without_more_failures_decide_by_five_points() {
    let (read, notes) = experiments("experiments: [{name: w, arms: {standard: 1, verbose: 1}}]");
    assert_eq!((read[0].metric, read[0].effect), (Metric::Failed, 0.05));
    assert_eq!(
        notes,
        [
            "3:15: `experiments[0]` has no `salt`: each start and each replica assigns clients to other arms; add \
             `salt: \"w\"`, or any other text"
        ]
    );
}

/// SV-24: the secrets of the file assign clients, too, until they are replaced.
#[test]
fn without_a_salt_new_keys_move_clients() {
    let keys = "keys: [0123456789abcdef0123456789abcdef]\n";
    let experiment = |salt: &str| {
        format!("{keys}experiments: [{{name: two words, arms: {{standard: 1, verbose: 1}}{salt}}}]")
    };
    let (_, notes) = experiments(&experiment(""));
    assert_eq!(
        notes,
        [
            "4:15: `experiments[0]` has no `salt`: if the first of `keys` changes, clients change their arms; add \
             `salt: \"two words\"`, or any other text"
        ]
    );
    let (_, notes) = experiments(&experiment(", salt: \"two words\""));
    assert_eq!(notes, [""; 0]);
}

#[test]
fn what_is_missing_is_named_with_an_example() {
    refuses_experiment(
        "{salt: x}",
        "3:15: `experiments[0]` has no `name`; add `name: words`, any text; reports show it\n\
         3:15: `experiments[0]` has no `arms`; add `arms: {standard: 50, verbose: 50}`: variants with their weights, \
             the control first",
    );
}

#[test]
fn arms_are_variants_with_weights() {
    refuses_experiment(
        "{name: w, arms: {standard: 1, verbos: 1}}",
        "3:45: `experiments[0].arms.verbos` is not a variant; did you mean `verbose`?",
    );
    refuses_experiment(
        "{name: w, arms: {standard: 1}}",
        "3:31: `experiments[0].arms` cannot be used: an experiment has 2 to 16 arms; this one has 1",
    );
    refuses_experiment(
        "{name: w, arms: {standard: 0, verbose: 0}}",
        "3:31: `experiments[0].arms` cannot be used: all weights are 0; write at least one that is not",
    );
    refuses_experiment(
        "{name: w, arms: {standard: -1, verbose: 1}}",
        "3:42: `experiments[0].arms.standard` is not a number that can be used here; write one from 0 to 1000000",
    );
}

#[test]
fn two_experiments_have_two_names() {
    let one = "{name: w, salt: x, arms: {standard: 1, verbose: 1}}";
    refuses_experiments(
        &format!("experiments:\n  - {one}\n  - {one}"),
        "5:12: `experiments[1].name` is the name of the experiment in line 4; give each experiment its own name",
    );
}

#[test]
fn a_variant_for_all_leaves_no_client() {
    refuses_experiments(
        "variant: standard\nexperiments: [{name: w, salt: x, arms: {standard: 1, verbose: 1}}]",
        "3:10: `variant` decides for every client, so that no experiment has one; leave it out; a client outside \
             experiments gets the variant that its hints rank first",
    );
}
