//! Which variant a client gets that names none in `_meta`.
//!
//! First that applies: the address (`/mcp/v/<id>`), the header `MCP-Server-Variant`, the operator's rules for
//! clients, the ranking by hints. What applies becomes the first of the offers; a selector in `_meta` still
//! chooses among all of them.

use std::sync::Arc;

use globset::{Glob, GlobBuilder, GlobMatcher};
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use mcp_vary::error::Error;
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::json::Members;
use mcp_vary::variant::{Status, VariantId};
use serde_json::Value;

use crate::params::Params;
use crate::reply::Failure;
use crate::revision::Era;
use crate::setup::Setup;

/// The path of the MCP endpoint.
pub(crate) const ENDPOINT: &str = "/mcp";
const VARIANT_PATH: &str = "/mcp/v/";
const HEADER: HeaderName = HeaderName::from_static("mcp-server-variant");

/// How the default variant of a client is chosen, beside its hints.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Choosing {
    /// The first rule that a client meets decides.
    pub rules: Vec<ClientRule>,
    /// The variant of clients that no rule is about; `None` leaves it to their hints.
    pub default: Option<VariantId>,
    /// Whether a header `MCP-Server-Variant` that contradicts `_meta` or the address is an error (SV-18).
    pub strict_header: bool,
}

/// An operator's rule: which variant clients get that look like this.
///
/// A client meets it when everything that it says of clients is so. Clients choose their name themselves:
/// a rule is a convenience and protects nothing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientRule {
    /// What `clientInfo.name` must look like.
    pub name: Option<Pattern>,
    /// What `clientInfo.version` must look like.
    pub version: Option<Pattern>,
    /// What headers of the request must look like; clients on stdio have none.
    pub headers: Vec<(HeaderName, Pattern)>,
    /// What they get.
    pub variant: VariantId,
}

impl ClientRule {
    /// A rule for all clients.
    #[must_use]
    pub const fn new(variant: VariantId) -> Self {
        Self {
            name: None,
            version: None,
            headers: Vec::new(),
            variant,
        }
    }

    /// Only for clients that are called so.
    #[must_use]
    pub fn with_name(mut self, pattern: Pattern) -> Self {
        self.name = Some(pattern);
        self
    }

    /// Only for clients of these versions.
    #[must_use]
    pub fn with_version(mut self, pattern: Pattern) -> Self {
        self.version = Some(pattern);
        self
    }

    /// Only for clients that send this header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, pattern: Pattern) -> Self {
        self.headers.push((name, pattern));
        self
    }
}

/// A glob on what clients say of themselves, upper and lower case being the same; where variants select items it is
/// [`mcp_vary::view::Pattern`], to which case counts, since two tools may differ in nothing else.
///
/// `*` stands for anything, `?` for one character, `{a,b}` for one of several, `[a-z]` for a range.
///
/// # Examples
///
/// ```
/// use mcp_vary_gateway::Pattern;
///
/// let pattern = Pattern::new("claude*")?;
/// assert!(pattern.matches("claude-code"));
/// // Case matters to clients, not to people who write rules about them.
/// assert!(pattern.matches("Claude Desktop"));
/// assert!(Pattern::new("{a,b").is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pattern(GlobMatcher);

impl Pattern {
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

/// What a request says of the variant outside of its message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    path: Option<String>,
    header: Option<String>,
    headers: Option<HeaderMap>,
}

impl Told {
    /// Reads the head of a request to the endpoint; `None` when its path is another.
    pub(crate) fn read(head: &Parts, gateway: &Setup) -> Option<Self> {
        let path = match head.uri.path() {
            ENDPOINT => None,
            path => Some(variant_in(path)?),
        };
        // Said twice it is a list, as any header, and so names no variant.
        let header = head.headers.get_all(HEADER).iter();
        let header: Vec<_> = header
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        let asks_headers = |rule: &ClientRule| !rule.headers.is_empty();
        let rules = &gateway.config.choosing.rules;
        Some(Self {
            path,
            header: (!header.is_empty()).then(|| header.join(", ")),
            headers: rules.iter().any(asks_headers).then(|| head.headers.clone()),
        })
    }

    fn meets(&self, rule: &ClientRule) -> bool {
        rule.headers.iter().all(|(name, pattern)| {
            let values = self
                .headers
                .iter()
                .flat_map(|headers| headers.get_all(name));
            let mut values = values.filter_map(|value| value.to_str().ok());
            values.any(|value| pattern.matches(value))
        })
    }
}

/// The id in `/mcp/v/<id>`, its percent-encoding undone; `None` when the path is another.
fn variant_in(path: &str) -> Option<String> {
    let written = path.strip_prefix(VARIANT_PATH)?;
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'/' => return None,
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok().filter(|id| !id.is_empty())
}

impl Setup {
    /// The variants of a client, `order` by its hints, with the one in front that is chosen for it.
    ///
    /// `rule` is what the operator's rules say; those for a session were applied when it began.
    ///
    /// # Errors
    ///
    /// `-32602` when address or header name no variant; `-32020`, or `-32602` to legacy clients, when the header
    /// contradicts `_meta` or the address where that is not allowed.
    pub(crate) fn chosen(
        &self,
        order: &Arc<[usize]>,
        told: &Told,
        params: &Params<'_>,
        rule: impl FnOnce() -> Option<usize>,
    ) -> Result<Arc<[usize]>, Failure> {
        let Some(named) = told.path.as_ref().or(told.header.as_ref()) else {
            return Ok(self.with_first(order, rule()));
        };
        if !self.config.variants {
            return Err(Failure::from(&Error::VariantsNotSupported));
        }
        let index = self.variant_index(named);
        let requested = || Value::String(named.clone());
        let index = index.ok_or_else(|| self.invalid_variant(order, &requested()))?;
        self.check_header(told, params)?;
        Ok(self.with_first(order, Some(index)))
    }

    /// SV-18: `_meta` and the address win over the header, unless the operator wants them to agree.
    fn check_header(&self, told: &Told, params: &Params<'_>) -> Result<(), Failure> {
        let header = told.header.as_deref();
        let Some(header) = header.filter(|_| self.config.choosing.strict_header) else {
            return Ok(());
        };
        let path = told.path.clone().map(Value::String);
        let selector = params.meta.get(SERVER_VARIANT_META);
        let selector = selector.map(|text| serde_json::from_str(text).unwrap_or_default());
        let others = [path, selector];
        let Some(other) = others.iter().flatten().find(|other| **other != *header) else {
            return Ok(());
        };
        let era = if params.is_modern() {
            Era::Modern
        } else {
            Era::Legacy
        };
        Err(Failure::from(&Error::another_variant_in_header(
            header, other, era,
        )))
    }

    /// What the operator's rules say of a client; `info` is its `clientInfo`, JSON text.
    pub(crate) fn ruled(&self, info: Option<&str>, told: &Told) -> Option<usize> {
        let choosing = &self.config.choosing;
        let info = Members::parse(info.unwrap_or("{}")).unwrap_or_default();
        let says = |key: &str, pattern: &Option<Pattern>| match pattern {
            Some(pattern) => info.get_str(key).is_some_and(|said| pattern.matches(&said)),
            None => true,
        };
        let meets = |rule: &&ClientRule| {
            says("name", &rule.name) && says("version", &rule.version) && told.meets(rule)
        };
        let rule = choosing.rules.iter().find(meets).map(|rule| &rule.variant);
        let variant = rule.or(choosing.default.as_ref())?;
        self.variant_index(variant.as_str())
    }

    /// SV-9: names every variant that there is, those of the client's `order` first: each can be chosen.
    pub(crate) fn invalid_variant(&self, order: &[usize], requested: &Value) -> Failure {
        let rest = (0..self.variants.as_slice().len()).filter(|index| !order.contains(index));
        let visible = order.iter().copied().chain(rest);
        let visible = visible.map(|index| self.variant_id(index).clone());
        Failure::from(&Error::invalid_variant(requested, Some(visible.collect())))
    }

    /// `order` with `first` in front, no longer than may be advertised.
    ///
    /// > The first is the default. (SV-2: whatever fixes a client's default moves that variant to the front.)
    fn with_first(&self, order: &Arc<[usize]>, first: Option<usize>) -> Arc<[usize]> {
        let Some(first) = first.filter(|first| order.first() != Some(first)) else {
            return Arc::clone(order);
        };
        if order.is_empty() {
            return Arc::clone(order);
        }
        let rest = order.iter().copied().filter(|index| *index != first);
        let mut all: Vec<_> = std::iter::once(first).chain(rest).collect();
        let is_stable = |index: &usize| {
            let variant = self.variants.as_slice().get(*index);
            variant.is_some_and(|variant| variant.status == Status::Stable)
        };
        while all.len() > self.rankings.advertised().max(order.len()) {
            // Beside the default there stays a stable one, if there is one (SV-3).
            let stable = all.iter().skip(1).filter(|index| is_stable(index)).count();
            let goes = (1..all.len())
                .rev()
                .find(|at| stable > 1 || !is_stable(&all[*at]));
            all.remove(goes.unwrap_or(all.len() - 1));
        }
        all.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn names(path: &str, expected: Option<&str>) {
        assert_eq!(variant_in(path).as_deref(), expected, "{path}");
    }

    #[test]
    fn an_address_names_a_variant() {
        names("/mcp/v/compact", Some("compact"));
        names("/mcp/v/f%C3%BCr%20mich", Some("für mich"));
        names("/mcp/v/", None);
        names("/mcp/v/a/b", None);
        names("/mcp/v/%", None);
        names("/mcp/v/%zz", None);
        names("/mcp/v/%ff", None);
        names("/mcp/x", None);
    }
}
