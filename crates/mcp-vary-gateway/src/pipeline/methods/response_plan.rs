//! The shape of a response, computed before the request is sent.

use std::sync::Arc;

use mcp_vary::feature::Features;
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::selection::client_rule::JsonContent;
use mcp_vary_catalog::shown::{Prompt, Tool};
use mcp_vary_results::CallContext;
use mcp_vary_results::result_store::{ResultOwner, ToolRef};
use mcp_vary_results::shaper::{
    MatchedRule, PromptShaper, ResourceShaper, ResultShaper, ShapeTarget, Shaper, Spillover,
};
use mcp_vary_view::ResultFields;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::revision::Revision;

use crate::pipeline::methods::RequestContext;

impl RequestContext<'_> {
    /// The shape of the results of `tool`.
    pub(crate) fn tool_result_shape(&self, view: ViewIndex, tool: &Tool) -> Option<Shaper> {
        let face = self.variant_set().config(view);
        let config = &self.snapshot.config;
        let features = self.features(view).cloned();
        let fields = face.style.result;
        let telling = self.result_shape(tool, features.as_deref());
        let rules = tool.result_rules.as_ref();
        let declared = rules.and_then(|rules| rules.output());
        let is_as_served = fields == ResultFields::Both && declared.is_none();
        if features.is_none() && telling.is_none() && is_as_served {
            return None;
        }
        Some(Shaper::Tool(Box::new(ResultShaper {
            features,
            report: self.client.features.is_some(),
            declared_output: declared
                .map(|output| (Arc::clone(output), self.matched_names(&tool.item_ref))),
            matched_rule: telling,
            spillover: Spillover {
                store: Arc::clone(&self.snapshot.services.result_store),
                owner: ResultOwner {
                    client: self.storing_client(),
                    principal: self.client.principal_id(),
                    tool: ToolRef {
                        server: self.server_name(tool.item_ref.server),
                        upstream_name: Arc::clone(&tool.item_ref.upstream_name),
                    },
                },
                reader_tool: self.reader_tool_name(view),
            },
            output: tool.output.clone(),
            is_linked: self.client.revision >= Revision::LINKS,
            fields,
            tool: tool.facts,
            always_both: match self.client.json.content {
                Some(content) => content == JsonContent::Both,
                None => config.always_both,
            },
            lift_json_text: self.client.json.lift.unwrap_or(config.lift_json_text),
            era: self.client.era(),
            variant: self.active_variant(view),
        })))
    }

    /// The only client that may read what is stored of a result: its session. A principal may read it in others, too.
    fn storing_client(&self) -> Option<ClientId> {
        let principal = self.client.principal.as_ref();
        let session = self.client.session.as_ref();
        let session = session.filter(|_| principal.is_none_or(|it| it.is_anonymous()));
        session.map(|session| session.client)
    }

    /// The operator's rule for the tool's results and a client with `features`.
    fn result_shape(&self, tool: &Tool, features: Option<&Features>) -> Option<MatchedRule> {
        let rules = tool.result_rules.as_ref()?;
        let recipe = rules.choose(features.filter(|_| self.snapshot.config.negotiation))?;
        let called = self.matched_names(&tool.item_ref);
        Some(MatchedRule {
            transform: recipe,
            call: called,
        })
    }

    /// The shape of resources of `server`.
    pub(crate) fn resource_result_shape(
        &self,
        view: ViewIndex,
        server: ServerIndex,
    ) -> Option<Shaper> {
        let rules = &self.snapshot.config.resource_results.0;
        Some(Shaper::Resource(ResourceShaper {
            rules: Arc::clone(rules),
            server: self.server_name(server),
            uris: Arc::clone(self.variant_set().uris(view)),
            target: self.result_listener(view, rules.iter().any(|rule| rule.applies_to_all))?,
        }))
    }

    /// The shape of `prompt`.
    pub(crate) fn prompt_result_shape(&self, view: ViewIndex, prompt: &Prompt) -> Option<Shaper> {
        let rules = &self.snapshot.config.prompt_results.0;
        if rules.is_empty() {
            return None;
        }
        Some(Shaper::Prompt(PromptShaper {
            rules: Arc::clone(rules),
            id: Arc::clone(&prompt.id),
            call: self.matched_names(&prompt.item_ref),
            target: self.result_listener(view, rules.iter().any(|rule| rule.applies_to_all))?,
        }))
    }

    /// The client for which results are shaped; `None` if it declared nothing, unless rules are `for_all`.
    fn result_listener(&self, view: ViewIndex, for_all: bool) -> Option<ShapeTarget> {
        let features = self.features(view).cloned();
        Some(ShapeTarget {
            features: features.or_else(|| for_all.then(Arc::default))?,
            report: self.client.features.is_some(),
            variant: self.active_variant(view),
            rules_of: self.variant_set().config(view).variant.id.clone(),
        })
    }

    /// The features that the client declared, or is presumed to have.
    fn features(&self, view: ViewIndex) -> Option<&Arc<Features>> {
        let defaults = self.variant_set().config(view).features.as_ref();
        let defaults = defaults.or(self.client.presumed_features.as_ref());
        let defaults = defaults.filter(|_| self.snapshot.config.negotiation);
        self.client.features.as_ref().or(defaults)
    }

    fn matched_names(&self, place: &ItemRef) -> CallContext {
        let arguments = self.request.params.members.get("arguments");
        CallContext {
            name: Arc::clone(&place.upstream_name),
            server: self.server_name(place.server),
            arguments: arguments.unwrap_or("{}").to_owned(),
        }
    }

    /// The name of a server, which rules and limits go by.
    pub(crate) fn server_name(&self, server: ServerIndex) -> Arc<str> {
        Arc::clone(&self.class.source(server).server_name)
    }

    /// The name of the source that a request goes to: that of the server, or `<server>/<id>` for a variant that the
    /// server offers itself. Tasks and links belong to a source.
    pub(crate) fn source_name(&self, server: ServerIndex) -> Arc<str> {
        Arc::clone(&self.class.source(server).name)
    }
}
