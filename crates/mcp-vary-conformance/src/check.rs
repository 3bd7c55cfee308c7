//! A check: one sentence of the documents, and the function that tests a server or a client against it.

use std::fmt;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use crate::advice;
use crate::era::Era;
use crate::extension::Extension;
use crate::member::Member;
use crate::objection::{ClientVerdict, Verdict};
use crate::observation::{Observation, Scenario};
use crate::probe::Probe;
use crate::scope::Scope;
use crate::survey::Survey;

/// A requirement as an executable check.
///
/// The identifier is the requirement's, a slash, and a short name: `SV-1/unique-ids`. It is stable.
#[derive(Debug)]
pub struct Check {
    /// The identifier, such as `SV-1/unique-ids`.
    pub id: &'static str,
    /// How binding the sentence is.
    pub level: Level,
    /// The document and section that the sentence is from.
    pub source: &'static str,
    /// The sentence, as its document has it. For [`Level::Decision`]: the decision, in our words.
    pub sentence: &'static str,
    /// What the check sends and compares.
    pub does: &'static str,
    pub(crate) scope: Scope,
    /// The eras of the protocol in which the check makes sense.
    pub eras: &'static [Era],
    pub(crate) test: Test,
}

impl Check {
    /// What the author of the server or client can do if it objects.
    pub fn advice(&self) -> &'static str {
        match self.test {
            Test::Client(..) | Test::ClientMember(_) => advice::for_clients(self.requirement()),
            _ => advice::of(self.requirement()),
        }
    }

    /// The requirement of which this checks a part, such as `SV-1`.
    pub fn requirement(&self) -> &'static str {
        self.id.split('/').next().unwrap_or(self.id)
    }

    /// The scenario whose run shows what a check of clients is about.
    pub(crate) fn scenario(&self) -> Scenario {
        match self.test {
            Test::Client(scenario, _) => scenario,
            _ => Scenario::Ordinary,
        }
    }

    /// The extension without which the check makes no sense, if there is one.
    pub const fn extension(&self) -> Option<Extension> {
        self.scope.extension()
    }

    /// Whether `selector` names this check: its whole identifier, or its requirement (`SV-1`).
    pub fn matches(&self, selector: &str) -> bool {
        self.id == selector || self.requirement() == selector
    }
}

/// How binding the sentence of a check is, and so what a violation means.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum Level {
    /// The document says MUST, or its schema requires it: a violation fails the run.
    Must,
    /// The document says SHOULD, or shows what it expects: a violation is a warning.
    Should,
    /// The document says MAY: a deviation is only reported.
    May,
    /// `MUST*`: the documents are silent or contradict each other, and the authors of this crate decided. A deviation is
    /// only reported.
    #[serde(rename = "MUST*")]
    Decision,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::May => "MAY",
            Self::Decision => "MUST*",
        })
    }
}

/// The test that awaits what a function makes of a probe and of further arguments.
macro_rules! server {
    ($function:path $(, $argument:expr)*) => {
        $crate::check::Test::Server(|probe| Box::pin($function(probe $(, $argument)*)))
    };
}
pub(crate) use server;

/// The function of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Test {
    /// Sends requests to a server.
    Server(for<'a> fn(&'a Probe<'a>) -> BoxFuture<'a, Verdict>),
    /// Reads what the survey of a server found.
    Survey(fn(&Survey) -> Verdict),
    /// Reads a member that a server declares.
    Member(Member),
    /// Reads each variant that a server offers to a client without hints.
    EachVariant(fn(&Value) -> bool),
    /// Reads what a client sent in the runs, of which this one shows what the check is about.
    Client(Scenario, fn(&Observation<'_>) -> ClientVerdict),
    /// Reads a member that a client declares in the ordinary run.
    ClientMember(Member),
}
