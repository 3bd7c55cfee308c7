//! Tracks what is left out of a value, by path.

use std::collections::BTreeMap;

use crate::json::pointer;
use crate::render::left_out::{LeftOut, LeftOutRule};

/// What was left out so far, and the path of the current value.
#[derive(Default)]
pub(super) struct PathTracker<'v> {
    left_out: Vec<LeftOut>,
    steps: Vec<Step<'v>>,
    /// The numbers of the paths that the first steps lead to, as far as something was left out there or below.
    numbers: Vec<usize>,
    /// The number of each path, by the number of its parent and the last step. A path is written out only when something
    /// is first left out there, since a peer's keys may be long.
    paths: BTreeMap<(usize, Step<'v>), usize>,
    /// The index in `left_out` by path and rule.
    indices: BTreeMap<(usize, LeftOutRule), usize>,
}

impl<'v> PathTracker<'v> {
    /// The depth of the current value.
    pub(super) const fn depth(&self) -> usize {
        self.steps.len()
    }

    /// Whether the current value is in an array.
    pub(super) fn is_in_array(&self) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step, Step::Element(_)))
    }

    /// Goes one step down.
    pub(super) fn step(&mut self, step: Step<'v>) {
        self.steps.push(step);
    }

    /// Goes one step up.
    pub(super) fn step_back(&mut self) {
        self.steps.pop();
        self.numbers.truncate(self.steps.len());
    }

    /// The number of the current path.
    fn path(&mut self) -> usize {
        let mut path = self.numbers.last().copied().unwrap_or(0);
        for step in &self.steps[self.numbers.len()..] {
            let next = self.paths.len() + 1;
            path = *self.paths.entry((path, step.generalized())).or_insert(next);
            self.numbers.push(path);
        }
        path
    }

    /// Records that `stored` of `of` parts of the current value stay.
    pub(super) fn leave_out(&mut self, rule: LeftOutRule, stored: usize, of: usize) {
        let path = self.path();
        if let Some(at) = self.indices.get(&(path, rule)) {
            self.left_out[*at].count(stored, of);
            return;
        }
        let next = self.left_out.len();
        if next == MAX_LOCATIONS {
            self.left_out[next - 1].count(stored, of);
            return;
        }
        let mut one = LeftOut {
            rule: LeftOutRule::Elsewhere,
            path: String::new(),
            first: String::new(),
            offset: 0,
            occurrences: 1,
            retained: stored,
            total: of,
        };
        if next < MAX_LOCATIONS - 1 {
            self.indices.insert((path, rule), next);
            one.rule = rule;
            one.offset = stored;
            (one.path, one.first) = self.pointers();
        }
        self.left_out.push(one);
    }

    /// The path and the pointer of the current value.
    fn pointers(&self) -> (String, String) {
        let (mut path, mut first) = (String::new(), String::new());
        for step in &self.steps {
            match step {
                Step::Member(key) => {
                    path = pointer(&path, key);
                    first = pointer(&first, key);
                }
                Step::Entry(key) => {
                    path.push_str("/*");
                    first = pointer(&first, key);
                }
                Step::Element(at) => {
                    path.push_str("/*");
                    first.push_str(&format!("/{at}"));
                }
            }
        }
        (path, first)
    }

    /// What was left out, in the order of the value.
    pub(super) fn into_left_out(self) -> Vec<LeftOut> {
        self.left_out
    }
}

/// One step of a path.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Step<'v> {
    Member(&'v str),
    /// A member of an object that is a list of them.
    Entry(&'v str),
    Element(usize),
}

impl<'v> Step<'v> {
    /// The same step for all elements of an array or list.
    fn generalized(&self) -> Self {
        match self {
            Self::Element(_) | Self::Entry(_) => Self::Element(0),
            Self::Member(key) => Self::Member(key),
        }
    }
}

/// Locations that are listed separately; the last one counts all others.
const MAX_LOCATIONS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;
    use crate::render::left_out::notice;
    use crate::render::{Limits, compact};

    /// CN-13: whole elements are counted where they are missing.
    #[test]
    fn places_beyond_the_limit_are_counted_together() {
        let members: Vec<_> = (0..100).map(|n| format!("\"k{n}\":null")).collect();
        let text = format!("{{{}}}", members.join(","));
        let limits = Limits::default().with_members(100);
        let short = compact(&Json::parse(&text).unwrap(), &limits);
        assert_eq!(short.left_out.len(), MAX_LOCATIONS);
        let places: usize = short.left_out.iter().map(|one| one.occurrences).sum();
        assert_eq!(places, 100);
        let last = short.left_out.last().unwrap();
        let found = (last.rule, last.occurrences);
        assert_eq!(found, (LeftOutRule::Elsewhere, 100 - 63));
        assert_eq!(notice(&short.left_out, None).len(), 2);
        let lines = notice(&short.left_out, Some("vary://result/x"));
        assert!(lines[1].ends_with("; vary://result/x"), "{lines:?}");
    }
}
