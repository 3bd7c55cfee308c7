//! The scenarios: how clients connect, call and disconnect.

/// The table of a file: the name of each scenario, `one in N` clients where only some run it, and how it runs.
macro_rules! scenarios {
    ($($name:literal $(one in $one_in:literal)? => |$run:ident| $scenario:expr;)*) => {
        pub(super) const SCENARIOS: &[Scenario] = &[$(Scenario {
            name: $name,
            one_in: [$($one_in,)? 1][0],
            run: |$run| Box::pin($scenario),
        }),*];
    };
}

mod broken_requests;
mod notifications;
mod server_requests;
mod sessions;
mod stateless;
mod stdio;
mod tasks;

use std::pin::Pin;

use super::client_run::ClientRun;

/// One scenario.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// One of so many clients runs it, since it takes a process or a while; 1: the clients that no other scenario takes.
    pub(super) one_in: usize,
    pub(super) run: for<'a> fn(ClientRun<'a>) -> ScenarioFuture<'a>,
}

pub(super) type ScenarioFuture<'a> = Pin<Box<dyn Future<Output = ScenarioResult> + Send + 'a>>;

pub(super) type ScenarioResult = Result<(), String>;

/// The scenarios of a soak.
pub(super) struct Scenarios {
    common: Vec<&'static Scenario>,
    rare: Vec<&'static Scenario>,
}

impl Scenarios {
    /// The scenarios whose names contain `only`.
    pub(super) fn of(only: &str) -> Result<Self, String> {
        let all = [
            sessions::SCENARIOS,
            notifications::SCENARIOS,
            stateless::SCENARIOS,
            tasks::SCENARIOS,
            broken_requests::SCENARIOS,
            server_requests::SCENARIOS,
            stdio::SCENARIOS,
        ];
        let all = all.into_iter().flatten();
        let chosen = all.filter(|scenario| scenario.name.contains(only));
        let (common, rare): (Vec<_>, _) =
            chosen.partition(|scenario| scenario.one_in == 1 || !only.is_empty());
        if !common.is_empty() {
            Ok(Self { common, rare })
        } else {
            Err(format!("no scenario is called `{only}`"))
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &'static Scenario> {
        self.common.iter().chain(&self.rare).copied()
    }

    /// The scenario of the client `number`, and how many clients ran it before.
    pub(super) fn of_client(&self, number: usize) -> (&'static Scenario, usize) {
        let mut rare = self.rare.iter();
        if let Some(scenario) =
            rare.find(|scenario| number % scenario.one_in == scenario.one_in - 1)
        {
            return (scenario, number / scenario.one_in);
        }
        let common = &self.common;
        (common[number % common.len()], number / common.len())
    }
}
