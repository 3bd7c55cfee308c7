//! A fixture server for tests.

fn main() {}
