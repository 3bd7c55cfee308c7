//! The figures of a ranking.

use std::collections::BTreeSet;

use super::data::{DataSet, Found};

/// The numbers of results that figures are given for.
pub(super) const DEPTHS: [usize; 4] = [1, 3, 5, 10];

/// Whether each query has a relevant tool among its first `depth` results.
pub(super) fn hits(data: &DataSet, found: &Found<'_>, depth: usize) -> Vec<bool> {
    let pairs = data.queries.iter().zip(found);
    let is_hit = pairs.map(|(query, names)| {
        let mut first = names.iter().take(depth);
        first.any(|name| query.relevant.contains(*name))
    });
    is_hit.collect()
}

/// The share of queries that have a relevant tool among their first `depth` results.
pub(super) fn any_hit(data: &DataSet, found: &Found<'_>, depth: usize) -> f64 {
    let hits = hits(data, found, depth);
    share(hits.iter().filter(|hit| **hit).count(), hits.len())
}

/// The share of the relevant tools of a task that are among the first `depth` results of any of its queries; the mean over
/// all tasks.
pub(super) fn task_recall(data: &DataSet, found: &Found<'_>, depth: usize) -> f64 {
    let tasks = data.by_task();
    let recalls = tasks.iter().map(|numbers| {
        let queries = || {
            numbers
                .iter()
                .filter_map(|number| data.queries.get(*number))
        };
        let needed: BTreeSet<&str> = queries()
            .flat_map(|query| query.relevant.iter().map(String::as_str))
            .collect();
        let results = numbers.iter().filter_map(|number| found.get(*number));
        let seen: BTreeSet<&str> = results
            .flat_map(|names| names.iter().take(depth).copied())
            .collect();
        share(needed.intersection(&seen).count(), needed.len())
    });
    recalls.sum::<f64>() / as_float(tasks.len().max(1))
}

fn share(part: usize, whole: usize) -> f64 {
    as_float(part) / as_float(whole.max(1))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of tools and queries are small"
)]
pub(super) fn as_float(count: usize) -> f64 {
    count as f64
}
