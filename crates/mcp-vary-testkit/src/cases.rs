//! Cases of a test.

use std::fmt::Debug;

/// Prints each case before it runs, so that the output of a failed test ends with the case that failed.
#[expect(
    clippy::print_stdout,
    reason = "the test harness shows it for failed tests"
)]
pub fn each<T: Debug>(cases: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    cases.into_iter().inspect(|case| println!("{case:?}"))
}
