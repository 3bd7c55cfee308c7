//! What the operator's rules say of a client, and after them those for known clients.

use std::borrow::Cow;
use std::sync::Arc;

use globset::{Glob, GlobBuilder, GlobMatcher};
use http::HeaderName;
use mcp_vary::feature::Features;
use mcp_vary::json::Members;
use mcp_vary::variant::VariantId;
use mcp_vary_base::memo::Memo;
use mcp_vary_view::{Dialect, ResultFields, Style};
use mcp_vary_wire::client_name::ClientName;

use crate::selection::known_clients::KNOWN_CLIENTS;
use crate::selection::variant_selection::{SelectionConfig, VariantRequest};

/// A rule: what clients get that look like this.
///
/// A client meets it when everything that it says of clients is so. Of what it says they get, only that counts of
/// which no rule before it says anything that the client meets, too. Clients choose their name themselves: a rule is a
/// convenience and protects nothing.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ClientRule {
    /// What `clientInfo.name` must look like.
    pub name: Option<ClientPattern>,
    /// What `clientInfo.version` must look like.
    pub version: Option<ClientPattern>,
    /// What headers of the request must look like; clients on stdio have none.
    pub headers: Vec<(HeaderName, ClientPattern)>,
    /// The variant that they get when they name none.
    pub variant: Option<VariantId>,
    /// Which field of a tool's result they get, unless their variant gives them one.
    pub result: Option<ResultFields>,
    /// What the schemas of tools may say, unless their variant says it; `Some(None)` is anything.
    pub dialect: Option<Option<Dialect>>,
    /// What those of them are taken to have declared that declare no features, unless their variant says it.
    pub features: Option<Arc<Features>>,
    /// Where JSON goes that they ask for as agents.
    pub json_content: Option<JsonContent>,
    /// Whether a text that is one JSON document becomes a structured value for them.
    pub lift_json_text: Option<bool>,
}

/// Where JSON goes for agents that ask for it (`agent`, `format=json`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum JsonContent {
    /// Into `structuredContent` alone.
    #[default]
    Strict,
    /// Into `content` as text, too: clients exist that read one field only.
    Both,
}

impl ClientRule {
    /// A rule for all clients: they get `variant`.
    #[must_use]
    pub fn new(variant: VariantId) -> Self {
        Self {
            variant: Some(variant),
            ..Self::default()
        }
    }

    /// Only for clients that are called so.
    #[must_use]
    pub fn with_name(mut self, pattern: ClientPattern) -> Self {
        self.name = Some(pattern);
        self
    }

    /// Only for clients of these versions.
    #[must_use]
    pub fn with_version(mut self, pattern: ClientPattern) -> Self {
        self.version = Some(pattern);
        self
    }

    /// Only for clients that send this header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, pattern: ClientPattern) -> Self {
        self.headers.push((name, pattern));
        self
    }

    /// Whether it says anything beside the variant.
    const fn changes_presentation(&self) -> bool {
        self.result.is_some()
            || self.dialect.is_some()
            || self.features.is_some()
            || self.json_content.is_some()
            || self.lift_json_text.is_some()
    }
}

/// A glob on what clients say of themselves, upper and lower case being the same; where variants select items it is
/// [`mcp_vary_view::Pattern`], to which case counts, since two tools may differ in nothing else.
///
/// `*` stands for anything, `?` for one character, `{a,b}` for one of several, `[a-z]` for a range.
///
/// # Examples
///
/// ```
/// use mcp_vary_catalog::selection::rules::ClientPattern;
///
/// let pattern = ClientPattern::new("claude*")?;
/// assert!(pattern.matches("claude-code"));
/// // Case matters to clients, not to people who write rules about them.
/// assert!(pattern.matches("Claude Desktop"));
/// assert!(ClientPattern::new("{a,b").is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClientPattern(GlobMatcher);

impl ClientPattern {
    /// Reads a glob.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn new(glob: &str) -> Result<Self, String> {
        let built: Result<Glob, _> = GlobBuilder::new(glob)
            .case_insensitive(true)
            .literal_separator(false)
            .build();
        let built = built.map_err(|error| error.kind().to_string())?;
        Ok(Self(built.compile_matcher()))
    }

    /// Whether all of `text` looks like this.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// How rules have a client shown what its variant shows.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Presentation {
    single_field: Option<SingleField>,
    dialect: Option<Dialect>,
}

/// The one field of a result that a rule leaves.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum SingleField {
    Content,
    Structured,
}

impl Presentation {
    fn new(result: Option<ResultFields>, dialect: Option<Dialect>) -> Self {
        let single_field = match result {
            None | Some(ResultFields::Both) => None,
            Some(ResultFields::Content) => Some(SingleField::Content),
            Some(ResultFields::Structured) => Some(SingleField::Structured),
        };
        Self {
            single_field,
            dialect,
        }
    }

    /// The style of a variant in this manner: what the variant says itself stays.
    pub fn apply(self, mut style: Style) -> Style {
        style.dialect = style.dialect.or(self.dialect);
        style.result = match (style.result, self.single_field) {
            (ResultFields::Both, Some(SingleField::Content)) => ResultFields::Content,
            (ResultFields::Both, Some(SingleField::Structured)) => ResultFields::Structured,
            (own, _) => own,
        };
        style
    }
}

/// What all rules together say of a client.
#[derive(Clone, Debug, Default)]
pub struct RuleOutcome {
    /// The variant of a client that names none.
    pub variant: Option<VariantId>,
    /// How the variant is presented to the client.
    pub presentation: Presentation,
    /// The features of a client that declares none.
    pub features: Option<Arc<Features>>,
    /// Which JSON the client gets.
    pub json: JsonRule,
}

/// What rules say of the JSON that a client gets, as far as they say anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonRule {
    /// Where JSON goes for agents that ask for it.
    pub content: Option<JsonContent>,
    /// Whether a text that is one JSON document becomes a structured value.
    pub lift: Option<bool>,
}

/// The rules that apply: the operator's, then those for known clients if they are on.
#[derive(Debug)]
pub struct ClientRules {
    all: Vec<ClientRule>,
    /// Whether one of them says more than a variant.
    has_presentation_rules: bool,
    /// For each `clientInfo`, the rules whose name and version it matches. A client sends the same one each time.
    matched: Memo<Vec<usize>>,
}

/// Bytes for what is remembered of clients' names, in each of two generations; some hundred clients.
const CACHE_BYTES: usize = 1 << 20;

impl ClientRules {
    /// The rules of a configuration.
    pub fn new(choosing: &SelectionConfig) -> Self {
        let known = KNOWN_CLIENTS.iter().filter(|_| choosing.known_clients);
        let known = known.map(|client| client.rule());
        let all: Vec<_> = choosing.rules.iter().cloned().chain(known).collect();
        Self {
            has_presentation_rules: all.iter().any(ClientRule::changes_presentation),
            all,
            matched: Memo::new(CACHE_BYTES),
        }
    }

    /// Whether all clients are served alike, whatever they call themselves.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The features of all rules that have some.
    pub fn features(&self) -> impl Iterator<Item = &Features> {
        self.all.iter().filter_map(|rule| rule.features.as_deref())
    }

    /// Every manner that they may ask for, but for that of the variants themselves.
    pub fn presentations(&self) -> Vec<Presentation> {
        // A rule adds to what those before it left open, so that a client may meet any of them and not the others.
        let mut found = vec![(None, None)];
        for rule in &self.all {
            for (result, dialect) in found.clone() {
                let both = (result.or(rule.result), dialect.or(rule.dialect));
                if !found.contains(&both) {
                    found.push(both);
                }
            }
        }
        let manners = found.into_iter();
        let manners = manners.map(|(result, dialect)| Presentation::new(result, dialect.flatten()));
        let mut manners: Vec<_> = manners
            .filter(|it| *it != Presentation::default())
            .collect();
        manners.sort_unstable();
        manners.dedup();
        manners
    }

    /// What they say of a client; `info` is its `clientInfo`, JSON text.
    pub fn outcome(&self, info: Option<&str>, told: &VariantRequest) -> RuleOutcome {
        if self.all.is_empty() {
            return RuleOutcome::default();
        }
        let met = self
            .matched
            .get_or_read(info.unwrap_or("{}"), |info| self.matching(info));
        let met = met.iter().map(|at| &self.all[*at]);
        combine(met.filter(|rule| told.matches_headers(rule)))
    }

    /// What they say of the client of a session beside its variant, which was chosen when the session began.
    pub fn session_outcome(&self, client: &ClientName, told: &VariantRequest) -> RuleOutcome {
        if !self.has_presentation_rules {
            return RuleOutcome::default();
        }
        let info = serde_json::to_string(client).map_or(Cow::Borrowed("{}"), Cow::Owned);
        self.outcome(Some(&info), told)
    }

    /// The rules whose name and version a client meets, headers aside.
    fn matching(&self, info: &str) -> Vec<usize> {
        let info = Members::parse(info).unwrap_or_default();
        let says = |key: &str, pattern: &Option<ClientPattern>| match pattern {
            Some(pattern) => info.get_str(key).is_some_and(|said| pattern.matches(&said)),
            None => true,
        };
        let meets = |rule: &ClientRule| says("name", &rule.name) && says("version", &rule.version);
        let rules = self.all.iter().enumerate();
        let met = rules.filter(|(_, rule)| meets(rule));
        met.map(|(at, _)| at).collect()
    }
}

/// What rules say together, the first of them first.
fn combine<'a>(rules: impl Iterator<Item = &'a ClientRule>) -> RuleOutcome {
    let (mut variant, mut features) = (None, None);
    let (mut result, mut dialect) = (None, None);
    let mut json = JsonRule::default();
    for rule in rules {
        variant = variant.or(rule.variant.as_ref());
        features = features.or(rule.features.as_ref());
        result = result.or(rule.result);
        dialect = dialect.or(rule.dialect);
        json.content = json.content.or(rule.json_content);
        json.lift = json.lift.or(rule.lift_json_text);
    }
    RuleOutcome {
        json,
        variant: variant.cloned(),
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
