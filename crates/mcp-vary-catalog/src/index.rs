//! Positions as separate types, so that they cannot be confused.

/// Defines the position of one server, variant or view in the lists that have an entry for each.
macro_rules! index {
    ($(#[$about:meta])* $name:ident, $one:literal) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name(usize);

        impl $name {
            /// The index of `position`, counted from 0.
            pub(crate) const fn at(position: usize) -> Self {
                Self(position)
            }

            #[doc = concat!("The number of ", $one, "s before this one.")]
            #[must_use]
            pub const fn position(self) -> usize {
                self.0
            }

            #[doc = concat!("The entry of this ", $one, " in `entries`, which has one for each ", $one, ".")]
            ///
            /// `None` when there are fewer.
            pub fn get<T>(self, entries: &[T]) -> Option<&T> {
                entries.get(self.0)
            }

            #[doc = concat!("The entry of this ", $one, " in `entries`, which must be from the same configuration")]
            #[doc = concat!("and have an entry for each ", $one, ".")]
            // Nothing that a peer sends reaches the panic. Indices are never read from messages, ids or cursors: they
            // come from an entry of such a list. Each request uses one snapshot of the configuration, with its lists.
            // Another entry instead could show a client what its variant hides.
            pub fn entry<T>(self, entries: &[T]) -> &T {
                let entry = self.get(entries);
                entry.unwrap_or_else(|| {
                    unreachable!(concat!("a list for a configuration has an entry for each ", $one))
                })
            }

            #[doc = concat!("The entries of a list that has one for each ", $one, ", each with its index.")]
            pub fn enumerate<T>(entries: &[T]) -> impl DoubleEndedIterator<Item = (Self, &T)> {
                entries.iter().enumerate().map(|(at, it)| (Self::at(at), it))
            }
        }
    };
}

index! {
    /// The position of a server in the configuration, and in every list that has an entry for each server.
    ServerIndex, "server"
}

impl ServerIndex {
    /// The server that is configured first.
    pub const FIRST: Self = Self(0);

    /// The index of the first server whose entry `is_wanted`.
    pub fn find<T>(entries: &[T], is_wanted: impl FnMut(&T) -> bool) -> Option<Self> {
        entries.iter().position(is_wanted).map(Self::at)
    }
}

index! {
    /// The position of a variant in the order of declaration.
    VariantIndex, "variant"
}

impl VariantIndex {
    /// The variant that is declared first. There is always one.
    pub const FIRST: Self = Self(0);

    /// The view of the variant as declared, without a presentation from a rule for clients.
    #[must_use]
    pub const fn declared_view(self) -> ViewIndex {
        ViewIndex(self.0)
    }
}

index! {
    /// The position of a view: a variant in one of its presentations. The views of the variants as declared come first.
    ///
    /// Only the [set of variants] creates these indices.
    ///
    /// [set of variants]: crate::variant_set::VariantSet
    ViewIndex, "view"
}
