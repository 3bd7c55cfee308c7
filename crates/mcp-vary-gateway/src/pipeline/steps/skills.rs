//! Skills (SEP-2640): one list of those of all servers, and each request to the server that its URI names.
//!
//! Nothing of a skill is shaped, so that digests and sizes stay true. The list of the only server with skills keeps its
//! pages.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use mcp_vary::json::{self, Members, edit, elements};
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_results::skill_uris::{SkillServer, array, is_skill_uri};
use mcp_vary_upstream::{Request, UpstreamConnection};
use mcp_vary_wire::response::RpcError;
use serde_json::json;
use tracing::warn;

use super::forward::{ForwardRequest, forward};
use super::policy;
use super::resources::LocatedResource;
use crate::pipeline::exchange::{ResponsePlan, SkillPlan};
use crate::pipeline::extension_owners::ExtensionOwners;
use crate::pipeline::request_context::{Dispatch, RequestContext, ViewScope};

/// The method that all servers with skills have.
const LIST: &str = "skills/list";

/// Answers a method of skills: with the skills of all `servers`, or as the server that the URI names.
pub(crate) async fn request(
    context: &mut RequestContext<'_>,
    view: ViewIndex,
    servers: &[ServerIndex],
) -> Result<Dispatch, RpcError> {
    let scope = context.in_view(view);
    let (server, plan) = if scope.request.method == LIST {
        let owners = owners(scope);
        match (servers, &owners[..]) {
            ([server], [_]) => (*server, response_plan(scope, *server, true)),
            _ => return list(scope, servers).await,
        }
    } else {
        let uri = scope.request.params.string("uri")?;
        let hidden = || {
            let why = "`uri` names no skill of a server, nor a directory of one";
            scope.with_active_variant(RpcError::invalid_params(why))
        };
        let skill = locate(scope, &uri).ok_or_else(hidden)?;
        skill.check(scope, hidden)?;
        let upstream_uri = json::string(&skill.at.upstream_uri);
        let plan = skill.response_plan(scope);
        context.request.params.members.set("uri", upstream_uri);
        (skill.at.server, plan)
    };
    policy::count_read(context.in_view(view), server).await?;
    let forwarding = ForwardRequest {
        plan,
        ..ForwardRequest::new(view, server)
    };
    forward(context, forwarding).await
}

/// A skill, or a file or directory of one.
pub(crate) struct LocatedSkill {
    pub(crate) at: LocatedResource,
    /// Whether its URIs stay those of the server: no other has skills, or the client read it from a list of resources.
    is_only: bool,
}

impl LocatedSkill {
    /// Checks that the view shows it, and that access rules allow the request.
    ///
    /// # Errors
    ///
    /// `hidden` if the view does not show it. That of access rules that refuse the request.
    pub(crate) fn check(
        &self,
        scope: ViewScope<'_>,
        hidden: impl FnOnce() -> RpcError,
    ) -> Result<(), RpcError> {
        let LocatedResource {
            server,
            upstream_uri,
        } = &self.at;
        let name = scope.server_name(*server);
        if scope.config().shows_skill(upstream_uri, &name) {
            policy::check_skill(scope, *server, upstream_uri)
        } else {
            Err(hidden())
        }
    }

    /// The plan for a response about it.
    pub(crate) fn response_plan(&self, scope: ViewScope<'_>) -> ResponsePlan {
        response_plan(scope, self.at.server, self.is_only)
    }
}

/// The skill, file or directory of a URI; `None` for any other, and for one that a server without skills lists.
///
/// A server may list files of skills as resources, too, by its URIs.
pub(crate) fn locate(scope: ViewScope<'_>, uri: &str) -> Option<LocatedSkill> {
    if !is_skill_uri(uri) {
        return None;
    }
    let owners = owners(scope);
    let listed = scope
        .catalog
        .resolve_resource(scope.variant_set(), scope.view, uri);
    if let Some(target) = listed
        && let Some(server) = target.listed_by
    {
        return owners.contains(&server).then(|| LocatedSkill {
            at: LocatedResource::new(server, target.upstream_uri),
            is_only: true,
        });
    }
    let is_only = owners.len() == 1;
    owners.into_iter().find_map(|server| {
        let upstream_uri = skill_server(scope, server, is_only).upstream_uri(uri)?;
        let at = LocatedResource::new(server, upstream_uri);
        Some(LocatedSkill { at, is_only })
    })
}

/// The servers with skills.
fn owners(scope: ViewScope<'_>) -> Vec<ServerIndex> {
    let owners = ExtensionOwners::new(&scope.catalog, &scope.snapshot.config);
    let servers = owners.servers_of(LIST, |_| true);
    servers.into_iter().collect()
}

fn skill_server(scope: ViewScope<'_>, server: ServerIndex, is_only: bool) -> SkillServer {
    SkillServer {
        name: scope.server_name(server),
        is_only,
    }
}

fn response_plan(scope: ViewScope<'_>, server: ServerIndex, is_only: bool) -> ResponsePlan {
    ResponsePlan {
        caching: scope.class.catalog.layout.caching,
        skills: Some(Box::new(SkillPlan {
            server: skill_server(scope, server, is_only),
            variants: Arc::clone(scope.variant_set()),
            view: scope.view,
        })),
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
        let skills = skill_server(scope, *server, false);
        let read = read_skills(scope, *server, &skills).await;
        (skills.name, read)
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

/// The skills of a server that the view shows, as clients see them.
///
/// # Errors
///
/// When the server does not answer in time, or refuses.
async fn read_skills(
    scope: ViewScope<'_>,
    server: ServerIndex,
    skills: &SkillServer,
) -> Result<Vec<String>, RpcError> {
    let connection = &scope.class.source(server).connection;
    let limit = connection.config().limits.ready_timeout;
    let shows = |uri: &str| scope.config().shows_skill(uri, &skills.name);
    let reading = async {
        let _permit = connection.acquire().await?;
        let upstream = connection.ready().await?;
        read_pages(&upstream, skills, &shows).await
    };
    let read = tokio::time::timeout(limit, reading).await;
    read.unwrap_or_else(|_elapsed| Err(late(&skills.name, limit)))
}

fn late(server: &str, limit: Duration) -> RpcError {
    let why = format!(
        "server `{server}` did not list its skills in {} s",
        limit.as_secs()
    );
    RpcError::internal(why)
}

async fn read_pages(
    upstream: &UpstreamConnection,
    server: &SkillServer,
    shows: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Vec<String>, RpcError> {
    let mut skills = Vec::new();
    let mut seen = BTreeSet::new();
    let mut bytes = 0;
    let mut cursor = None;
    loop {
        let params = list_params(upstream, cursor.as_deref());
        let exchange = upstream.request(Request::new(LIST, Some(params))).await?;
        let answer = exchange.answer().await?;
        let page = answer
            .outcome()
            .map_err(RpcError::from_upstream_or_internal)?;
        bytes += page.len();
        let entries = edit::get(page, "skills").and_then(|entries| elements(entries).ok());
        skills.extend(server.shown_skills(&entries.unwrap_or_default(), shows));
        let next = edit::get(page, "nextCursor").filter(|next| next.starts_with('"'));
        // A server that repeats a cursor would be asked for ever.
        let next = next.filter(|next| seen.insert((*next).to_owned()));
        let Some(next) = next else { break };
        if seen.len() >= MAX_PAGES || skills.len() >= MAX_SKILLS || bytes >= MAX_BYTES {
            warn!(
                server = &*server.name,
                "list of skills is too long; its end was not read"
            );
            break;
        }
        cursor = Some(next.to_owned());
    }
    Ok(skills)
}

fn list_params(upstream: &UpstreamConnection, cursor: Option<&str>) -> String {
    let mut params = Members::default();
    upstream.add_meta(&mut params);
    if let Some(cursor) = cursor {
        params.set("cursor", cursor);
    }
    params.to_json()
}

/// The most skills in a list of several servers.
const MAX_SKILLS: usize = 4096;
/// The most pages that are read of a server, and their bytes.
const MAX_PAGES: usize = 256;
const MAX_BYTES: usize = 16 << 20;
