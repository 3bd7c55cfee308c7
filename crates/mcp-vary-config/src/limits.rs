//! `limits`: limits on the resources that clients can use.

use mcp_vary_settings::limits::Limits;

use crate::key_spec::{KeySpec, keys};

/// The kind of the value of a limit: `kind!(Duration, |limits| &mut limits.field)`.
macro_rules! kind {
    (Count, $target:expr) => {
        $crate::key_spec::ValueKind::Count(1..=$crate::reader::MOST, $target)
    };
    ($kind:ident, $target:expr) => {
        $crate::key_spec::ValueKind::$kind($target)
    };
}

pub(crate) use kind;

macro_rules! settings {
    ($($(#[doc = $about:literal])+ $key:literal = $default:literal => $field:ident: $kind:ident,)*) => {
        /// The settings under `limits`.
        pub(super) const SETTINGS: &[KeySpec<Limits>] = keys![
            $($(#[doc = $about])+ $key = $default => kind!($kind, |limits| &mut limits.$field),)*
        ];
    };
}

mcp_vary_settings::limits!(settings);
