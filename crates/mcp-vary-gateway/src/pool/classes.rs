//! Classes of clients with the same capabilities: what each is connected to, what it lists, and how long it is open.

pub(crate) mod access;
pub(crate) mod class;
pub(super) mod class_connections;
pub(crate) mod keys;
pub(super) mod table;
pub(super) mod usage;
