//! The calls that failed or were refused since the start, counted by whose they are and what came of them.

use std::sync::Arc;

use foldhash::quality::RandomState;
use indexmap::IndexMap;
use mcp_vary_audit::{Outcome, Text};
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_wire::response::RETRY_NOTE;
use mcp_vary_wire::sanitize::excerpt;
use serde::Serialize;
use tokio::time::Instant;

use crate::finished_call::{CallSource, CallTarget, FinishedCall, shared};

/// Calls that failed or were refused in the same way.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FailedCalls {
    /// What they have in common.
    #[serde(flatten)]
    pub failure: Failure,
    /// How many there were since the start.
    pub count: u64,
    /// When the last one ended.
    #[serde(skip)]
    pub last: Instant,
}

/// What calls that failed have in common, with the names that it has in a [`FinishedCall`]. Of too many kinds of failures of a
/// client, it is only the client and the outcome; of too many clients, only the outcome.
#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Failure {
    /// What was called.
    #[serde(flatten, serialize_with = "shared")]
    pub target: Arc<CallTarget>,
    /// Who called, and how.
    #[serde(flatten, serialize_with = "shared")]
    pub source: Arc<CallSource>,
    /// What came of them.
    pub outcome: Outcome,
    /// Whether the client's list does not have the tool.
    pub is_unknown_tool: bool,
    /// Whether the server answered.
    pub is_answered: bool,
    /// The first line of the error, without when its server is tried again.
    pub error: Option<String>,
}

/// Counts calls that failed or were refused.
///
/// # Properties
///
/// There are at most [`MOST_KINDS`], [`MOST_CLIENTS`] and three counts, of 5 KiB each at most.
#[derive(Debug, Default)]
pub(crate) struct FailureCounts(ScopedLock<IndexMap<Failure, Counted, RandomState>>);

#[derive(Clone, Copy, Debug)]
struct Counted {
    count: u64,
    last: Instant,
}

impl FailureCounts {
    pub(crate) fn count(&self, call: &FinishedCall) {
        let mut counts = self.0.lock();
        let mut failure = Failure::of(call);
        for (most, wider) in [
            (MOST_KINDS, Failure::of_client as fn(&Failure) -> Failure),
            (MOST_KINDS + MOST_CLIENTS, Failure::of_anybody),
        ] {
            if counts.len() >= most && !counts.contains_key(&failure) {
                failure = wider(&failure);
            }
        }
        let (count, last) = (0, call.ended);
        let counted = counts.entry(failure).or_insert(Counted { count, last });
        counted.count += 1;
        counted.last = counted.last.max(call.ended);
    }

    pub(crate) fn all(&self) -> Vec<FailedCalls> {
        let counts = self.0.lock();
        let counts = counts.iter();
        let all = counts.map(|(failure, counted)| FailedCalls {
            failure: failure.clone(),
            count: counted.count,
            last: counted.last,
        });
        all.collect()
    }
}

impl Failure {
    fn of(call: &FinishedCall) -> Self {
        let first = call.error.as_ref().and_then(|text| text.lines().next());
        let error = first.and_then(|line| line.split(RETRY_NOTE).next());
        Self {
            target: Arc::clone(&call.target),
            source: Arc::clone(&call.source),
            outcome: call.outcome,
            is_unknown_tool: call.is_unknown_tool,
            is_answered: call.at_server.is_some(),
            error: error.map(|line| excerpt(line.as_bytes(), MAX_ERROR)),
        }
    }

    /// The failures of its client with this outcome.
    fn of_client(&self) -> Self {
        let target = CallTarget {
            method: Text::from_static(""),
            target: None,
            server: None,
            upstream_name: None,
        };
        Self {
            target: Arc::new(target),
            is_unknown_tool: false,
            is_answered: true,
            error: None,
            ..self.clone()
        }
    }

    /// All failures with this outcome.
    fn of_anybody(&self) -> Self {
        Self {
            source: Arc::default(),
            ..self.of_client()
        }
    }
}

/// The kinds of failures that are counted separately.
const MOST_KINDS: usize = 384;
/// The clients whose other failures are counted separately.
const MOST_CLIENTS: usize = 128;
/// The characters of an error.
const MAX_ERROR: usize = 200;

#[cfg(test)]
mod tests {
    use mcp_vary_audit::{ClientInfo, Event, Record};

    use super::*;
    use crate::call_history::CallHistory;
    use crate::recorded_call::EndedCall;

    fn fail(history: &CallHistory, client: &str, error: &str) {
        let mut record = Record::new(Event::Request, Outcome::Error);
        record.client = Some(Arc::new(ClientInfo::new(Text::new(client), Text::new("1"))));
        let call = EndedCall {
            error: Some(error.to_owned()),
            ..EndedCall::new(&mut record, Instant::now())
        };
        history.push(call, false);
    }

    fn counts(history: &CallHistory) -> Vec<(String, Option<String>, u64)> {
        let failed = history.failures.all().into_iter();
        let counts = failed.map(|failed| {
            let client = failed.failure.source.client.clone();
            let name = client.map_or_else(String::new, |client| client.name.as_str().to_owned());
            (name, failed.failure.error, failed.count)
        });
        counts.collect()
    }

    #[test]
    fn failures_count_by_client_and_first_line_also_those_that_have_left_the_list() {
        let history = CallHistory::default();
        for pause in 0..2000 {
            let error = format!("full{RETRY_NOTE}{pause} s\nat line 3");
            fail(&history, "a", &error);
        }
        fail(&history, "b", "full");
        let mut record = Record::new(Event::Request, Outcome::Allowed);
        history.push(EndedCall::new(&mut record, Instant::now()), false);
        let full = Some("full".to_owned());
        let expected = [
            ("a".to_owned(), full.clone(), 2000),
            ("b".to_owned(), full, 1),
        ];
        assert_eq!(counts(&history), expected);
    }

    #[test]
    fn of_too_many_kinds_a_client_has_one_count_and_of_too_many_clients_all_have_one() {
        let history = CallHistory::default();
        for number in 0..MOST_KINDS + 50 {
            fail(&history, "a", &number.to_string());
        }
        for client in 0..MOST_CLIENTS + 7 {
            fail(&history, &format!("c{client}"), "x");
        }
        fail(&history, "a", "0");
        let counts = counts(&history);
        assert_eq!(counts.len(), MOST_KINDS + MOST_CLIENTS + 1);
        assert_eq!(counts[0], ("a".to_owned(), Some("0".to_owned()), 2));
        assert_eq!(counts[MOST_KINDS], ("a".to_owned(), None, 50));
        assert_eq!(counts.last(), Some(&(String::new(), None, 8)));
    }
}
