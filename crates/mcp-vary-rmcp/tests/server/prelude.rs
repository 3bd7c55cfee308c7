//! What most tests of servers need, for one glob import.

pub(crate) use crate::support::{
    CallParams, CallResult, Client, Context, Era, McpResult, PageParams, PromptParams,
    PromptResult, ReadParams, ReadResult, VARIANT, VARIANTS, WAYS, Wire, connect, connect_tagged,
    connect_with, data_of, declaring, initialize, join, lines, modern, names, principal,
    serve_http, soon,
};
pub(crate) use mcp_vary_rmcp::server::{
    Builder, PromptView, ToolView, VariantHandler, VaryServer, View,
};
pub(crate) use mcp_vary_testkit::cases::each;
pub(crate) use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, ProgressNotificationParam, Prompt, PromptMessage,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role, ServerCapabilities,
    ServerConfig, Tool,
};
pub(crate) use rmcp::{ErrorData, ServerHandler};
pub(crate) use serde_json::{Value, json};
pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Arc, Mutex};
pub(crate) use std::time::Duration;
