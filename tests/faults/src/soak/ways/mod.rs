//! Every way in which a client comes and goes.

mod asked;
mod broken;
mod listening;
mod pipes;
mod sessions;
mod stateless;

use std::pin::Pin;

use super::Visit;

/// One of them.
pub(super) struct Way {
    pub(super) name: &'static str,
    /// One of so many clients goes this way; 1: those that are left, in turn.
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

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Way> {
    let all = [
        sessions::WAYS,
        listening::WAYS,
        stateless::WAYS,
        broken::WAYS,
        asked::WAYS,
        pipes::WAYS,
    ];
    all.into_iter().flatten()
}
