//! The rows in which two builds of Vary are compared.

use std::io;

use super::{FORMS, PAIRS, Row, kind_of};
use crate::load::{Arguments, Era};
use crate::subject::{Programs, Subject};
use crate::upstream::{Kind, Transport};

/// Calls, lists, a shaped result and large arguments, measured in pairs.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        rows.push(Row::call(
            era,
            Transport::Http,
            kind_of(era, Transport::Http),
        ));
        rows.push(Row::list(era, Transport::Http));
    }
    rows.push(Row::in_form(Era::Legacy, &FORMS[0], 10));
    let arguments = Arguments {
        padding: 25 << 10,
        ..Arguments::default()
    };
    rows.push(
        Row::call(Era::Legacy, Transport::Http, Kind::Sessions).with("25 KB argument", arguments),
    );
    for row in &mut rows {
        row.subjects = vec![Subject::Before, Subject::Vary];
        row.bar = None;
        row.pairs = PAIRS;
    }
    rows
}

impl Programs {
    /// The programs with the other build of Vary.
    pub(crate) fn before(&self) -> io::Result<Self> {
        let missing = || io::Error::other("no other build of Vary is given");
        Ok(Self {
            vary: self.before.clone().ok_or_else(missing)?,
            ..self.clone()
        })
    }
}
