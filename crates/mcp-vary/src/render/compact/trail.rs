//! What is left out of a value, and where: told by paths, however often it is left out there.

use std::collections::BTreeMap;

use crate::json::pointer;
use crate::render::left_out::{LeftOut, Rule};

/// What was left out so far, and the way to the value at hand.
#[derive(Default)]
pub(super) struct Trail<'v> {
    left_out: Vec<LeftOut>,
    way: Vec<Step<'v>>,
    /// The number of each path that was taken, after the number of the path before it: a path is
    /// spelled out only where something is left out for the first time, since a peer's keys may be long.
    paths: BTreeMap<(usize, Step<'v>), usize>,
    /// Where each path and rule is counted.
    counted: BTreeMap<(usize, Rule), usize>,
}

impl<'v> Trail<'v> {
    /// How many steps the way has.
    pub(super) const fn depth(&self) -> usize {
        self.way.len()
    }

    /// Whether the value at hand is within an array.
    pub(super) fn is_in_array(&self) -> bool {
        self.way.iter().any(|step| matches!(step, Step::Element(_)))
    }

    /// Goes one step further, and returns the number of the path to there.
    pub(super) fn step(&mut self, path: usize, step: Step<'v>) -> usize {
        self.way.push(step);
        let next = self.paths.len() + 1;
        *self.paths.entry((path, step.any())).or_insert(next)
    }

    /// Goes back by one step.
    pub(super) fn back(&mut self) {
        self.way.pop();
    }

    /// Notes that of the value at hand, at the end of `path`, `kept` of so many stay.
    pub(super) fn leave_out(&mut self, rule: Rule, path: usize, kept: usize, of: usize) {
        if let Some(at) = self.counted.get(&(path, rule)) {
            self.left_out[*at].count(kept, of);
            return;
        }
        let next = self.left_out.len();
        if next == MOST_PLACES {
            self.left_out[next - 1].count(kept, of);
            return;
        }
        let mut one = LeftOut {
            rule: Rule::Elsewhere,
            path: String::new(),
            first: String::new(),
            offset: 0,
            places: 1,
            kept,
            of,
        };
        if next < MOST_PLACES - 1 {
            self.counted.insert((path, rule), next);
            one.rule = rule;
            one.offset = kept;
            (one.path, one.first) = self.pointers();
        }
        self.left_out.push(one);
    }

    /// The path and the pointer to the value at hand.
    fn pointers(&self) -> (String, String) {
        let (mut path, mut first) = (String::new(), String::new());
        for step in &self.way {
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

/// One step on the way to a value.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Step<'v> {
    Member(&'v str),
    /// A member of an object that is a list of them.
    Entry(&'v str),
    Element(usize),
}

impl<'v> Step<'v> {
    /// The same step for every element of an array or list.
    fn any(self) -> Self {
        match self {
            Self::Element(_) | Self::Entry(_) => Self::Element(0),
            member => member,
        }
    }
}

/// At most so many places are told apart; the last one counts those that are not.
const MOST_PLACES: usize = 64;

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
        assert_eq!(short.left_out.len(), MOST_PLACES);
        let places: usize = short.left_out.iter().map(|one| one.places).sum();
        assert_eq!(places, 100);
        let last = short.left_out.last().unwrap();
        assert_eq!((last.rule, last.places), (Rule::Elsewhere, 100 - 63));
        assert_eq!(notice(&short.left_out, None).len(), 2);
        let lines = notice(&short.left_out, Some("vary://result/x"));
        assert!(lines[1].ends_with("; vary://result/x"), "{lines:?}");
    }
}
