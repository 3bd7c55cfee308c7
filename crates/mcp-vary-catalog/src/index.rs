//! Positions as separate types, so that they cannot be confused.

/// The position of a server in the configuration, and in every list that has an entry for each server.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ServerIndex(usize);

impl ServerIndex {
    /// The server that is configured first.
    pub const FIRST: Self = Self(0);

    /// The server at `position`, counted from 0.
    #[must_use]
    pub const fn at(position: usize) -> Self {
        Self(position)
    }

    /// The number of servers before this one.
    #[must_use]
    pub const fn position(self) -> usize {
        self.0
    }

    /// The entry of this server in `entries`, which has one for each server; `None` when there are fewer servers.
    pub fn get<T>(self, entries: &[T]) -> Option<&T> {
        entries.get(self.0)
    }

    /// The entry of this server in `entries`, which must be from the same configuration and have an entry for each
    /// server.
    pub fn entry<T>(self, entries: &[T]) -> &T {
        let entry = self.get(entries);
        entry.unwrap_or_else(|| {
            unreachable!("a list for a configuration has an entry for each server")
        })
    }

    /// The entries of a list that has one for each server, each with the index of its server.
    pub fn enumerate<T>(entries: &[T]) -> impl DoubleEndedIterator<Item = (Self, &T)> {
        entries.iter().enumerate().map(|(at, it)| (Self(at), it))
    }

    /// The index of the first server whose entry `is_wanted`.
    pub fn find<T>(entries: &[T], is_wanted: impl FnMut(&T) -> bool) -> Option<Self> {
        entries.iter().position(is_wanted).map(Self)
    }
}

/// The position of a variant in the order of declaration.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct VariantIndex(usize);

impl VariantIndex {
    /// The variant that is declared first. There is always one.
    pub const FIRST: Self = Self(0);

    /// The variant at `position`, counted from 0.
    #[must_use]
    pub const fn at(position: usize) -> Self {
        Self(position)
    }

    /// The number of variants that were declared before this one.
    #[must_use]
    pub const fn position(self) -> usize {
        self.0
    }

    /// The entry of this variant in `entries`, which has one for each variant; `None` when there are fewer variants.
    pub fn get<T>(self, entries: &[T]) -> Option<&T> {
        entries.get(self.0)
    }

    /// The entries of a list that has one for each variant, each with the index of its variant.
    pub fn enumerate<T>(entries: &[T]) -> impl Iterator<Item = (Self, &T)> {
        entries.iter().enumerate().map(|(at, it)| (Self(at), it))
    }

    /// The view of the variant as declared, without a presentation from a rule for clients.
    #[must_use]
    pub const fn declared_view(self) -> ViewIndex {
        ViewIndex(self.0)
    }
}

/// The position of a view: a variant in one of its presentations. The views of the variants as declared come first.
///
/// Only the [set of variants] creates these indices.
///
/// [set of variants]: crate::variant_set::VariantSet
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ViewIndex(usize);

impl ViewIndex {
    pub(crate) const fn at(position: usize) -> Self {
        Self(position)
    }

    /// The number of views before this one.
    #[must_use]
    pub const fn position(self) -> usize {
        self.0
    }

    /// The entry of this view in `entries`, which has one for each view; `None` when there are fewer views.
    pub fn get<T>(self, entries: &[T]) -> Option<&T> {
        entries.get(self.0)
    }
}
