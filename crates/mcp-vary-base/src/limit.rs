//! Limits with defaults as people write them: `256`, `16 MiB`, `30s`, `off`.

use std::time::Duration;

/// A type that a limit can have.
pub trait Limit {
    /// The value for this number of bytes, milliseconds or things.
    fn of(quantity: u32) -> Self;
}

/// A number of bytes.
pub type Size = usize;
/// A number of things.
pub type Count = usize;
/// A time; zero if it is `off`.
pub type DurationOrOff = Duration;

impl Limit for usize {
    fn of(quantity: u32) -> Self {
        quantity as Self
    }
}

impl Limit for Duration {
    fn of(quantity: u32) -> Self {
        Self::from_millis(quantity.into())
    }
}

/// The number of a default, in bytes or milliseconds if it has a unit.
///
/// # Panics
///
/// If the unit is unknown. Defaults are constants, so the program then does not compile.
pub const fn quantity(text: &str) -> u32 {
    let mut number = 0;
    let mut unit = text.as_bytes();
    while let [digit @ b'0'..=b'9', others @ ..] = unit {
        number = number * 10 + (*digit - b'0') as u32;
        unit = others;
    }
    match unit {
        b"" | b"ms" | b"off" => number,
        b" KiB" => number << 10,
        b" MiB" => number << 20,
        b"s" => number * 1000,
        b"m" => number * 60_000,
        b"h" => number * 3_600_000,
        _ => panic!("unknown unit of a default"),
    }
}
