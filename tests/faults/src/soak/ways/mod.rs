//! Every way in which a client comes and goes.

mod asked;
mod broken;
mod listening;
mod pipes;
mod sessions;
mod stateless;
mod tasks;

use std::pin::Pin;

use super::visit::Visit;

/// One of them.
pub(super) struct Way {
    pub(super) name: &'static str,
    /// One of so many clients goes this way, since it takes a process or a while; 1: those that are left, in turn.
    pub(super) one_in: usize,
    pub(super) go: for<'a> fn(Visit<'a>) -> Going<'a>,
}

pub(super) type Going<'a> = Pin<Box<dyn Future<Output = Gone> + Send + 'a>>;

pub(super) type Gone = Result<(), String>;

const fn common(name: &'static str, go: for<'a> fn(Visit<'a>) -> Going<'a>) -> Way {
    rare(name, 1, go)
}

const fn rare(name: &'static str, one_in: usize, go: for<'a> fn(Visit<'a>) -> Going<'a>) -> Way {
    Way { name, one_in, go }
}

/// The ways that clients go.
pub(super) struct Ways {
    /// In turn.
    common: Vec<&'static Way>,
    rare: Vec<&'static Way>,
}

impl Ways {
    /// Those whose names hold `only`, as often as each other; empty: all of them.
    pub(super) fn of(only: &str) -> Result<Self, String> {
        let all = [
            sessions::WAYS,
            listening::WAYS,
            stateless::WAYS,
            tasks::WAYS,
            broken::WAYS,
            asked::WAYS,
            pipes::WAYS,
        ];
        let all = all.into_iter().flatten();
        let chosen = all.filter(|way| way.name.contains(only));
        let (common, rare): (Vec<_>, _) =
            chosen.partition(|way| way.one_in == 1 || !only.is_empty());
        match common.is_empty() {
            false => Ok(Self { common, rare }),
            true => Err(format!("no way is called `{only}`")),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &'static Way> {
        self.common.iter().chain(&self.rare).copied()
    }

    /// The way of the client `number`, and how many went it before.
    pub(super) fn of_client(&self, number: usize) -> (&'static Way, usize) {
        let mut rare = self.rare.iter();
        if let Some(way) = rare.find(|way| number % way.one_in == way.one_in - 1) {
            return (way, number / way.one_in);
        }
        let common = &self.common;
        (common[number % common.len()], number / common.len())
    }
}
