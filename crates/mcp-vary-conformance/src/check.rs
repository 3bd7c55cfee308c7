//! A check: one sentence of the documents, and the function that tests a server or a client against it.

use std::fmt;

use futures_util::future::BoxFuture;

use crate::advice;
use crate::observation::{Observation, Scenario};
use crate::probe::Probe;

/// A requirement as an executable check.
///
/// The identifier is the requirement's, a slash, and a short name: `SV-1/unique-ids`. It is stable.
#[derive(Debug)]
pub struct Check {
    pub(crate) id: &'static str,
    pub(crate) level: Level,
    pub(crate) source: &'static str,
    pub(crate) sentence: &'static str,
    pub(crate) does: &'static str,
    pub(crate) scope: Scope,
    pub(crate) eras: &'static [Era],
    pub(crate) test: Test,
}

impl Check {
    /// The identifier, such as `SV-1/unique-ids`.
    #[must_use]
    pub const fn id(&self) -> &'static str {
        self.id
    }

    /// How binding the sentence is.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.level
    }

    /// The document and section that the sentence is from.
    #[must_use]
    pub const fn source(&self) -> &'static str {
        self.source
    }

    /// The sentence, as its document has it. For [`Level::Decision`]: the decision, in our words.
    #[must_use]
    pub const fn sentence(&self) -> &'static str {
        self.sentence
    }

    /// What the check sends and compares.
    #[must_use]
    pub const fn does(&self) -> &'static str {
        self.does
    }

    /// The eras of the protocol in which the check makes sense.
    #[must_use]
    pub const fn eras(&self) -> &'static [Era] {
        self.eras
    }

    /// What the author of the server or client can do if it objects.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self.test {
            Test::Server(_) => advice::of(self.requirement()),
            Test::Client(..) => advice::for_clients(self.requirement()),
        }
    }

    /// The requirement of which this checks a part, such as `SV-1`.
    #[must_use]
    pub fn requirement(&self) -> &'static str {
        self.id.split('/').next().unwrap_or(self.id)
    }

    /// The extension without which the check makes no sense, if there is one.
    #[must_use]
    pub const fn extension(&self) -> Option<Extension> {
        match self.scope {
            Scope::Any => None,
            Scope::Negotiation | Scope::NoNegotiation | Scope::NegotiatingClient => {
                Some(Extension::Negotiation)
            }
            Scope::DeclaredVariants
            | Scope::Variants
            | Scope::NoVariants
            | Scope::VariantsClient => Some(Extension::Variants),
        }
    }

    /// Whether `selector` names this check: its whole identifier, or its requirement (`SV-1`).
    #[must_use]
    pub fn matches(&self, selector: &str) -> bool {
        self.id == selector || self.requirement() == selector
    }
}

/// How binding the sentence of a check is, and so what a violation means.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
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

/// An extension that a server may declare.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Extension {
    /// Content negotiation: `io.modelcontextprotocol/content-negotiation`.
    Negotiation,
    /// Server variants: `io.modelcontextprotocol/server-variants`.
    Variants,
}

/// A form of the protocol.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Era {
    /// Revision 2025-11-25 and earlier: `initialize` opens a session, capabilities are declared once.
    Legacy,
    /// Revision 2026-07-28: no session; each request declares the client's capabilities in its `_meta`.
    Modern,
}

impl Era {
    /// The revision of the protocol that the checks speak in this era.
    #[must_use]
    pub const fn revision(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

impl fmt::Display for Era {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.revision())
    }
}

pub(crate) const BOTH: &[Era] = &[Era::Legacy, Era::Modern];
pub(crate) const LEGACY: &[Era] = &[Era::Legacy];
pub(crate) const MODERN: &[Era] = &[Era::Modern];

/// The servers or clients that a check applies to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Scope {
    /// Every server, or every client.
    Any,
    /// Servers that declare content negotiation.
    Negotiation,
    /// Servers that do not declare content negotiation.
    NoNegotiation,
    /// Servers that declare server variants, with or without any on offer.
    DeclaredVariants,
    /// Servers that offer at least one variant.
    Variants,
    /// Servers that do not declare server variants. Only a run that asks for it checks them: a server cannot be expected to
    /// know a document that it does not claim to implement.
    NoVariants,
    /// Clients that declare content negotiation.
    NegotiatingClient,
    /// Clients that declare server variants, or select one.
    VariantsClient,
}

impl Scope {
    /// Why a server or client is outside.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Any => "nobody is outside",
            Self::Negotiation => "the server does not declare content negotiation",
            Self::NoNegotiation => "the server declares content negotiation",
            Self::DeclaredVariants => "the server does not declare server variants",
            Self::Variants => "the server offers no variants",
            Self::NoVariants => "the server declares server variants",
            Self::NegotiatingClient => "the client does not declare content negotiation",
            Self::VariantsClient => "the client neither declares server variants nor selects one",
        }
    }
}

/// The function of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Test {
    /// Sends requests to a server.
    Server(for<'a> fn(&'a Probe<'a>) -> BoxFuture<'a, Verdict>),
    /// Reads what a client sent in the runs, of which this one shows what the check is about.
    Client(Scenario, fn(&Observation<'_>) -> ClientVerdict),
}

/// Why a check of a client did not pass, and the last event that shows it.
#[derive(Debug)]
pub(crate) struct ClientObjection {
    pub(crate) objection: Objection,
    pub(crate) last_event: Option<usize>,
}

/// The outcome of a test function for clients.
pub(crate) type ClientVerdict = Result<(), ClientObjection>;

/// The outcome of a test function.
pub(crate) type Verdict = Result<(), Objection>;

/// Why a check did not pass.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Objection {
    /// The server does not do what the sentence requires.
    Violation(String),
    /// The server has nothing that the check could test.
    NotApplicable(String),
    /// The server did not answer as MCP requires, or in time.
    NoAnswer(String),
    /// The server refused a request because there were too many.
    Limited,
}

impl Objection {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Violation(text) | Self::NotApplicable(text) | Self::NoAnswer(text) => text,
            Self::Limited => "limited: the server refuses requests that come too often".to_owned(),
        }
    }
}

pub(crate) fn violation<T>(finding: impl Into<String>) -> Result<T, Objection> {
    Err(Objection::Violation(finding.into()))
}

pub(crate) fn not_applicable<T>(reason: impl Into<String>) -> Result<T, Objection> {
    Err(Objection::NotApplicable(reason.into()))
}

/// Objects with `finding` if `condition` is false.
pub(crate) fn require(condition: bool, finding: impl FnOnce() -> String) -> Verdict {
    if condition {
        Ok(())
    } else {
        violation(finding())
    }
}
