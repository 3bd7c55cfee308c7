//! What becomes of the answer to a request, known before it is sent.

use std::sync::Arc;

use mcp_vary::feature::Features;
use mcp_vary_catalog::item::Place;
use mcp_vary_catalog::selection::rules::JsonContent;
use mcp_vary_catalog::shown::{Prompt, Tool};
use mcp_vary_results::Called;
use mcp_vary_results::result_store::{OwnTool, Owner};
use mcp_vary_results::shaper::{
    Keeping, Listener, PromptShaping, ResourceShaping, Shape, Shaping, Telling,
};
use mcp_vary_view::ResultFields;
use mcp_vary_wire::revision::Revision;

use crate::pipeline::methods::Call;

impl Call<'_> {
    /// What becomes of the results of `tool`.
    pub(crate) fn tool_shape(&self, variant: usize, tool: &Tool) -> Option<Shape> {
        let face = &self.gateway.faces.all[variant];
        let config = &self.gateway.config;
        let features = self.features(variant).cloned();
        let fields = face.style.result;
        let telling = self.telling(tool, features.as_deref());
        if features.is_none() && telling.is_none() && fields == ResultFields::Both {
            return None;
        }
        Some(Shape::Tool(Box::new(Shaping {
            features,
            report: self.client.features.is_some(),
            telling,
            keeping: Keeping {
                kept: Arc::clone(&self.gateway.lasting.kept),
                owner: Owner {
                    client: self.client.session.as_ref().map(|session| session.client),
                    tool: OwnTool {
                        server: self.server_name(tool.place.server),
                        own: Arc::clone(&tool.place.own),
                    },
                },
                reader: self.reader(variant),
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
            variant: self.active_variant(variant),
        })))
    }

    /// How the operator has the tool's results told to a client with `features`.
    fn telling(&self, tool: &Tool, features: Option<&Features>) -> Option<Telling> {
        let rules = tool.results.as_ref()?;
        let recipe = rules.choose(features.filter(|_| self.gateway.config.negotiation))?;
        let called = self.called(&tool.place);
        Some(Telling { recipe, called })
    }

    /// What becomes of resources of the server at index `server`.
    pub(crate) fn resource_shape(&self, variant: usize, server: usize) -> Option<Shape> {
        let rules = &self.gateway.config.told_resources.0;
        if rules.is_empty() {
            return None;
        }
        Some(Shape::Resource(ResourceShaping {
            rules: Arc::clone(rules),
            server: self.server_name(server),
            uris: Arc::clone(self.gateway.faces.uris(variant)),
            listener: self.listener(variant)?,
        }))
    }

    /// What becomes of `prompt`.
    pub(crate) fn prompt_shape(&self, variant: usize, prompt: &Prompt) -> Option<Shape> {
        let rules = &self.gateway.config.told_prompts.0;
        if rules.is_empty() {
            return None;
        }
        Some(Shape::Prompt(PromptShaping {
            rules: Arc::clone(rules),
            id: Arc::clone(&prompt.id),
            called: self.called(&prompt.place),
            listener: self.listener(variant)?,
        }))
    }

    /// Whom an answer is told; none when that is somebody who declared nothing.
    fn listener(&self, variant: usize) -> Option<Listener> {
        Some(Listener {
            features: Arc::clone(self.features(variant)?),
            report: self.client.features.is_some(),
            variant: self.active_variant(variant),
        })
    }

    /// What the client declared, or is taken to have declared.
    fn features(&self, variant: usize) -> Option<&Arc<Features>> {
        let own = self.gateway.faces.all[variant].features.as_ref();
        let own = own.or(self.client.presumed.as_ref());
        let own = own.filter(|_| self.gateway.config.negotiation);
        self.client.features.as_ref().or(own)
    }

    fn called(&self, place: &Place) -> Called {
        let arguments = self.asked.params.members.get("arguments");
        Called {
            name: Arc::clone(&place.own),
            server: self.server_name(place.server),
            arguments: arguments.unwrap_or("{}").to_owned(),
        }
    }

    pub(crate) fn server_name(&self, server: usize) -> Arc<str> {
        Arc::clone(&self.class.sources()[server].name)
    }
}
