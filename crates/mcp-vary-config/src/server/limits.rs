//! The limits of a server.

use super::draft::PartialServer;
use crate::key_spec::{KeySpec, keys};
use crate::limits::kind;

macro_rules! settings {
    ($($group:ident {$($(#[doc = $about:literal])+ $key:literal = $default:literal => $field:ident: $kind:ident,)*})*) => {
        $(
            pub(super) const $group: &[KeySpec<PartialServer>] = keys![
                $($(#[doc = $about])+ $key = $default => kind!($kind, |server| &mut server.config.limits.$field),)*
            ];
        )*
    };
}

mcp_vary_upstream::server_limits!(settings);
