//! The scenarios: what fails, and what clients must receive.

mod dying;
mod hanging;
mod leaking;
mod returning;
mod starting;
mod stopping;
mod talking;

use std::pin::Pin;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::case::Case;
use crate::server::Transport;

/// One way to fail.
#[derive(Deserialize)]
pub(crate) struct Scenario {
    /// A title.
    pub(crate) name: &'static str,
    /// What an operator takes from it.
    pub(crate) means: &'static str,
    /// Which servers can fail so.
    pub(crate) servers: Vec<Transport>,
    /// The path of the function that makes it fail.
    run: &'static str,
}

impl Scenario {
    /// Makes it fail, and says what was wrong with what was seen.
    pub(crate) fn run<'a>(&self, case: &'a mut Case) -> Verdict<'a> {
        let found = RUNS.iter().find(|(path, _)| *path == self.run);
        let (_, run) = found.unwrap_or_else(|| panic!("there is no `{}`", self.run));
        run(case)
    }
}

/// A scenario at work.
pub(crate) type Verdict<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// All of them, as the table lists them.
pub(crate) static SCENARIOS: LazyLock<Vec<Scenario>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("scenarios/scenarios.json"))
        .expect("the file is a list of scenarios")
});

macro_rules! runs {
    ($($run:path)+) => {
        /// The functions of scenarios by their paths.
        const RUNS: &[(&str, fn(&mut Case) -> Verdict<'_>)] =
            &[$((stringify!($run), |case| Box::pin($run(case)))),+];
    };
}

runs! {
    dying::killed dying::repeats dying::ends_itself dying::thousand dying::thousand_in_turn dying::hundreds_on_stdio
    returning::comes_back returning::another_program returning::other_tools returning::unnoticed returning::other_era
    starting::flaps starting::comes_and_goes starting::silent starting::leaves starting::down_beside starting::late
    starting::alone starting::no_port
    hanging::slow hanging::never_answers hanging::stopped_for_a_while hanging::stopped hanging::stopped_unnoticed
    talking::besides talking::instead
    stopping::drains stopping::drains_on_stdio stopping::drains_for_so_long stopping::drains_on_stdio_for_so_long
    stopping::twice stopping::while_down stopping::stubborn stopping::client_leaves stopping::killed
    leaking::nothing_is_left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_that_of_one_scenario() {
        let mut named: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.run).collect();
        let mut paths: Vec<_> = RUNS.iter().map(|(path, _)| *path).collect();
        named.sort_unstable();
        paths.sort_unstable();
        assert_eq!(named, paths);
    }
}
