//! What most tests of clients need, for one glob import.

pub(crate) use crate::scripted::{Connected, Scripted, WAYS, call, id, soon};
pub(crate) use mcp_vary::extension::SERVER_VARIANTS;
pub(crate) use mcp_vary_rmcp::client::{DeclaringClient, Error, TaskContext, VariantClient};
pub(crate) use mcp_vary_testkit::cases::each;
pub(crate) use rmcp::ErrorData;
pub(crate) use serde_json::{Value, json};
pub(crate) use std::sync::Mutex;
