//! The automation of the project.

fn main() {}
