//! Generators of values: the same in every run, or for property tests.

pub mod mutants;
pub mod random;
pub mod schemas;
pub mod values;
pub mod written;
