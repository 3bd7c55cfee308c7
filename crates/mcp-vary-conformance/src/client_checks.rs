//! The checks of clients, a file for each topic, with the same parts as those of servers.

pub(crate) mod declarations;
pub(crate) mod reactions;
pub(crate) mod selection;

use crate::objection::{self, ClientObjection, ClientVerdict, Objection};

/// The objection that an event shows.
fn violation(last_event: usize, finding: impl Into<String>) -> ClientVerdict {
    Err(ClientObjection {
        objection: Objection::Violation(finding.into()),
        last_event: Some(last_event),
    })
}

/// The objection that a whole run shows.
fn violation_of_run(finding: impl Into<String>) -> ClientVerdict {
    Ok(objection::violation(finding)?)
}

fn not_applicable(reason: impl Into<String>) -> ClientVerdict {
    Ok(objection::not_applicable(reason)?)
}
