//! Checks of an MCP server, in any language, against the documents of two extensions: content negotiation and server
//! variants (SEP-2053), and against the extension framework (SEP-2133) and the visibility of tool results.
//!
//! A [`Check`] is one sentence of a document. Violations of MUST fail a run, those of SHOULD are warnings. Where the
//! documents are silent or contradict each other, a check has the level [`Level::Decision`] (`MUST*`) and only informs. What
//! a server does not declare is not applicable, unless [`Options::only`] or [`Options::expect`] asks for it.
//!
//! The checks speak literal JSON over streamable HTTP or the standard streams of a command, in both eras of the protocol:
//! sessions (2025-11-25) and stateless requests (2026-07-28). They call only tools that declare `readOnlyHint: true`, with arguments made from
//! the input schema, and those that [`Options::tool`] names.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_vary_conformance::{Format, Options, Target};
//!
//! let target = Target::http("http://127.0.0.1:8800/mcp")?;
//! let options = Options::default().only(["SV-9", "CN-7/undeclared-gets-the-default"])?;
//! let report = mcp_vary_conformance::run(&target, &options).await?;
//! let text = report.render(Format::Plain);
//! assert!(report.passes(), "{text}");
//! # Ok(())
//! # }
//! ```
//!
//! [`run_client`] checks a client: it starts a command that connects to a mock server in several scenarios, and reads what the
//! client sends.
//!
//! A server that stops answering cannot hold a run up: each request and the whole run have time limits ([`Options`]), and a
//! check that was not answered does not pass.

mod advice;
mod answer;
mod called_tool;
mod check;
mod checks;
mod client;
mod client_checks;
mod client_command;
mod client_process;
mod client_run;
mod connections;
mod era;
mod extension;
mod json;
mod limits;
mod lines;
mod list_kind;
mod member;
mod mock_server;
mod objection;
mod observation;
mod options;
mod prelude;
mod probe;
mod process_group;
pub mod registry;
mod report;
mod run;
mod scope;
mod stderr;
mod survey;
mod target;
pub mod traceability;
mod traffic;
mod transport;

pub use check::{Check, Level};
pub use client_command::{ClientCommand, InvalidClient};
pub use client_run::run_client;
pub use era::Era;
pub use extension::Extension;
pub use mock_server::relay::relay;
pub use options::{InvalidArguments, Options, UnknownCheck};
pub use report::{Finding, Format, Outcome, Report};
pub use run::{RunError, run};
pub use target::{InvalidTarget, Target};
pub use traffic::Exchange;
