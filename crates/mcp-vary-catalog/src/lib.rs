//! The merged lists of the servers, the views of the variants, and the selection of a variant for a client.
//!
//! This crate does no I/O: the gateway reads the lists.

#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]
pub mod access;
pub mod apps;
pub mod built_in;
pub mod catalog;
pub mod gateway_tool;
pub mod hidden_servers;
pub mod hidden_tools;
pub mod index;
pub mod item;
pub mod layout;
pub mod list_cursor;
pub mod list_fault;
pub mod list_tokens;
pub mod listing;
pub mod merge;
pub mod on_demand;
pub mod page;
pub mod registry;
mod repair;
pub mod resource;
pub mod selection;
pub mod server_changes;
pub mod server_snapshot;
pub mod shared;
pub mod shown;
#[cfg(test)]
mod tests;
pub mod tool_listing;
pub mod tool_search;
pub mod unmatched;
pub mod variant_config;
pub mod variant_set;
pub mod view;
mod visible_items;
