//! What a run checks, and how long it may take.

use std::time::Duration;

use crate::check::{BOTH, Check, Era};
use crate::registry;

/// Which checks run, in which eras, and the time limits.
///
/// By default all checks run in both eras, each request may take 10 s, and the run 60 s.
#[derive(Clone, Debug)]
pub struct Options {
    only: Vec<String>,
    eras: Vec<Era>,
    request_limit: Duration,
    run_limit: Duration,
}

/// A selector that matches no check.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "no check is called {0:?}; use a requirement such as `SV-9`, or a check such as `SV-1/unique-ids`"
)]
pub struct UnknownCheck(String);

impl Default for Options {
    fn default() -> Self {
        Self {
            only: Vec::new(),
            eras: BOTH.to_vec(),
            request_limit: Duration::from_secs(10),
            run_limit: Duration::from_secs(60),
        }
    }
}

impl Options {
    /// The same, with only these checks: identifiers of checks or of requirements. None means all.
    ///
    /// # Errors
    ///
    /// If a selector matches no check, so that a typing error is not taken for a passing run.
    pub fn only(
        mut self,
        selectors: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, UnknownCheck> {
        self.only = selectors.into_iter().map(Into::into).collect();
        let is_unknown =
            |selector: &&String| !registry::checks().any(|check| check.matches(selector));
        match self.only.iter().find(is_unknown) {
            Some(selector) => Err(UnknownCheck(selector.clone())),
            None => Ok(self),
        }
    }

    /// The same, in one era.
    #[must_use]
    pub fn era(mut self, era: Era) -> Self {
        self.eras = vec![era];
        self
    }

    /// The same, with a limit for each request and its response.
    #[must_use]
    pub fn request_limit(mut self, limit: Duration) -> Self {
        self.request_limit = limit;
        self
    }

    /// The same, with a limit for the whole run. Checks that were not reached do not pass.
    #[must_use]
    pub fn run_limit(mut self, limit: Duration) -> Self {
        self.run_limit = limit;
        self
    }

    pub(crate) fn selects(&self, check: &Check) -> bool {
        self.only.is_empty() || self.only.iter().any(|selector| check.matches(selector))
    }

    pub(crate) fn eras(&self) -> &[Era] {
        &self.eras
    }

    pub(crate) fn limits(&self) -> (Duration, Duration) {
        (self.request_limit, self.run_limit)
    }
}
