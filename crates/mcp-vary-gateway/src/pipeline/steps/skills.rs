//! Skills of several servers (SEP-2640): one list of all, in which each URI names its server.
//!
//! If only one server has skills, its messages pass as they are. Nothing of a skill is shaped in either case, so that
//! digests and sizes stay true.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use mcp_vary::json::{self, Members, edit, elements};
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_results::skill_uris::{SkillUri, array, shown_skill};
use mcp_vary_upstream::{Request, UpstreamConnection};
use mcp_vary_wire::response::RpcError;
use serde_json::json;
use tracing::warn;

use super::forward::{ForwardRequest, forward};
use super::policy;
use super::resources::LocatedResource;
use crate::pipeline::exchange::ResponsePlan;
use crate::pipeline::extension_owners::{ExtensionOwners, is_hidden};
use crate::pipeline::request_context::{Dispatch, RequestContext, ViewScope};

/// The method that all servers with skills have.
const LIST: &str = "skills/list";

/// Answers a method of skills, which several `servers` have: with the skills of all of them, or as the one that the URI
/// names.
pub(crate) async fn request(
    context: &mut RequestContext<'_>,
    view: ViewIndex,
    servers: &[ServerIndex],
) -> Result<Dispatch, RpcError> {
    let scope = context.in_view(view);
    if scope.request.method == LIST {
        return list(scope, servers).await;
    }
    let uri = scope.request.params.string("uri")?;
    let located = locate(scope, &uri).ok_or_else(|| {
        let why = "`uri` names no skill of a server, nor a directory of one";
        scope.with_active_variant(RpcError::invalid_params(why))
    })?;
    policy::count_read(scope, located.server).await?;
    let forwarding = ForwardRequest {
        plan: response_plan(scope, located.server),
        ..ForwardRequest::new(view, located.server)
    };
    let upstream_uri = json::string(&located.upstream_uri);
    context.request.params.members.set("uri", upstream_uri);
    forward(context, forwarding).await
}

/// The file, directory or skill of a URI that names its server; `None` for any other, and if the variant hides it.
pub(crate) fn locate(scope: ViewScope<'_>, uri: &str) -> Option<LocatedResource> {
    let SkillUri {
        server: name,
        upstream_uri,
    } = SkillUri::read(uri)?;
    let owners = ExtensionOwners::new(&scope.catalog, &scope.snapshot.config);
    let owners = owners.servers_of(LIST, |_| true);
    if owners.len() < 2 {
        return None;
    }
    let mut owners = owners.into_iter();
    let server = owners.find(|server| *scope.server_name(*server) == *name)?;
    (!is_hidden(scope.config(), name, LIST)).then(|| LocatedResource::new(server, upstream_uri))
}

/// The plan for a response of `server` about a skill whose URI names it.
pub(crate) fn response_plan(scope: ViewScope<'_>, server: ServerIndex) -> ResponsePlan {
    ResponsePlan {
        caching: scope.class.catalog.layout.caching,
        skill_server: Some(scope.server_name(server)),
        ..ResponsePlan::default()
    }
}

/// The skills of all servers.
///
/// # Errors
///
/// When the client sends a cursor, which it was not given, and when no server could be read.
async fn list(scope: ViewScope<'_>, servers: &[ServerIndex]) -> Result<Dispatch, RpcError> {
    if scope.cursor().is_some() {
        let why = "`cursor` is not one of this list, which has one page";
        return Err(scope.with_active_variant(RpcError::invalid_params(why)));
    }
    for server in servers {
        policy::count_read(scope, *server).await?;
    }
    let readings = servers.iter().map(|server| async {
        let name = scope.server_name(*server);
        (Arc::clone(&name), read_skills(scope, *server, &name).await)
    });
    let mut skills = Vec::new();
    let mut missing = Vec::new();
    let mut failure = None;
    for (name, read) in join_all(readings).await {
        match read {
            Ok(read) => skills.extend(read),
            Err(error) => {
                missing.push(name.to_string());
                failure = Some(error);
            }
        }
    }
    if let Some(failure) = failure.filter(|_| missing.len() == servers.len()) {
        return Err(failure);
    }
    skills.truncate(MAX_SKILLS);
    let mut result = Members::default();
    result.set("skills", array(&skills));
    if !missing.is_empty() {
        result.set("_meta", json!({"vary/down": missing}).to_string());
    }
    Ok(scope.answer_uncached(&result.to_json()))
}

/// The skills of a server as clients see them. What cannot be shown is left out and logged.
///
/// # Errors
///
/// When the server does not answer in time, or refuses.
async fn read_skills(
    scope: ViewScope<'_>,
    server: ServerIndex,
    name: &str,
) -> Result<Vec<String>, RpcError> {
    let connection = &scope.class.source(server).connection;
    let limit = connection.config().limits.ready_timeout;
    let reading = async {
        let _permit = connection.acquire().await?;
        let upstream = connection.ready().await?;
        read_pages(&upstream, name).await
    };
    let read = tokio::time::timeout(limit, reading).await;
    read.unwrap_or_else(|_elapsed| Err(late(name, limit)))
}

fn late(server: &str, limit: Duration) -> RpcError {
    let why = format!(
        "server `{server}` did not list its skills in {} s",
        limit.as_secs()
    );
    RpcError::internal(why)
}

async fn read_pages(upstream: &UpstreamConnection, name: &str) -> Result<Vec<String>, RpcError> {
    let mut skills = Vec::new();
    let mut seen = BTreeSet::new();
    let mut cursor = None;
    while seen.len() < MAX_PAGES && skills.len() < MAX_SKILLS {
        let params = list_params(upstream, cursor.as_deref());
        let exchange = upstream.request(Request::new(LIST, Some(params))).await?;
        let answer = exchange.answer().await?;
        let page = answer
            .outcome()
            .map_err(RpcError::from_upstream_or_internal)?;
        let entries = edit::get(page, "skills").and_then(|entries| elements(entries).ok());
        for entry in entries.unwrap_or_default() {
            match shown_skill(name, entry) {
                Ok(shown) => skills.push(shown),
                Err(reason) => warn!(server = name, reason, "skill left out of the list"),
            }
        }
        let next = edit::get(page, "nextCursor").filter(|next| next.starts_with('"'));
        // A server that repeats a cursor would be asked for ever.
        let next = next.filter(|next| seen.insert((*next).to_owned()));
        let Some(next) = next else { break };
        cursor = Some(next.to_owned());
    }
    Ok(skills)
}

fn list_params(upstream: &UpstreamConnection, cursor: Option<&str>) -> String {
    let mut meta = Members::default();
    for (key, value) in upstream.client_meta() {
        meta.set(*key, value.as_str());
    }
    let mut params = Members::default();
    if !meta.is_empty() {
        params.set("_meta", meta.to_json());
    }
    if let Some(cursor) = cursor {
        params.set("cursor", cursor);
    }
    params.to_json()
}

/// The most skills in a list of several servers.
const MAX_SKILLS: usize = 4096;
/// The most pages that are read of a server.
const MAX_PAGES: usize = 256;
