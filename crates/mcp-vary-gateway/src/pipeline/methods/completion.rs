//! `completion/complete`: arguments of prompts and templates, with the names of their server.

use std::sync::Arc;

use mcp_vary::error::Identifier;
use mcp_vary::json;
use mcp_vary::json::edit;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::shown::Prompt;
use mcp_vary_results::name_rewriter::NameRewriter;
use mcp_vary_view::{ArgumentError, PreparedPrompt};
use mcp_vary_wire::response::RpcError;

use super::RequestContext;
use super::forward::ForwardRequest;
use crate::pipeline::exchange::ResponsePlan;
use crate::pipeline::methods::Dispatch;

/// The target of `ref`: the name of a prompt, or the URI of a resource template.
#[derive(Debug, Eq, PartialEq)]
enum Reference {
    Prompt(String),
    Resource(String),
}

impl Reference {
    /// Reads `ref` by its `type`, as servers do.
    ///
    /// # Errors
    ///
    /// When the type is unknown, or when it has the member of the other type: a server that reads that member would
    /// complete an item that was never checked.
    fn read(reference: &str) -> Result<Self, String> {
        let text = |key| serde_json::from_str::<String>(edit::get(reference, key)?).ok();
        let kind = text("type").unwrap_or_default();
        let (key, other) = match kind.as_str() {
            "ref/prompt" => ("name", "uri"),
            "ref/resource" => ("uri", "name"),
            _ => return Err("`ref.type` must be `ref/prompt` or `ref/resource`".to_owned()),
        };
        if edit::get(reference, other).is_some() {
            return Err(format!(
                "`ref.{other}` has no place in a `{kind}`; leave it out"
            ));
        }
        let value = text(key).ok_or_else(|| format!("`ref.{key}` must be a string"))?;
        Ok(match key {
            "name" => Self::Prompt(value),
            _ => Self::Resource(value),
        })
    }
}

impl RequestContext<'_> {
    pub(crate) async fn complete(mut self) -> Result<Dispatch, RpcError> {
        self.may_complete()?;
        for key in ["ref", "argument"] {
            self.request.params.object(key)?;
        }
        let view = self.active_view()?;
        let (server, words) = self.server_of_reference(view).await?;
        let forwarding = ForwardRequest {
            server,
            plan: ResponsePlan {
                names: words,
                undeclared: self.completes(server)?,
                ..ResponsePlan::default()
            },
            ..ForwardRequest::default()
        };
        self.count_read(view, server)?;
        self.forward(view, forwarding).await
    }

    /// The server of the prompt or template, and the names that the view changed. Sets the server's name or template in
    /// the request.
    async fn server_of_reference(
        &mut self,
        view: ViewIndex,
    ) -> Result<(ServerIndex, Option<Arc<NameRewriter>>), RpcError> {
        let reference = self.request.params.object("ref")?.to_owned();
        match Reference::read(&reference).map_err(RpcError::invalid_params)? {
            Reference::Prompt(name) => self.server_of_prompt(view, &reference, &name).await,
            Reference::Resource(uri) => {
                let server = self.server_of_template(view, &reference, uri).await?;
                Ok((server, None))
            }
        }
    }

    async fn server_of_prompt(
        &mut self,
        view: ViewIndex,
        reference: &str,
        name: &str,
    ) -> Result<(ServerIndex, Option<Arc<NameRewriter>>), RpcError> {
        let shows_all = !self.variant_set().config(view).selects_prompts();
        let is_listed = self.catalog.prompt(view, name).is_some();
        let only = self.only_source(view);
        if let Some(only) = only.filter(|_| shows_all && !is_listed) {
            return Ok((only, None));
        }
        let prompt = self.known_prompt(view, name).await?;
        self.check_access(view, (ListKind::Prompts, &prompt.item_ref), None)?;
        self.complete_variant_argument(view, &prompt)?;
        let place = &prompt.item_ref;
        if *place.upstream_name != *name {
            let renamed =
                edit::set(reference, "name", &json::string(&place.upstream_name)).into_owned();
            self.request.params.members.set("ref", renamed);
        }
        Ok((place.server, prompt.name_rewriter.clone()))
    }

    async fn server_of_template(
        &mut self,
        view: ViewIndex,
        reference: &str,
        uri: String,
    ) -> Result<ServerIndex, RpcError> {
        let (server, upstream_uri) = self.located_template(view, &uri).await?;
        let place = ItemRef {
            server,
            upstream_name: upstream_uri.as_str().into(),
        };
        self.check_access(view, (ListKind::Templates, &place), None)?;
        if upstream_uri != uri {
            let renamed = edit::set(reference, "uri", &json::string(&upstream_uri)).into_owned();
            self.request.params.members.set("ref", renamed);
        }
        Ok(server)
    }

    /// The server of the template or resource `uri` of the variant, and the server's URI.
    async fn located_template(
        &self,
        view: ViewIndex,
        uri: &str,
    ) -> Result<(ServerIndex, String), RpcError> {
        let variant_set = self.variant_set();
        let only = self.only_source(view);
        let only = only.filter(|_| !variant_set.config(view).selects_resources());
        if let Some(only) = only.filter(|_| !variant_set.checks_uris(view)) {
            return Ok((only, uri.to_owned()));
        }
        let find = |catalog: &Catalog| {
            if let Some(template) = catalog.resolve_template(view, uri) {
                return Some((template.listed_by?, template.upstream_uri.into_owned()));
            }
            let address = catalog.resolve_resource(variant_set, view, uri)?;
            let upstream_uri = &*address.upstream_uri;
            let server = address.listed_by.or_else(|| {
                let is_fine = address.fault.is_none();
                let shown = || {
                    let server = catalog.template_server(view, upstream_uri)?;
                    self.allows_unlisted(view, upstream_uri, server)
                        .then_some(server)
                };
                match only.filter(|_| is_fine) {
                    Some(only) => Some(only),
                    None => is_fine.then(shown).flatten(),
                }
            });
            Some((server?, address.upstream_uri.into_owned()))
        };
        self.find_item((ListKind::Templates, uri), find, || {
            self.no_such_uri(view, uri, Identifier::Resource)
        })
        .await
    }

    /// Replaces the view's names of the argument to complete, and of those completed before, by the server's.
    fn complete_variant_argument(
        &mut self,
        view: ViewIndex,
        prompt: &Prompt,
    ) -> Result<(), RpcError> {
        let Some(prepared) = &prompt.prepared else {
            return Ok(());
        };
        let argument = self.request.params.object("argument")?.to_owned();
        let name = edit::get(&argument, "name").unwrap_or("null");
        let name: String = serde_json::from_str(name).unwrap_or_default();
        let upstream_argument = prepared.upstream_argument(&name);
        let upstream_argument = upstream_argument.ok_or_else(|| {
            let why = "`argument.name` is not an argument of the prompt";
            self.with_active_variant(view, RpcError::invalid_params(why))
        })?;
        let renamed = edit::set(&argument, "name", &json::string(upstream_argument)).into_owned();
        let context = self
            .upstream_context(prepared, &name, upstream_argument)
            .map_err(|faults| self.with_active_variant(view, self.invalid_arguments(&faults)))?;
        self.request.params.members.set("argument", renamed);
        if let Some(context) = context {
            self.request.params.members.set("context", context);
        }
        Ok(())
    }

    /// The `context` for completing the argument `name`, which the server calls `completed`: the other arguments, as
    /// `prompts/get` would send them, by the server's names. `None` if there are no others.
    ///
    /// > `context.arguments`: Previously-resolved variables (MCP 2025-06-18, server/utilities/completion)
    fn upstream_context(
        &self,
        prepared: &PreparedPrompt,
        name: &str,
        completed: &str,
    ) -> Result<Option<String>, Vec<ArgumentError>> {
        let context = self.request.params.members.get("context").unwrap_or("{}");
        let given = edit::get(context, "arguments").unwrap_or("{}");
        let upstream_arguments = prepared.arguments(given)?;
        // A default is for requests without the argument. Here the client asks for its values.
        let upstream_arguments = match edit::get(given, name) {
            Some(_) => upstream_arguments,
            None => edit::remove(&upstream_arguments, completed)
                .into_owned()
                .into(),
        };
        if upstream_arguments == "{}" && !self.request.params.members.contains("context") {
            return Ok(None);
        }
        Ok(Some(
            edit::set(context, "arguments", &upstream_arguments).into_owned(),
        ))
    }
}
