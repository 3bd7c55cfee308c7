//! `limits`: limits on the resources that clients can use.

use mcp_vary_settings::limits::Limits;

use super::reader::MOST;
use crate::key_spec::{KeySpec, ValueKind, keys};
use crate::schema_builder::SchemaBuilder;

macro_rules! settings {
    ($($(#[doc = $about:literal])+ $key:literal = $default:literal => $field:ident: $kind:ident,)*) => {
        /// The settings under `limits`.
        pub(super) const SETTINGS: &[KeySpec<Limits>] = keys![
            $($(#[doc = $about])+ $key = $default => kind!($kind, $field),)*
        ];
    };
}

macro_rules! kind {
    (Count, $field:ident) => {
        ValueKind::Count(1..=MOST, |limits| &mut limits.$field)
    };
    (DurationOrOff, $field:ident) => {
        ValueKind::Other(SchemaBuilder::duration_or_off, |reader, field, limits| {
            reader.duration_or_off(field, &mut limits.$field)
        })
    };
    ($kind:ident, $field:ident) => {
        ValueKind::$kind(|limits| &mut limits.$field)
    };
}

mcp_vary_settings::limits!(settings);
