//! The checks, a file for each topic. A file begins with its tests by the checks' identifiers; their functions follow in the
//! same order. The JSON file beside it has what the documents say, and what the checks do, in this order, too.

pub(crate) mod cursors;
pub(crate) mod features;
pub(crate) mod formats;
pub(crate) mod framework;
pub(crate) mod hints;
pub(crate) mod identifiers;
pub(crate) mod offers;
pub(crate) mod principals;
pub(crate) mod rate_limits;
pub(crate) mod results;
pub(crate) mod selection;
pub(crate) mod unknown_variants;
