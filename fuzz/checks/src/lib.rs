//! What must hold of every parser for every sequence of bytes.

pub mod gateway;
pub mod protocol;
