//! A tally that replicas share counts what one process would.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use CallOutcome::{Failed, InvalidArguments, Succeeded};
use mcp_vary_experiment::{
    Arm, Call, CallOutcome, Experiment, MAX_RECORDS, Metric, RECORD, Record, Sharing, Tally,
    Totals, Unit,
};
use proptest::prelude::*;

fn experiment(name: &str, weight: u32) -> Experiment {
    let arm = |variant: &str, weight| Arm {
        variant: variant.to_owned(),
        weight,
    };
    Experiment::new(name, vec![arm("control", 1), arm("verbose", weight)]).unwrap()
}

/// The part of the replica with this number.
fn replica(source: u64) -> Tally {
    let sharing = Sharing {
        id: 1,
        source,
        name: "store/words".to_owned(),
    };
    Tally::shared(experiment("words", 1), sharing)
}

fn unit(number: usize) -> Unit {
    Experiment::unit(b"key", "words", &number.to_be_bytes())
}

/// A call of this client, which took 20 ms and returned 100 tokens.
fn call(client: usize, outcome: CallOutcome) -> Call {
    Call {
        unit: unit(client),
        arm: client % 2,
        tool: 1,
        arguments: 1,
        outcome,
        ended: Duration::from_secs(1),
        duration: Duration::from_millis(20),
        tokens: 100,
    }
}

/// What a replica has for the others, which have it then.
fn written(tally: &Tally) -> Vec<Record> {
    let records = tally.unwritten(usize::MAX);
    records.iter().for_each(|record| tally.note_written(record));
    records
}

/// Writes what each has, in this order, and lets all read it.
fn exchange(replicas: &[Tally]) {
    for record in replicas.iter().flat_map(written) {
        replicas.iter().for_each(|replica| replica.merge(&record));
    }
}

/// The sums, which do not say whether they are shared.
fn sums(tally: &Tally) -> Totals {
    Totals {
        shared: None,
        ..tally.totals()
    }
}

fn calls(tally: &Tally, arm: usize) -> [f64; 3] {
    let sums = tally.totals().arms[arm].sums(Metric::Calls);
    [sums.units, sums.x, sums.xx]
}

#[test]
fn a_client_whose_calls_went_to_two_replicas_is_one_client_with_the_calls_of_both() {
    let replicas = [replica(1), replica(2)];
    for _ in 0..3 {
        replicas[0].record(&call(1, Succeeded));
    }
    replicas[1].record(&call(1, Failed));
    exchange(&replicas);
    for replica in &replicas {
        assert_eq!(calls(replica, 1), [1.0, 4.0, 16.0]);
        let failed = replica.totals().arms[1].sums(Metric::Failed);
        assert_eq!((failed.x, failed.n, failed.nx), (1.0, 4.0, 4.0));
    }
}

#[test]
fn a_client_that_called_nothing_takes_part_at_all_replicas() {
    let replicas = [replica(1), replica(2)];
    replicas[0].take_part(unit(1), 1);
    exchange(&replicas);
    assert_eq!(calls(&replicas[1], 1), [1.0, 0.0, 0.0]);
}

#[test]
fn the_same_record_twice_and_an_older_one_change_nothing() {
    let (here, there) = (replica(1), replica(2));
    there.record(&call(1, Failed));
    let older = written(&there);
    there.record(&call(1, Succeeded));
    let newer = written(&there);
    assert_eq!((older.len(), newer.len()), (1, 1));
    here.merge(&newer[0]);
    let totals = here.totals();
    for record in [newer[0], older[0], older[0], newer[0]] {
        here.merge(&record);
        assert_eq!(here.totals(), totals);
    }
    // Nor does a replica count anew what it wrote itself.
    let totals = there.totals();
    there.merge(&older[0]);
    there.merge(&newer[0]);
    assert_eq!(there.totals(), totals);
}

#[test]
fn only_what_changed_here_is_unwritten_until_it_is_noted() {
    let (here, there) = (replica(1), replica(2));
    here.record(&call(1, Failed));
    let first = here.unwritten(usize::MAX);
    assert_eq!(first.len(), 1);
    // It changes while it is being written.
    here.record(&call(1, Failed));
    here.note_written(&first[0]);
    let second = here.unwritten(usize::MAX);
    assert!(second.len() == 1 && second != first);
    here.note_written(&second[0]);
    here.take_part(unit(1), 1);
    assert!(here.unwritten(usize::MAX).is_empty());
    there.record(&call(2, Failed));
    there.record(&call(3, Failed));
    exchange(&[there, replica(3)]);
    written(&replica(2)).iter().for_each(|it| here.merge(it));
    assert!(here.unwritten(usize::MAX).is_empty());
}

#[test]
fn of_a_store_that_lost_all_a_replica_writes_what_others_counted_too() {
    let (here, there) = (replica(1), replica(2));
    here.record(&call(1, Failed));
    there.record(&call(1, Failed));
    written(&there).iter().for_each(|it| here.merge(it));
    written(&here);
    here.note_lost();
    assert_eq!(here.unwritten(1).len(), 1);
    let late = replica(3);
    written(&here).iter().for_each(|it| late.merge(it));
    assert_eq!(late.totals(), here.totals());
}

#[test]
fn a_tally_that_is_not_shared_takes_no_records_and_has_none() {
    let (alone, shared) = (Tally::new(experiment("words", 1)), replica(1));
    alone.record(&call(1, Failed));
    shared.record(&call(2, Failed));
    let totals = alone.totals();
    alone.note_lost();
    assert!(alone.unwritten(usize::MAX).is_empty() && alone.sharing.is_none());
    written(&shared).iter().for_each(|it| alone.merge(it));
    assert_eq!(alone.totals(), totals);
    assert_eq!(totals.shared, None);
    assert_eq!(shared.totals().shared.as_deref(), Some("store/words"));
}

#[test]
fn of_totals_that_replicas_share_those_of_more_clients_are_taken_and_none_are_added() {
    let replicas = [replica(1), replica(2)];
    replicas[0].record(&call(1, Failed));
    replicas[1].record(&call(1, Failed));
    written(&replicas[0])
        .iter()
        .for_each(|it| replicas[1].merge(it));
    let [behind, ahead] = replicas.each_ref().map(Tally::totals);
    for [first, second] in [[&behind, &ahead], [&ahead, &behind]] {
        let json = serde_json::to_string(second).unwrap();
        let mut totals = first.clone();
        totals.add(&serde_json::from_str(&json).unwrap()).unwrap();
        assert_eq!(totals, ahead);
    }
    // Those of another store are of other clients.
    let mut totals = ahead.clone();
    let elsewhere = Totals {
        shared: Some("other/words".to_owned()),
        ..ahead
    };
    totals.add(&elsewhere).unwrap();
    assert_eq!(totals.arms[1].sums(Metric::Calls).units, 2.0);
}

#[test]
fn a_failure_that_is_repaired_at_another_replica_counts_as_not_repaired() {
    let replicas = [replica(1), replica(2)];
    let repairs = Call {
        arguments: 2,
        ..call(1, Succeeded)
    };
    replicas[0].record(&call(1, Failed));
    exchange(&replicas);
    replicas[1].record(&repairs);
    exchange(&replicas);
    let repaired = || replicas[1].totals().arms[1].sums(Metric::Repaired);
    assert_eq!((repaired().x, repaired().n), (0.0, 1.0));
    replicas[0].record(&repairs);
    exchange(&replicas);
    assert_eq!((repaired().x, repaired().n), (1.0, 1.0));
}

#[test]
fn another_name_weight_or_key_is_another_experiment() {
    let ids = [
        experiment("words", 1).id(b"key"),
        experiment("words", 2).id(b"key"),
        experiment("other", 1).id(b"key"),
        experiment("words", 1).id(b"other"),
    ];
    let others = [1, 2, 3].map(|at| ids[at]);
    assert!(!others.contains(&ids[0]), "{ids:?}");
    assert_eq!(experiment("words", 1).id(b"key"), ids[0]);
}

/// Each replica reads the records in another order, so that another client is the last one for a while.
#[test]
fn of_too_many_clients_all_replicas_leave_out_the_same() {
    let replicas = [replica(1), replica(2)];
    for client in 0..MAX_RECORDS * 2 / 3 {
        replicas[client % 3 % 2].record(&call(client, Failed));
    }
    for client in 0..MAX_RECORDS * 2 / 3 {
        replicas[1].record(&call(client, Succeeded));
    }
    let mut records = replicas.each_ref().map(written).concat();
    let [one, other] = &replicas;
    records.iter().for_each(|record| one.merge(record));
    records.reverse();
    records.iter().for_each(|record| other.merge(record));
    assert_eq!(one.totals(), other.totals());
    let [clients, counted, squares] = [0, 1]
        .map(|arm| calls(one, arm))
        .iter()
        .fold([0.0; 3], |sum, arm| {
            [sum[0] + arm[0], sum[1] + arm[1], sum[2] + arm[2]]
        });
    // Who is left has all of its calls, which are two for each.
    assert_eq!([counted, squares], [2.0 * clients, 4.0 * clients]);
    let least = f64::from(u32::try_from(MAX_RECORDS / 2).unwrap());
    assert!(clients > least && clients < 1.3 * least, "{clients}");
}

#[test]
fn forged_values_overflow_nothing() {
    let here = replica(1);
    here.record(&call(1, Failed));
    let record = here.unwritten(1)[0].to_bytes();
    let mut greatest = [255; RECORD];
    greatest[8] = 1;
    for source in 0..100 {
        greatest[9] = source;
        here.merge(&Record::from_bytes(&greatest).unwrap());
    }
    assert_eq!(calls(&here, 1)[1], (1_u64 << 50) as f64 + 1.0);
    // Arms that no experiment has, and one that this one does not have.
    let arm = |arm| {
        let mut record = record;
        record[8] = arm;
        Record::from_bytes(&record)
    };
    assert!(arm(16).is_none() && arm(255).is_none());
    let totals = here.totals();
    here.merge(&arm(2).unwrap());
    assert_eq!(here.totals(), totals);
}

fn outcomes() -> impl Strategy<Value = CallOutcome> {
    prop_oneof![Just(Succeeded), Just(Failed), Just(InvalidArguments)]
}

proptest! {
    /// The calls of clients reach replicas at random, which exchange records at random, some of them late and twice.
    #[test]
    fn replicas_have_the_sums_of_one_process_exactly(
        calls in prop::collection::vec((0..3_usize, 0..5_usize, outcomes(), 0..4_u8), 0..60),
    ) {
        let replicas = [1, 2, 3].map(replica);
        let alone = Tally::new(experiment("words", 1));
        let mut late = Vec::new();
        for (at, client, outcome, then) in calls {
            // Failures that a success repairs are counted at one replica only.
            replicas[at].record(&call(client, outcome));
            alone.record(&call(client, outcome));
            match then {
                0 => exchange(&replicas),
                1 => late.extend(replicas[at].unwritten(usize::MAX)),
                _ => {}
            }
        }
        replicas.iter().for_each(Tally::note_lost);
        exchange(&replicas);
        for record in late {
            replicas.iter().for_each(|replica| replica.merge(&record));
        }
        for replica in &replicas {
            prop_assert_eq!(sums(replica), sums(&alone));
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written(mut bytes in prop::array::uniform32(0_u8..), arm in 0_u8..16) {
        bytes[8] = arm;
        let mut record = [0; RECORD];
        record[..17].copy_from_slice(&bytes[..17]);
        record[64] = bytes[17];
        prop_assert_eq!(Record::from_bytes(&record).unwrap().to_bytes(), record);
    }
}
