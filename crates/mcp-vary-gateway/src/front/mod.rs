//! The two doors that clients come in by.

pub(crate) mod batch;
pub(crate) mod guard;
pub(crate) mod http;
pub(crate) mod post;
pub(crate) mod sse;
pub(crate) mod stdio;
