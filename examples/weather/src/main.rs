//! The weather server on stdio.

fn main() {}
