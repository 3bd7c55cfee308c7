//! What a model answered, and how it failed.

use std::sync::Arc;

use mcp_vary_base::expiring_store::{Entry, ExpiringStore, StoreLimits};

use super::ModelRankingStatus;
use super::endpoint::AskError;
use super::ranked_by_era::{QuestionKey, RankedByEra};

/// What is known of a question. Times are seconds of a clock that does not go back.
#[derive(Debug)]
pub(super) enum Answer {
    /// The request is under way.
    Pending,
    Usable(Arc<RankedByEra>),
    /// There is no order now, and the model is not asked again yet.
    Unusable,
}

/// The answers of a model, bounded, and how it failed.
#[derive(Debug)]
pub(super) struct AnswerCache {
    answers: ExpiringStore<QuestionKey, Answer>,
    /// Failures of the endpoint in a row.
    failures_in_row: u32,
    paused_until: u64,
    /// How often what happened.
    pub(super) counts: ModelRankingStatus,
}

impl AnswerCache {
    pub(super) fn new(entries: usize) -> Self {
        let limits = StoreLimits {
            entries,
            ..StoreLimits::UNBOUNDED
        };
        Self {
            answers: ExpiringStore::new(limits),
            failures_in_row: 0,
            paused_until: 0,
            counts: ModelRankingStatus::default(),
        }
    }

    /// What is known of a question; `None` if the model can be asked.
    pub(super) fn get(&self, key: &QuestionKey, now: u64) -> Option<&Answer> {
        self.answers.get(key, now)
    }

    /// Whether the endpoint failed too often to be asked now.
    pub(super) fn is_paused(&self, now: u64) -> bool {
        now < self.paused_until
    }

    /// Records that the model is asked, and is given up after `seconds`.
    pub(super) fn begin(&mut self, key: QuestionKey, seconds: u64, now: u64) {
        self.counts.requests += 1;
        self.insert(key, Answer::Pending, seconds + 1, now);
    }

    /// Records an answer.
    pub(super) fn succeed(&mut self, key: QuestionKey, order: RankedByEra, now: u64) {
        self.counts.used += 1;
        self.failures_in_row = 0;
        self.insert(key, Answer::Usable(Arc::new(order)), ANSWER_SECONDS, now);
    }

    /// Records a failure. Returns whether it is the first of its kind, so that it is logged.
    pub(super) fn fail(&mut self, key: QuestionKey, error: &AskError, now: u64) -> bool {
        let seconds = if error.is_of_endpoint() {
            RETRY_SECONDS
        } else {
            ANSWER_ERROR_SECONDS
        };
        self.insert(key, Answer::Unusable, seconds, now);
        if error.is_of_endpoint() {
            self.failures_in_row += 1;
            if self.failures_in_row >= MAX_FAILURES_IN_ROW {
                self.paused_until = now + PAUSE_SECONDS;
                self.failures_in_row = 0;
            }
        } else {
            self.failures_in_row = 0;
        }
        let count = self.counts.failures.entry(error.name().into()).or_default();
        *count += 1;
        *count == 1
    }

    /// The number of answers that are remembered.
    pub(super) fn len(&self) -> usize {
        self.answers.len()
    }

    fn insert(&mut self, key: QuestionKey, answer: Answer, seconds: u64, now: u64) {
        let entry = Entry {
            expires_at: now.saturating_add(seconds),
            ..Entry::new(answer)
        };
        self.answers.insert(key, entry, now);
    }
}

/// How long an answer is used.
const ANSWER_SECONDS: u64 = 24 * 60 * 60;

/// How long the model is not asked again after an answer that cannot be used. It would answer the same.
const ANSWER_ERROR_SECONDS: u64 = 60 * 60;

/// How long it is not asked again after a failure of the endpoint.
const RETRY_SECONDS: u64 = 60;

/// After so many failures of the endpoint in a row, the model is not asked at all for a while.
const MAX_FAILURES_IN_ROW: u32 = 5;

/// How long.
const PAUSE_SECONDS: u64 = 60;

#[cfg(test)]
mod tests {
    use mcp_vary::rank::model::AnswerError;

    use super::*;

    /// SV-6, SV-7: an answer is used for a day, and a failed question is asked again after a while.
    #[test]
    fn answers_and_failures_expire() {
        let mut cache = AnswerCache::new(10);
        let [good, bad, down] = [[1; 32], [2; 32], [3; 32]];
        for key in [good, bad, down] {
            assert!(cache.get(&key, 0).is_none());
            cache.begin(key, 10, 0);
            assert!(matches!(cache.get(&key, 10), Some(Answer::Pending)));
            // A request whose task was lost blocks nothing.
            assert!(cache.get(&key, 11).is_none());
        }
        cache.succeed(good, RankedByEra::default(), 0);
        assert!(cache.fail(bad, &AskError::Answer(AnswerError::NotJson), 0));
        assert!(!cache.fail(bad, &AskError::Answer(AnswerError::NotJson), 0));
        assert!(cache.fail(down, &AskError::NotACompletion, 0));
        for (key, until) in [(good, 24 * 60 * 60), (bad, 60 * 60), (down, 60)] {
            assert!(cache.get(&key, until - 1).is_some(), "{key:?}");
            assert!(cache.get(&key, until).is_none(), "{key:?}");
        }
        let counts = &cache.counts;
        assert_eq!((counts.requests, counts.used), (3, 1));
        let failures = counts.failures.iter();
        let failures: Vec<_> = failures.map(|(name, count)| (&**name, *count)).collect();
        assert_eq!(failures, [("not-a-completion", 1), ("not-json", 2)]);
    }

    /// SV-6: an endpoint that fails five times in a row is left alone for a minute.
    #[test]
    fn an_endpoint_that_fails_is_left_alone() {
        let mut cache = AnswerCache::new(10);
        for _ in 0..4 {
            cache.fail([0; 32], &AskError::NotACompletion, 100);
        }
        // An answer shows that the endpoint works.
        cache.fail([0; 32], &AskError::Answer(AnswerError::NotJson), 100);
        for _ in 0..4 {
            cache.fail([0; 32], &AskError::NotACompletion, 100);
        }
        assert!(!cache.is_paused(100));
        cache.fail([0; 32], &AskError::NotACompletion, 100);
        assert!(cache.is_paused(159) && !cache.is_paused(160));
    }

    /// SV-7: however many questions there are, only so many answers are remembered.
    #[test]
    fn answers_are_bounded_in_number() {
        let mut cache = AnswerCache::new(10);
        for number in 0..100 {
            cache.succeed([number; 32], RankedByEra::default(), 0);
        }
        assert_eq!(cache.len(), 10);
        assert!(cache.get(&[99; 32], 0).is_some());
    }
}
