//! The fixture as its users see it: as a process, on stdio and HTTP, in both eras.

mod command;
mod eras;
mod support;
