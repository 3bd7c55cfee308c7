//! The fixture as its users see it: as a process, on stdio and HTTP, in both eras.
#![expect(
    deprecated,
    reason = "logging is on its way out of the protocol, but the suite asks for it"
)]

mod command;
mod eras;
mod support;
