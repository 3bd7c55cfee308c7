//! Applies the operator's rules to resources, and renders JSON that no rule is about.

use mcp_vary::feature::{Features, Format};
use mcp_vary::json::{Members, elements};
use mcp_vary::predicate::Predicate;
use mcp_vary::shape::{
    MediaType, Rendering, Report, Representation, Representations, Shaped, resource_result,
};
use mcp_vary::variant::VariantId;
use mcp_vary_view::{Candidate, Selection, UriMap};

use crate::failures::RuleFailures;
use crate::template::{Scope, Template};
use crate::variant_scope::VariantScope;

/// A rule of the operator for resources.
#[derive(Debug)]
pub struct ResourceRule {
    /// The resources that the rule applies to, by URI.
    pub uris: Selection,
    /// The variants that the rule applies in.
    pub variants: VariantScope,
    /// The condition on the client, independent of the format that it asks for. Without a condition, the rule applies
    /// to clients that ask for its format.
    pub when: Option<Predicate>,
    /// Whether all clients receive the format, those that declared no features, too.
    pub applies_to_all: bool,
    /// The format that the client receives.
    pub format: ResourceFormat,
    /// How often the rule failed.
    pub failures: RuleFailures,
}

/// The format that clients receive a resource in.
#[derive(Debug)]
pub enum ResourceFormat {
    /// As the server returns it.
    AsServed,
    /// JSON, rendered as text.
    Rendered(Rendering),
    /// Rendered with the operator's template.
    Template(Template, MediaType),
}

/// Applies `rules` to the result of `resources/read` of the server named `server` in `variant`, for a client with
/// `features`. The result has the URIs of a view; rules match the server's own URIs.
///
/// A resource whose media type is JSON is rendered for clients that ask for markdown or text, unless a rule gives them
/// something else. The rendering has every key and every scalar of the JSON.
pub fn apply_resource_rules(
    rules: &[ResourceRule],
    variant: &VariantId,
    (server, uris): (&str, &UriMap),
    result: &str,
    features: &Features,
    report: Option<Report<'_>>,
) -> Shaped {
    let negotiates = !features.is_empty();
    let applies = |rule: &&ResourceRule| {
        (negotiates || rule.applies_to_all) && rule.variants.contains(variant)
    };
    let applied: Vec<_> = rules.iter().filter(applies).collect();
    if applied.is_empty() && !negotiates {
        return Shaped::Unchanged;
    }
    let known = representations(&applied, (server, uris), result);
    let of = |uri: &str| {
        let of_uri = known.iter().find(|(known, _)| known == uri);
        of_uri.map(|(_, all)| all)
    };
    resource_result(result, features, of, report)
}

/// Whether one of `rules` applies to the resource with the server's URI `upstream_uri`.
pub fn any_rule_matches(rules: &[ResourceRule], server: &str, upstream_uri: &str) -> bool {
    let candidate = Candidate {
        name: upstream_uri,
        upstream_name: upstream_uri,
        server,
        hints: None,
    };
    let selects = |rule: &ResourceRule| rule.uris.selects_resource(candidate);
    rules.iter().any(selects)
}

/// Whether one of `rules` applies to one of the contents of the server's result.
pub fn any_rule_matches_contents(rules: &[ResourceRule], server: &str, result: &str) -> bool {
    let result = Members::parse(result).unwrap_or_default();
    let contents = elements(result.get("contents").unwrap_or("[]")).unwrap_or_default();
    contents.into_iter().any(|content| {
        let content = Members::parse(content).unwrap_or_default();
        let uri = content.get_str("uri");
        uri.is_some_and(|uri| any_rule_matches(rules, server, &uri))
    })
}

/// Whether one of the contents of the server's result has a JSON media type, so that it is rendered for some clients.
pub fn has_json_contents(result: &str) -> bool {
    let result = Members::parse(result).unwrap_or_default();
    let contents = elements(result.get("contents").unwrap_or("[]")).unwrap_or_default();
    let mut parsed = contents
        .into_iter()
        .filter_map(|content| Members::parse(content).ok());
    parsed.any(|content| is_json(&content))
}

/// Whether the media type of a content is JSON. A content without a media type stays as it is.
fn is_json(content: &Members<'_>) -> bool {
    let declared = content.get_str("mimeType");
    let media_type = declared.and_then(|text| text.parse::<MediaType>().ok());
    media_type.and_then(|media_type| media_type.format()) == Some(Format::Json)
}

/// The representations of JSON: those of rules, and a rendering in each other format.
fn with_renderings(of_rules: Representations) -> Representations {
    let rendered = [Rendering::Markdown, Rendering::Text];
    rendered.into_iter().fold(of_rules, |all, rendering| {
        let rendering = Representation::Rendered(rendering);
        all.clone().with(rendering).unwrap_or(all)
    })
}

/// The representations that `rules` give each of the contents.
fn representations(
    rules: &[&ResourceRule],
    (server, uris): (&str, &UriMap),
    result: &str,
) -> Vec<(String, Representations)> {
    let result = Members::parse(result).unwrap_or_default();
    let contents = result.get("contents").unwrap_or("[]");
    let contents = elements(contents).unwrap_or_default();
    let known = contents.into_iter().filter_map(|content| {
        let content = Members::parse(content).ok()?;
        let uri = content.get_str("uri")?;
        let text = content.get_str("text")?;
        let upstream_uri = uris
            .to_upstream(&uri)
            .unwrap_or_else(|| uri.as_str().into());
        let candidate = Candidate {
            name: &upstream_uri,
            upstream_name: &upstream_uri,
            server,
            hints: None,
        };
        let mut all = Representations::default();
        let matching = rules
            .iter()
            .filter(|rule| rule.uris.selects_resource(candidate));
        // What a template that failed was for stays as served.
        let mut is_rendered = is_json(&content);
        for rule in matching {
            let Some(one) = rule.representation(&uri, &text, server) else {
                is_rendered = false;
                continue;
            };
            all = match &rule.when {
                when if rule.applies_to_all => {
                    all.with_for_all(when.clone().unwrap_or_default(), one)
                }
                Some(when) => all.with_under(when.clone(), one),
                // If two rules give the same format, the first one counts.
                None => all.clone().with(one).unwrap_or(all),
            };
        }
        Some((
            uri,
            if is_rendered {
                with_renderings(all)
            } else {
                all
            },
        ))
    });
    known.collect()
}

impl ResourceRule {
    fn representation(&self, uri: &str, text: &str, server: &str) -> Option<Representation> {
        match &self.format {
            ResourceFormat::AsServed => Some(Representation::AsServed),
            ResourceFormat::Rendered(rendering) => Some(Representation::Rendered(*rendering)),
            ResourceFormat::Template(template, media_type) => {
                let scope =
                    |value| Scope::new(value, text, "{}", &[("uri", uri), ("server", server)]);
                let built = scope(text).or_else(|_| scope("null"));
                let result = built.and_then(|scope| template.render(&scope));
                let rendered =
                    result.inspect_err(|why| self.failures.record(server, uri, "template", why));
                Some(Representation::Text {
                    media_type: media_type.clone(),
                    text: rendered.ok()?,
                })
            }
        }
    }
}
