//! What most tests of a gateway need, for one glob import.

pub use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub use std::sync::{Arc, Mutex};
pub use std::time::Duration;

pub use bytes::Bytes;
pub use serde_json::{Value, json};
pub use tokio::sync::mpsc::UnboundedSender;
pub use tracing::Level;

pub use crate::authorization_server::AuthorizationServer;
pub use crate::captured_log::CapturedLog;
pub use crate::changing_server::ChangingServer;
pub use crate::client::{Client, ClientKind, Endpoint, LegacyClient};
pub use crate::defaults::default_with;
pub use crate::era::Era;
pub use crate::http_client::{HttpRequest, HttpResponse, RawHttp};
pub use crate::message::*;
pub use crate::model_server::{ModelBehavior, ModelRequest, ModelServer, completion};
pub use crate::notification_client::*;
pub use crate::places_server;
pub use crate::process::{is_alive, is_gone};
pub use crate::script::{OpenStream, Script, Streams};
pub use crate::scripted_server::{ReceivedRequest, Reply, ScriptedServer, event};
pub use crate::stdio_pipe::StdioPipe;
pub use crate::table::rows;
pub use crate::trace_collector::{CollectorBehavior, ReceivedSpan, TraceCollector};
pub use crate::wait::{soon, until, until_some};
