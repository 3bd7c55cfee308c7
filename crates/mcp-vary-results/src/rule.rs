//! Rules that transform the results of tools: for which tools, for which clients, and how.

use std::sync::Arc;

use mcp_vary::feature::{Features, Format, Verbosity};
use mcp_vary::json::Json;
use mcp_vary::predicate::{Predicate, choose};
use mcp_vary::shape::{Alternative, Bounds, ReadableResult, ToolOutput};
use mcp_vary::variant::VariantId;
use mcp_vary_view::{Candidate, Selection};

use crate::call_context::CallContext;
use crate::declared_output::DeclaredOutput;
use crate::failures::RuleFailures;
use crate::projection::Projection;
use crate::template::{Scope, Template};
use crate::variant_scope::VariantScope;

/// A rule of the operator for results.
#[derive(Debug)]
pub struct ResultRule {
    /// The tools that the rule applies to.
    pub tools: Selection,
    /// The variants that the rule applies in.
    pub variants: VariantScope,
    /// The condition on the client.
    pub when: Predicate,
    /// Whether the rule also applies to clients that declared no features.
    pub applies_to_all: bool,
    /// What the rule does with a result.
    pub transform: Arc<ResultTransform>,
    /// The value that the tools have instead of the server's, for all clients. The other rules start from it.
    pub output: Option<Arc<DeclaredOutput>>,
}

impl ResultRule {
    /// Whether the rule changes what tools list in `variant`.
    pub fn declares_output_in(&self, variant: &VariantId) -> bool {
        self.output.is_some() && self.variants.contains(variant)
    }
}

/// How a result is transformed.
#[derive(Debug, Default)]
pub struct ResultTransform {
    /// The filter that computes the new value.
    pub projection: Option<Projection>,
    /// The template for clients that read markdown.
    pub markdown: Option<Template>,
    /// The template for clients that read plain text.
    pub text: Option<Template>,
    /// Templates for reasoning hints, for clients that support sampling. Each template gives one hint.
    pub hints: Vec<Template>,
    /// The property that the hints go under.
    pub hints_property: Option<String>,
    /// The limits on how much of a result clients receive.
    pub bounds: Bounds,
    /// The verbosity that the rule's condition requires.
    pub verbosity: Option<Verbosity>,
    /// How often the rule failed.
    pub failures: RuleFailures,
}

/// A result after a transformation.
#[derive(Debug)]
pub struct TransformedResult {
    /// What the client receives instead of the result.
    pub alternative: Alternative,
    /// The transformed value, if the result has one.
    pub value: Option<String>,
    /// The text that a template rendered from the value.
    pub rendered_text: Option<String>,
    /// The text that the server wrote.
    original_text: String,
}

/// The rules that apply to one tool in one variant.
#[derive(Debug)]
pub struct ToolResultRules {
    /// For clients that declared features.
    negotiated: Vec<(Predicate, Arc<ResultTransform>)>,
    /// For clients that declared none.
    undeclared: Vec<(Predicate, Arc<ResultTransform>)>,
    /// The value that the tool has instead of the server's.
    output: Option<Arc<DeclaredOutput>>,
}

impl ToolResultRules {
    /// Selects the rules that apply to `tool` in `variant`. `None` if there are none.
    pub fn new(
        rules: &[ResultRule],
        tool: Candidate<'_>,
        variant: &VariantId,
    ) -> Option<Arc<Self>> {
        let of_variant = rules.iter().filter(|rule| rule.variants.contains(variant));
        let of_tool = of_variant.filter(|rule| rule.tools.selects(tool));
        let mut outputs = of_tool.clone().filter_map(|rule| rule.output.as_ref());
        let output = outputs.next().map(Arc::clone);
        let about = of_tool.filter(|rule| rule.output.is_none());
        let of = |rule: &ResultRule| (rule.when.clone(), Arc::clone(&rule.transform));
        let negotiated: Vec<_> = about.clone().map(of).collect();
        let others = about.filter(|rule| rule.applies_to_all).map(of).collect();
        (!negotiated.is_empty() || output.is_some()).then(|| {
            Arc::new(Self {
                negotiated,
                undeclared: others,
                output,
            })
        })
    }

    /// The value that the tool has instead of the server's.
    pub fn output(&self) -> Option<&Arc<DeclaredOutput>> {
        self.output.as_ref()
    }

    /// The transformation of the tool's results for a client with `features`.
    pub fn choose(&self, features: Option<&Features>) -> Option<Arc<ResultTransform>> {
        let chosen = match features.filter(|features| !features.is_empty()) {
            Some(features) => choose(&self.negotiated, features),
            None => choose(&self.undeclared, &Features::default()),
        };
        chosen.map(Arc::clone)
    }
}

impl ResultTransform {
    /// Transforms `result`. Returns `None` if the transformation fails. A failure is logged and counted, and the client
    /// receives the original result.
    pub fn apply(
        &self,
        result: &ReadableResult<'_>,
        lift: bool,
        called: &CallContext,
        features: &Features,
    ) -> Option<TransformedResult> {
        let output = ToolOutput::of(result, lift);
        match self.try_apply(&output, called, features) {
            Ok(transformed) => Some(transformed),
            Err((part, why)) => {
                let CallContext { name, server, .. } = called;
                self.failures.record(server, name, part, &why);
                None
            }
        }
    }

    fn try_apply(
        &self,
        output: &ToolOutput,
        called: &CallContext,
        features: &Features,
    ) -> Result<TransformedResult, (&'static str, String)> {
        let mut alternative = Alternative::default();
        let mut value = output.value.clone();
        let projected = self.projection.as_ref().zip(output.value.as_ref());
        if let Some((projection, original)) = projected {
            let projected = projection.apply(original).map_err(|why| ("project", why))?;
            alternative = alternative.with_value(projected.as_str());
            value = Some(projected);
        }
        let mut rendered_text = None;
        let hints: &[Template] = if features.sampling() {
            &self.hints
        } else {
            &[]
        };
        let (markdown, text) = self.templates(features);
        if markdown.is_some() || text.is_some() || !hints.is_empty() {
            let json = value.as_deref().unwrap_or("null");
            let scope = scope(json, &output.text, called).map_err(|why| ("project", why))?;
            if let Some(template) = markdown {
                let rendered = template.render(&scope).map_err(|why| ("markdown", why))?;
                rendered_text = Some(rendered.clone());
                alternative = alternative.with_markdown(rendered);
            }
            if let Some(template) = text {
                let rendered = template.render(&scope).map_err(|why| ("text", why))?;
                rendered_text = Some(rendered.clone());
                alternative = alternative.with_text(rendered);
            }
            for template in hints {
                let hint = template.render(&scope).map_err(|why| ("hints", why))?;
                // A template that has no hint for this value renders an empty text.
                if !hint.trim().is_empty() {
                    alternative = alternative.with_hint(hint);
                }
            }
        }
        if let Some(verbosity) = self.verbosity {
            alternative = alternative.with_verbosity(verbosity);
        }
        if let Some(property) = &self.hints_property {
            alternative = alternative.with_hints_under(property);
        }
        Ok(TransformedResult {
            alternative,
            value,
            rendered_text,
            original_text: output.text.clone(),
        })
    }

    /// Renders another value with the template that was used for `transformed`. `None` if the template fails.
    pub fn render_value(
        &self,
        value: &Json<'_>,
        transformed: &TransformedResult,
        called: &CallContext,
        features: &Features,
    ) -> Option<String> {
        let (markdown, text) = self.templates(features);
        let (part, template) = match (markdown, text) {
            (Some(markdown), _) => ("markdown", markdown),
            (None, text) => ("text", text?),
        };
        let built = scope(&value.to_json(), &transformed.original_text, called);
        let rendered = built.and_then(|scope| template.render(&scope));
        let failed = |why: &String| {
            self.failures
                .record(&called.server, &called.name, part, why);
        };
        rendered.inspect_err(failed).ok()
    }

    /// The markdown and text templates for the format that the client prefers. At most one is set.
    fn templates(&self, features: &Features) -> (Option<&Template>, Option<&Template>) {
        match features.choose_format(&Format::ALL) {
            Some(Format::Json) => (None, None),
            Some(Format::Text) => (None, self.text.as_ref()),
            _ => match &self.markdown {
                Some(markdown) => (Some(markdown), None),
                None => (None, self.text.as_ref()),
            },
        }
    }
}

fn scope(value: &str, text: &str, called: &CallContext) -> Result<Scope, String> {
    let named = [("tool", &*called.name), ("server", &*called.server)];
    Scope::new(value, text, &called.arguments, &named)
}
