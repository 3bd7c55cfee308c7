//! The command line of Vary.

fn main() {}
