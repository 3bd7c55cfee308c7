//! Applies the rules for clients: the operator's rules first, then the rules for known clients.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::feature::Features;
use mcp_vary::json::Members;
use mcp_vary::variant::VariantId;
use mcp_vary_base::memo::Memo;
use mcp_vary_view::{ArgumentCheck, Dialect, ResultFields, SchemaStyle, Style};
use mcp_vary_wire::client_name::ClientName;

use crate::selection::client_rule::{ClientPattern, ClientRule, JsonContent};
use crate::selection::known_clients::KNOWN_CLIENTS;
use crate::selection::variant_selection::{SelectionConfig, VariantRequest};

/// How rules change the presentation of a variant for a client.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Presentation {
    result: ResultFields,
    dialect: Option<Dialect>,
}

impl Presentation {
    fn new(result: Option<ResultFields>, dialect: Option<Dialect>) -> Self {
        let result = result.unwrap_or_default();
        Self { result, dialect }
    }

    /// Applies this presentation to the style of a variant. What the variant sets itself takes precedence.
    ///
    /// Models that need a dialect only give arguments that a schema lists. They get compact schemas where others get them
    /// on demand.
    pub fn apply(self, mut style: Style) -> Style {
        style.dialect = style.dialect.or(self.dialect);
        if style.dialect.is_some() && style.schema.is_on_demand() {
            style.schema = SchemaStyle::Compact;
            style.check = ArgumentCheck::Off;
        }
        if style.result == ResultFields::Both {
            style.result = self.result;
        }
        style
    }
}

/// The combined outcome of all rules for a client.
#[derive(Clone, Debug, Default)]
pub struct RuleOutcome {
    /// The variant, if the client does not name one, and the position of its rule.
    pub variant: Option<(VariantId, usize)>,
    /// How the variant is presented to the client.
    pub presentation: Presentation,
    /// The features, if the client does not declare any.
    pub features: Option<Arc<Features>>,
    /// How the client receives JSON.
    pub json: JsonRule,
}

/// How a client receives JSON, as far as rules set it.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonRule {
    /// Where JSON goes for agents that ask for it.
    pub content: Option<JsonContent>,
    /// Whether a text that is a single JSON document becomes a structured value.
    pub lift: Option<bool>,
}

/// The active rules: the operator's, then those for known clients if these are enabled.
#[derive(Debug)]
pub struct ClientRules {
    all: Vec<ClientRule>,
    /// Whether a rule sets anything except the variant.
    has_presentation_rules: bool,
    /// Caches, for each `clientInfo`, the rules whose name and version it matches. A client sends the same `clientInfo`
    /// each time.
    matched: Memo<Vec<usize>>,
}

/// Cache capacity in bytes for each of two generations; enough for a few hundred clients.
const CACHE_BYTES: usize = 1 << 20;

impl ClientRules {
    /// The rules of a configuration.
    pub fn new(config: &SelectionConfig) -> Self {
        let clients = KNOWN_CLIENTS.iter().filter(|_| config.known_clients);
        let known = clients.map(|client| client.rule());
        let all: Vec<_> = config.rules.iter().cloned().chain(known).collect();
        Self {
            has_presentation_rules: all.iter().any(ClientRule::changes_presentation),
            all,
            matched: Memo::new(CACHE_BYTES),
        }
    }

    /// Whether there are no rules, so that all clients are served alike.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The features of all rules that set features.
    pub fn features(&self) -> impl Iterator<Item = &Features> {
        self.all.iter().filter_map(|rule| rule.features.as_deref())
    }

    /// Every presentation that the rules can result in, except the variants' own.
    pub fn presentations(&self) -> Vec<Presentation> {
        // A rule fills in what earlier rules left open, and a client may match any subset of the rules.
        let mut found = vec![(None, None)];
        for rule in &self.all {
            for (result, dialect) in found.clone() {
                let both = (result.or(rule.result), dialect.or(rule.dialect));
                if !found.contains(&both) {
                    found.push(both);
                }
            }
        }
        let presentations = found.into_iter();
        let presentations =
            presentations.map(|(result, dialect)| Presentation::new(result, dialect.flatten()));
        let mut different: Vec<_> = presentations
            .filter(|presentation| *presentation != Presentation::default())
            .collect();
        different.sort_unstable();
        different.dedup();
        different
    }

    /// The outcome of the rules for a client. `info` is its `clientInfo` as JSON text.
    pub fn outcome(&self, info: Option<&str>, request: &VariantRequest) -> RuleOutcome {
        if self.all.is_empty() {
            return RuleOutcome::default();
        }
        let met = self
            .matched
            .get_or_read(info.unwrap_or("{}"), |info| self.matching(info));
        let rules = met.iter().map(|at| (*at, &self.all[*at]));
        combine(rules.filter(|(_, rule)| request.matches_headers(rule)))
    }

    /// The outcome of the rules for the client of a session. Its variant was selected when the session started.
    pub fn session_outcome(&self, client: &ClientName, request: &VariantRequest) -> RuleOutcome {
        if !self.has_presentation_rules {
            return RuleOutcome::default();
        }
        let info = serde_json::to_string(client).map_or(Cow::Borrowed("{}"), Cow::Owned);
        self.outcome(Some(&info), request)
    }

    /// The indices of the rules whose name and version match a client. Headers are checked separately.
    fn matching(&self, info: &str) -> Vec<usize> {
        let info = Members::parse(info).unwrap_or_default();
        let says = |key: &str, pattern: &Option<ClientPattern>| match pattern {
            Some(pattern) => info
                .get_str(key)
                .is_some_and(|value| pattern.matches(&value)),
            None => true,
        };
        let meets = |rule: &ClientRule| says("name", &rule.name) && says("version", &rule.version);
        let met = self.all.iter().enumerate().filter(|(_, rule)| meets(rule));
        met.map(|(at, _)| at).collect()
    }
}

/// Combines rules. For each setting, the first rule that has it decides.
fn combine<'a>(rules: impl Iterator<Item = (usize, &'a ClientRule)>) -> RuleOutcome {
    let mut variant = None;
    let mut features = None;
    let mut result = None;
    let mut dialect = None;
    let mut json = JsonRule::default();
    for (at, rule) in rules {
        variant = variant.or(rule.variant.as_ref().map(|id| (id, at)));
        features = features.or(rule.features.as_ref());
        result = result.or(rule.result);
        dialect = dialect.or(rule.dialect);
        json.content = json.content.or(rule.json_content);
        json.lift = json.lift.or(rule.lift_json_text);
    }
    RuleOutcome {
        json,
        variant: variant.map(|(id, at)| (id.clone(), at)),
        features: features.cloned(),
        presentation: Presentation::new(result, dialect.flatten()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str) -> ClientRule {
        ClientRule::default().with_name(ClientPattern::new(name).unwrap())
    }

    fn asks(
        name: &str,
        result: Option<ResultFields>,
        dialect: Option<Option<Dialect>>,
    ) -> ClientRule {
        ClientRule {
            result,
            dialect,
            ..rule(name)
        }
    }

    fn rules(all: Vec<ClientRule>, known_clients: bool) -> ClientRules {
        ClientRules::new(&SelectionConfig {
            rules: all,
            known_clients,
            ..SelectionConfig::default()
        })
    }

    /// What the client `name` gets of a variant that says nothing itself.
    fn style(rules: &ClientRules, name: &str) -> (ResultFields, Option<Dialect>) {
        let info = format!(r#"{{"name":"{name}","version":"1"}}"#);
        let style = rules
            .outcome(Some(&info), &VariantRequest::default())
            .presentation
            .apply(Style::default());
        (style.result, style.dialect)
    }

    #[test]
    fn for_each_setting_the_first_rule_decides_that_says_something_of_it() {
        let rules = rules(
            vec![
                asks("a*", None, Some(Some(Dialect::Gemini))),
                asks(
                    "*b",
                    Some(ResultFields::Content),
                    Some(Some(Dialect::OpenaiStrict)),
                ),
                asks("*", Some(ResultFields::Structured), None),
            ],
            false,
        );
        let (gemini, strict) = (Some(Dialect::Gemini), Some(Dialect::OpenaiStrict));
        assert_eq!(style(&rules, "ab"), (ResultFields::Content, gemini));
        assert_eq!(style(&rules, "a"), (ResultFields::Structured, gemini));
        assert_eq!(style(&rules, "b"), (ResultFields::Content, strict));
        assert_eq!(style(&rules, "c"), (ResultFields::Structured, None));
        // Every manner that came out was foreseen.
        let foreseen = rules.presentations();
        for name in ["ab", "a", "b", "c"] {
            let info = format!(r#"{{"name":"{name}"}}"#);
            let manner = rules
                .outcome(Some(&info), &VariantRequest::default())
                .presentation;
            assert!(foreseen.contains(&manner), "{name}: {foreseen:?}");
        }
    }

    #[test]
    fn an_operators_rule_takes_back_what_the_table_says() {
        let off = rules(Vec::new(), false);
        assert_eq!(
            style(&off, "gemini-cli-mcp-client"),
            (ResultFields::Both, None)
        );
        assert!(off.presentations().is_empty());
        let on = rules(Vec::new(), true);
        let gemini = (ResultFields::Both, Some(Dialect::Gemini));
        assert_eq!(style(&on, "gemini-cli-mcp-client-files"), gemini);
        assert_eq!(style(&on, "claude-code").0, ResultFields::Content);
        assert_eq!(style(&on, "nobody-knows"), (ResultFields::Both, None));
        let own = vec![
            asks("gemini*", None, Some(None)),
            asks("claude-code", Some(ResultFields::Both), None),
        ];
        let own = rules(own, true);
        assert_eq!(
            style(&own, "gemini-cli-mcp-client"),
            (ResultFields::Both, None)
        );
        assert_eq!(style(&own, "claude-code"), (ResultFields::Both, None));
    }

    #[test]
    fn what_a_variant_says_itself_stays() {
        let manner = Presentation::new(Some(ResultFields::Content), Some(Dialect::Gemini));
        let own = Style {
            result: ResultFields::Structured,
            dialect: Some(Dialect::OpenaiStrict),
            ..Style::default()
        };
        assert_eq!(manner.apply(own), own);
    }

    #[test]
    fn a_dialect_gets_compact_schemas_where_others_get_them_on_demand() {
        let on_demand = Style {
            schema: SchemaStyle::OnDemand,
            check: ArgumentCheck::On,
            ..Style::default()
        };
        let compact = Style {
            schema: SchemaStyle::Compact,
            dialect: Some(Dialect::Gemini),
            ..Style::default()
        };
        let gemini = Presentation::new(None, Some(Dialect::Gemini));
        assert_eq!(gemini.apply(on_demand), compact);
        let content = Presentation::new(Some(ResultFields::Content), None);
        assert_eq!(content.apply(on_demand).schema, SchemaStyle::OnDemand);
    }

    #[test]
    fn what_clients_say_of_themselves_is_read_once() {
        let rules = rules(vec![asks("a", Some(ResultFields::Content), None)], false);
        for info in [
            r#"{"name":"a"}"#,
            r#"{"name":"a"}"#,
            r#"{"name":7}"#,
            "[",
            "{}",
        ] {
            rules.outcome(Some(info), &VariantRequest::default());
        }
        assert_eq!(rules.matched.len(), 4);
        assert_eq!(
            rules.outcome(None, &VariantRequest::default()).presentation,
            Presentation::default()
        );
    }
}
