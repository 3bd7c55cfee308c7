//! The call of a tool as a client would make it, for the operator.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use mcp_vary::json::{self, Members};
use mcp_vary::variant::VariantId;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::meta::{CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Revision;
use serde_json::{Map, Value};

use super::{ClientDescription, Question};
use crate::gateway::Gateway;
use crate::pipeline::clients::modern_client;
use crate::pipeline::exchange::ResponseEvent;
use crate::pipeline::methods::Dispatch;
use crate::pipeline::request::IncomingRequest;
use crate::pipeline::router;
use crate::pipeline::snapshot::ConfigSnapshot;
use mcp_vary_observation::{AuditedRequest, Observation, Origin};
use mcp_vary_session::caller::Caller;
use mcp_vary_session::client::Client;

/// A call that the operator makes as a client would.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "who calls writes it out")]
pub struct ClientCall<'a> {
    /// The name of the server.
    pub server: &'a str,
    /// The name of the tool there.
    pub tool: &'a str,
    /// The arguments as the server names them, JSON text.
    pub arguments: &'a str,
}

/// What a client would get of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientResponse {
    /// The variant of the client; `None` if it has none, or variants are off.
    pub variant: Option<VariantId>,
    /// The name of the tool for the client; `None` if the client does not get the tool.
    pub name: Option<String>,
    /// The JSON-RPC response, or why no call was made.
    pub response: Result<Bytes, String>,
}

/// The call of a client with this variant, or why it cannot make it.
struct PreparedCall {
    variant: Option<VariantId>,
    call: Result<CallAsClient, String>,
}

/// A call that a client can make.
struct CallAsClient {
    client: Arc<Client>,
    name: String,
    /// The message as the client would send it.
    message: String,
    /// The same with what a modern client says of itself.
    described: String,
}

impl Gateway {
    /// Calls a tool as the described client would, and waits for the response. The arguments take the form that the client's
    /// variant gives them: with its names, and without those that it fixes or hides.
    ///
    /// The call is in the audit log as the operator's. It counts for no client or experiment, but for the server and the rate
    /// limits of a key. The client of the call can answer no server's requests, whatever the description says.
    ///
    /// # Errors
    ///
    /// When the description cannot be read. The error names the part.
    pub fn call_as_client<'a>(
        &'a self,
        description: &'a ClientDescription,
        call: ClientCall<'a>,
    ) -> BoxFuture<'a, Result<ClientResponse, String>> {
        Box::pin(async move {
            let snapshot = self.current();
            let PreparedCall { variant, call } =
                Question::read(&snapshot, description)?.call(call)?;
            let (name, response) = match call {
                Ok(call) => (Some(call.name.clone()), call.send(snapshot).await),
                Err(why) => (None, Err(why)),
            };
            Ok(ClientResponse {
                variant,
                name,
                response,
            })
        })
    }
}

impl CallAsClient {
    /// Sends it, and waits for the response.
    async fn send(self, snapshot: Arc<ConfigSnapshot>) -> Result<Bytes, String> {
        let body = Bytes::from(self.message);
        let unreadable = |_| "the call cannot be read".to_owned();
        let (message, params) = Message::read_with_params(&body).map_err(unreadable)?;
        let refused = |_| "the params of the call cannot be read".to_owned();
        let params = Params::of(&message, params).map_err(refused)?;
        let described = Params::read(Some(&self.described)).map_err(refused)?;
        let request = IncomingRequest::new(&message, params, &body);
        let observers = &snapshot.services.observers;
        let origin = Origin::default();
        let info = described.meta.get(CLIENT_INFO);
        let clients = &snapshot.services.client_uses;
        let declared = info.map(|info| clients.client_in(info));
        let audited = AuditedRequest {
            origin: &origin,
            principal: None,
            era: self.client.era(),
            method: request.method,
            id: request.id,
            params: &described,
            client: declared.and_then(|client| client.info.clone()),
            message: Some(&body),
            length: body.len(),
            config: snapshot.config.digest.as_ref(),
            reported: observers.feed.begin(request.method),
            person: None,
        };
        let begun = Observation::of_operator(observers, audited).await;
        let mut client = self.client;
        let observation = begun.map_err(|full| full.to_string())?;
        Arc::make_mut(&mut client).observation = observation;
        let dispatched = router::dispatch(&snapshot, &client, request).await;
        // It may be replaced while a server works.
        drop(snapshot);
        match dispatched {
            Dispatch::Done(reply) => Ok(reply.body),
            Dispatch::InFlight(mut running) => loop {
                match running.next().await {
                    ResponseEvent::Message(_) => {}
                    ResponseEvent::Done(reply) => return Ok(reply.body),
                    ResponseEvent::Cancelled => return Err("the call was cancelled".to_owned()),
                }
            },
            Dispatch::Listen(_) => Err("a call opens no stream of changes".to_owned()),
        }
    }
}

impl Question<'_> {
    /// The variant of the client, and its call; or why it cannot make it.
    ///
    /// # Errors
    ///
    /// When the arguments are not an object.
    fn call(&self, call: ClientCall<'_>) -> Result<PreparedCall, String> {
        let prepared = |variant: Option<&VariantId>, call| PreparedCall {
            variant: variant.cloned(),
            call,
        };
        let client = self.client();
        let selected = client.and_then(|client| Ok((self.selected(&client.offers)?.0, client)));
        let (index, client) = match selected {
            Ok(selected) => selected,
            Err(refusal) => return Ok(prepared(None, Err(refusal.message().to_owned()))),
        };
        let snapshot = self.snapshot;
        let id = || self.id_of(index);
        let variant = snapshot.config.variants.then(id).flatten();
        let view = snapshot
            .variant_set
            .presented_view(index, client.presentation);
        let catalog = snapshot.pool.base().catalog.current();
        let (_, report) = self.access(&catalog);
        let mut tools = self.tools(&catalog, view, report.as_ref()).into_iter();
        let tool = tools.find(|tool| tool.server == call.server && tool.name == call.tool);
        let name = match tool.map(|tool| tool.shown) {
            Some(Ok(name)) => name,
            Some(Err(hidden)) => {
                let why: Vec<_> = hidden.into_iter().map(|hidden| hidden.detail).collect();
                return Ok(prepared(variant, Err(why.join("; "))));
            }
            None => {
                let why = format!("`{}` lists no tool `{}` now", call.server, call.tool);
                return Ok(prepared(variant, Err(why)));
            }
        };
        let listed = catalog.view(ListKind::Tools, view);
        let changed = listed.and_then(|listed| listed.tool(&name)?.prepared.as_ref());
        let written = match changed {
            Some(changed) => changed.view_arguments(call.arguments),
            None => Members::parse(call.arguments).map(|members| members.to_json()),
        };
        let arguments = written.map_err(|error| format!("`arguments`: {error}"))?;
        let params = self.params(&name, &arguments, self.legacy.is_none());
        let call = CallAsClient {
            message: format!(
                r#"{{"jsonrpc":"2.0","id":{ID},"method":"tools/call","params":{params}}}"#
            ),
            described: self.params(&name, &arguments, true),
            name,
            client,
        };
        Ok(prepared(variant, Ok(call)))
    }

    /// The client, as the pipeline finds it by what it declares.
    fn client(&self) -> Result<Arc<Client>, RpcError> {
        let identity = self.params("", "{}", true);
        let read = Params::read(Some(&identity));
        let params =
            read.map_err(|refusal| refusal.into_counted_error(&self.snapshot.services.counters))?;
        let caller = Caller {
            principal: self.principal.clone(),
            requested: self.requested.clone(),
            ..Caller::default()
        };
        let mut client = modern_client(self.snapshot, "tools/call", &caller, &params)?;
        if let Some(revision) = self.legacy {
            Arc::make_mut(&mut client).revision = revision;
        }
        Ok(client)
    }

    /// The params of the call; `with_identity`: also what a modern client says of itself.
    fn params(&self, name: &str, arguments: &str, with_identity: bool) -> String {
        let mut meta = self.params.meta.clone();
        let identity = [
            (
                PROTOCOL_VERSION,
                Some(json::string(Revision::LATEST_MODERN.as_str())),
            ),
            (CLIENT_INFO, self.info.clone()),
            (CLIENT_CAPABILITIES, Some(self.extensions())),
        ];
        for (key, value) in identity {
            meta.remove(key);
            if with_identity && let Some(value) = value {
                meta.set(key, value);
            }
        }
        let name = json::string(name);
        let members = meta.to_json();
        format!(r#"{{"name":{name},"arguments":{arguments},"_meta":{members}}}"#)
    }

    /// The capabilities of the client without those by which servers could send it requests, which nobody would answer.
    fn extensions(&self) -> String {
        let declared = self.capabilities.as_deref().unwrap_or("{}");
        let mut declared: Map<String, Value> = serde_json::from_str(declared).unwrap_or_default();
        declared.retain(|name, _| EXTENSIONS.contains(&name.as_str()));
        Value::Object(declared).to_string()
    }
}

/// The members of capabilities that have those of extensions.
const EXTENSIONS: [&str; 2] = ["experimental", "extensions"];
/// The id of the request, which no other request of its client can have.
const ID: &str = "1";
