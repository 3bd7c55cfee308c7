//! Variants: the alternative catalogs that a server offers.
//!
//! Source: the server variants extension, "ServerVariant" and "InitializeResult".

mod date;
mod id;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::date::{Date, DateError};
pub use self::id::{MAX_ID, VariantId, VariantIdError};
use crate::ignored::for_display;

/// One variant of a server, as listed in `availableVariants`.
///
/// # Examples
///
/// ```
/// use mcp_vary::variant::{ServerVariant, Status};
///
/// let variant = ServerVariant::new("compact".parse()?, "For tight context budgets")
///     .with_hint("contextSize", "compact");
/// assert_eq!(
///     serde_json::to_string(&variant).unwrap(),
///     r#"{"id":"compact","description":"For tight context budgets","hints":{"contextSize":"compact"},"status":"stable"}"#,
/// );
///
/// // A variant without a status is stable.
/// let variant: ServerVariant = serde_json::from_str(r#"{"id": "a", "description": ""}"#).unwrap();
/// assert_eq!(variant.status, Status::Stable);
/// # Ok::<(), mcp_vary::variant::VariantIdError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerVariant {
    /// Unique among the variants of a server.
    pub id: VariantId,
    /// A description for users and for models that choose: use case, characteristics, trade-offs.
    pub description: String,
    /// Hints for ranking.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hints: BTreeMap<String, String>,
    /// Its stability.
    #[serde(default)]
    pub status: Status,
    /// How to migrate, if it is deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation_info: Option<DeprecationInfo>,
    /// Breaks ties of score and status: lower comes first. Not on the wire.
    #[serde(skip)]
    pub priority: u32,
}

impl ServerVariant {
    /// A stable variant without hints.
    #[must_use]
    pub fn new(id: VariantId, description: impl Into<String>) -> Self {
        Self {
            id,
            description: description.into(),
            hints: BTreeMap::new(),
            status: Status::Stable,
            deprecation_info: None,
            priority: 0,
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.hints.insert(key.into(), value.into());
        self
    }

    /// Sets the status.
    #[must_use]
    pub fn with_status(mut self, status: Status) -> Self {
        self.status = status;
        self
    }

    /// Deprecates the variant.
    #[must_use]
    pub fn deprecated(mut self, info: DeprecationInfo) -> Self {
        self.status = Status::Deprecated;
        self.deprecation_info = Some(info);
        self
    }

    /// Sets the priority.
    #[must_use]
    pub fn with_priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    /// The variant for a client that sees only some variants: a hidden replacement is removed.
    #[must_use]
    pub fn visible_to(&self, sees: impl Fn(&VariantId) -> bool) -> Self {
        let mut seen = self.clone();
        if let Some(info) = &mut seen.deprecation_info {
            info.replacement = info.replacement.take().filter(sees);
        }
        seen
    }
}

/// The stability of a variant.
///
/// Ordered from most to least stable.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Deserialize, Serialize,
)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the extension names these three")]
pub enum Status {
    /// For general use.
    #[default]
    Stable,
    /// May change without notice.
    Experimental,
    /// Will be removed.
    Deprecated,
}

impl Status {
    /// The value on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Experimental => "experimental",
            Self::Deprecated => "deprecated",
        }
    }
}

/// How to migrate from a deprecated variant.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeprecationInfo {
    /// Why, and how to migrate.
    pub message: String,
    /// The variant to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<VariantId>,
    /// The planned removal: an RFC 3339 date, or date and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal_date: Option<String>,
}

impl DeprecationInfo {
    /// Only a message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            replacement: None,
            removal_date: None,
        }
    }

    /// Days until the planned removal; 0 on the last day, negative after it.
    ///
    /// `None` without a valid date.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::variant::DeprecationInfo;
    ///
    /// let mut info = DeprecationInfo::new("Use v2.");
    /// let today = "2026-12-30".parse()?;
    /// assert_eq!(info.days_left(today), None);
    /// info.removal_date = Some("2027-01-02".to_owned());
    /// assert_eq!(info.days_left(today), Some(3));
    ///
    /// // A variant is still served after the date.
    /// info.removal_date = Some("2026-12-29T23:59:59Z".to_owned());
    /// assert_eq!(info.days_left(today), Some(-1));
    /// # Ok::<(), mcp_vary::variant::DateError>(())
    /// ```
    #[must_use]
    pub fn days_left(&self, today: Date) -> Option<i64> {
        let removal: Date = self.removal_date.as_ref()?.parse().ok()?;
        Some(removal.days_since(today))
    }
}

/// The validated variants of a server.
///
/// # Properties
///
/// In the order of declaration; identifiers are unique; at least one is stable; every replacement is another variant
/// of the list; every date is valid.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Variants {
    all: Vec<ServerVariant>,
}

impl Variants {
    /// Validates `declared`.
    ///
    /// `today` only decides whether a date is past, which is a warning: "servers SHOULD continue to support the
    /// variant until that date", and the operator decides what happens then.
    ///
    /// # Errors
    ///
    /// All problems, not only the first.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::variant::{Date, ServerVariant, Status, Variants};
    ///
    /// let today: Date = "2026-11-20".parse()?;
    /// let a = ServerVariant::new("a".parse()?, "").with_status(Status::Experimental);
    /// let problems = Variants::new(vec![a.clone(), a], today).unwrap_err();
    /// assert_eq!(
    ///     problems.to_string(),
    ///     "variant `a` is declared twice; rename one; \
    ///      no variant is stable; the default must be: mark one as stable",
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        declared: Vec<ServerVariant>,
        today: Date,
    ) -> Result<(Self, Vec<Warning>), VariantDiagnostics> {
        let (mut mistakes, mut warnings) = (Vec::new(), Vec::new());
        let mut ids = BTreeSet::new();
        for variant in &declared {
            if !ids.insert(&variant.id) {
                mistakes.push(VariantDiagnostic::Twice(variant.id.clone()));
            }
        }
        if !declared.iter().any(|v| v.status == Status::Stable) {
            mistakes.push(VariantDiagnostic::NoneStable);
        }
        for variant in &declared {
            if let Some(info) = &variant.deprecation_info {
                check_info(variant, info, &ids, today, &mut mistakes, &mut warnings);
            }
        }
        if mistakes.is_empty() {
            Ok((Self { all: declared }, warnings))
        } else {
            Err(VariantDiagnostics(mistakes))
        }
    }

    /// Reads and validates variants from a configuration, in their wire format.
    ///
    /// # Errors
    ///
    /// All problems; an unreadable variant does not hide those of others.
    pub fn read(
        declared: &[Value],
        today: Date,
    ) -> Result<(Self, Vec<Warning>), VariantDiagnostics> {
        let mut readable = Vec::new();
        let mut mistakes = Vec::new();
        for (index, value) in declared.iter().enumerate() {
            match ServerVariant::deserialize(value) {
                Ok(variant) => readable.push(variant),
                Err(error) => {
                    mistakes.push(VariantDiagnostic::Unreadable(index, error.to_string()))
                }
            }
        }
        match Self::new(readable, today) {
            Ok(checked) if mistakes.is_empty() => Ok(checked),
            Ok(_) => Err(VariantDiagnostics(mistakes)),
            Err(more) => {
                mistakes.extend(more.0);
                Err(VariantDiagnostics(mistakes))
            }
        }
    }

    /// The variant `id`.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&ServerVariant> {
        self.all.iter().find(|variant| variant.id == *id)
    }

    /// The variants, in the order of declaration.
    pub fn iter(&self) -> std::slice::Iter<'_, ServerVariant> {
        self.all.iter()
    }

    /// The variants, in the order of declaration.
    pub fn as_slice(&self) -> &[ServerVariant] {
        &self.all
    }
}

impl<'a> IntoIterator for &'a Variants {
    type Item = &'a ServerVariant;
    type IntoIter = std::slice::Iter<'a, ServerVariant>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

fn check_info(
    variant: &ServerVariant,
    info: &DeprecationInfo,
    ids: &BTreeSet<&VariantId>,
    today: Date,
    mistakes: &mut Vec<VariantDiagnostic>,
    warnings: &mut Vec<Warning>,
) {
    let id = || variant.id.clone();
    if variant.status != Status::Deprecated {
        warnings.push(Warning::NotDeprecated(id()));
    }
    match &info.replacement {
        Some(other) if *other == variant.id => {
            mistakes.push(VariantDiagnostic::ReplacesItself(id()))
        }
        Some(other) if !ids.contains(other) => {
            mistakes.push(VariantDiagnostic::UnknownReplacement(id(), other.clone()));
        }
        _ => {}
    }
    match info
        .removal_date
        .as_deref()
        .map(|text| (text, text.parse()))
    {
        None => {}
        Some((_, Ok(date))) if date < today => warnings.push(Warning::PastDate(id(), date)),
        Some((_, Ok(_))) => {}
        Some((text, Err(_))) => mistakes.push(VariantDiagnostic::Date(id(), text.to_owned())),
    }
}

/// All problems of a list of variants.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VariantDiagnostics(Vec<VariantDiagnostic>);

impl VariantDiagnostics {
    /// The problems; at least one.
    pub fn as_slice(&self) -> &[VariantDiagnostic] {
        &self.0
    }
}

impl fmt::Display for VariantDiagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, mistake) in self.0.iter().enumerate() {
            let separator = if at > 0 { "; " } else { "" };
            write!(f, "{separator}{mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for VariantDiagnostics {}

/// One problem of a list of variants.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum VariantDiagnostic {
    /// The value at this index is not a variant.
    #[error("variant number {} cannot be read: {}", .0 + 1, .1)]
    Unreadable(usize, String),
    /// The identifier is not unique.
    #[error("variant `{}` is declared twice; rename one", for_display(.0.as_str()))]
    Twice(VariantId),
    /// No variant can be the default.
    #[error("no variant is stable; the default must be: mark one as stable")]
    NoneStable,
    /// The replacement is the variant itself.
    #[error("variant `{}` names itself as its replacement; name another", for_display(.0.as_str()))]
    ReplacesItself(VariantId),
    /// The replacement does not exist.
    #[error("variant `{}` names the replacement `{}`, which is not declared", for_display(.0.as_str()), for_display(.1.as_str()))]
    UnknownReplacement(VariantId, VariantId),
    /// The removal date cannot be read.
    #[error("variant `{}` has the removal date `{}`; write it as 2027-01-31", for_display(.0.as_str()), for_display(.1))]
    Date(VariantId, String),
}

/// A setting that is allowed, but probably a mistake.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// The removal date is past; the variant is still served.
    #[error("variant `{}` was to be removed on {}; it is still served", for_display(.0.as_str()), .1)]
    PastDate(VariantId, Date),
    /// There is deprecation information, but the status is not `deprecated`.
    #[error("variant `{}` has deprecation information and is not deprecated", for_display(.0.as_str()))]
    NotDeprecated(VariantId),
}

/// The settings with which a server offers `variants`, in this order.
///
/// `None` without variants: "Servers SHOULD omit the field rather than returning an empty array", and the whole key
/// would be empty. `moreVariantsAvailable` is written only if true.
///
/// ```
/// use mcp_vary::variant::{ServerVariant, to_settings};
/// use serde_json::json;
///
/// let compact = ServerVariant::new("compact".parse()?, "short");
/// let offered = json!([{"id": "compact", "description": "short", "status": "stable"}]);
/// assert_eq!(to_settings([&compact], false), Some(json!({"availableVariants": offered})));
/// assert_eq!(to_settings([], true), None);
/// # Ok::<(), mcp_vary::variant::VariantIdError>(())
/// ```
#[must_use]
pub fn to_settings<'a>(
    variants: impl IntoIterator<Item = &'a ServerVariant>,
    more: bool,
) -> Option<Value> {
    let offered: Vec<_> = variants.into_iter().collect();
    if offered.is_empty() {
        return None;
    }
    let mut settings = json!({ "availableVariants": offered });
    if more {
        settings["moreVariantsAvailable"] = Value::Bool(true);
    }
    Some(settings)
}

#[cfg(test)]
mod tests;
