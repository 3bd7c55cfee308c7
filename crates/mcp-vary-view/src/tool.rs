//! One tool as one view lists it, and its arguments on the way back.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use mcp_vary::ignored::shown;
use mcp_vary::json::{Json, JsonError, Members, elements, string, values};
use serde::{Deserialize, Serialize};

use super::arguments::{ArgumentOverride, Arguments};
use super::check::{Check, MOST_VALUES};
use super::derive;
use super::dialect::{Dialect, WayBack};
use super::fault::Fault;
use super::mistake::Mistake;

/// How a view shows all of its items, or one of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written out by hand")]
pub struct Style {
    /// How much of a description.
    pub description: Description,
    /// How much of an input schema.
    pub schema: SchemaStyle,
    /// What the schemas may say; anything without one.
    pub dialect: Option<Dialect>,
    /// Which field of a result its clients get.
    pub result: ResultFields,
}

/// How much of a description is listed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "every reader says what it makes of each"
)]
pub enum Description {
    /// All of it.
    #[default]
    Full,
    /// Its first sentence.
    FirstSentence,
}

/// How much of an input schema is listed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "every reader says what it makes of each"
)]
pub enum SchemaStyle {
    /// All of it.
    #[default]
    Full,
    /// What decides which arguments are accepted, without prose.
    Compact,
}

/// Which field of a tool's result a view's clients get.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "every reader says what it makes of each"
)]
pub enum ResultFields {
    /// What the server sends.
    #[default]
    Both,
    /// `content` alone; then nothing is promised of `structuredContent`.
    Content,
    /// `structuredContent`, where there is some.
    Structured,
}

impl ResultFields {
    /// Whether the view lists `outputSchema`: who reads one expects `structuredContent`.
    #[must_use]
    pub const fn lists_output_schema(self) -> bool {
        match self {
            Self::Both | Self::Structured => true,
            Self::Content => false,
        }
    }
}

/// What a view makes of one tool.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written out by hand")]
pub struct ToolOverride {
    /// What it is called.
    pub name: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its description, listed as it is whatever the style.
    pub description: Option<String>,
    /// Members of its `annotations`, set or replaced.
    pub annotations: BTreeMap<String, Json<'static>>,
    /// By the server's names.
    pub arguments: BTreeMap<String, ArgumentOverride>,
}

/// One tool as one view lists it.
///
/// # Properties
///
/// - What is not changed stays as it was written; where nothing is, [`json`](Self::json) is `None`, and
///   [`arguments`](Self::arguments) gives back what it was given.
/// - Under a [`Dialect`], arguments are checked against the server's own schema. The schema is compiled
///   with the first call.
///
/// # Examples
///
/// ```
/// use crate::{ArgumentOverride, PreparedTool, Style, ToolOverride};
/// use mcp_vary::json::Json;
///
/// let definition = r#"{"name": "search", "inputSchema": {"type": "object",
///     "properties": {"q": {"type": "string"}, "owner": {"type": "string"}}, "required": ["q", "owner"]}}"#;
/// let mut change = ToolOverride { name: Some("find".into()), ..ToolOverride::default() };
/// change.arguments.insert("q".into(), ArgumentOverride { name: Some("query".into()), ..Default::default() });
/// change.arguments.insert("owner".into(), ArgumentOverride {
///     fixed: Some(Json::String("acme".into())),
///     ..Default::default()
/// });
/// let (tool, mistakes) = PreparedTool::new(definition, &change, Style::default())?;
/// assert!(mistakes.is_empty());
/// assert_eq!(
///     tool.json(),
///     Some(r#"{"name":"find","inputSchema":{"type":"object","properties":{"query":{"type": "string"}},"required":["query"]}}"#),
/// );
/// assert_eq!(tool.arguments(r#"{"query": "é"}"#).unwrap(), r#"{"q":"é","owner":"acme"}"#);
///
/// // What is fixed is nobody's to give.
/// let faults = tool.arguments(r#"{"query": "x", "owner": "evil"}"#).unwrap_err();
/// assert_eq!(faults[0].to_string(), "there is no argument `owner`; leave it out");
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[derive(Debug)]
pub struct PreparedTool {
    own: String,
    name: String,
    /// Nothing when it is listed as the server lists it.
    json: Option<String>,
    arguments: Arguments,
    back: Option<WayBack>,
    /// The server's schema, where arguments are checked against it.
    schema: Option<String>,
    check: OnceLock<Result<Check, String>>,
}

impl PreparedTool {
    /// The tool of `definition` as `change` and `style` make it, and what is wrong with `change`.
    ///
    /// # Errors
    ///
    /// When `definition` is not a JSON object, repeats a key, or nests too deep. Such a tool is best
    /// listed as it is.
    pub fn new(
        definition: &str,
        change: &ToolOverride,
        style: Style,
    ) -> Result<(Self, Vec<Mistake>), JsonError> {
        let mut members = Members::parse(definition)?;
        let own = members.get_str("name").unwrap_or_default();
        let key = format!("tools.{}", shown(&own));
        let schema = members.get("inputSchema").unwrap_or("{}").to_owned();
        let (arguments, mut mistakes) = arguments(&schema, change, &key)?;
        let name = name(&own, change, style.dialect, &key, &mut mistakes);
        mistakes.extend(unfit(&schema, &arguments, &key));

        let mut changed = Changes::new(&mut members);
        changed.string("name", (*name != own).then_some(&*name));
        changed.string("title", change.title.as_deref());
        changed.description(change.description.as_deref(), style.description)?;
        changed.annotations(&change.annotations)?;
        let back = changed.schema(&schema, &arguments, style)?;
        if !style.result.lists_output_schema() {
            changed.remove("outputSchema");
        }
        let json = changed.any.then(|| members.to_json());
        let tool = Self {
            name,
            own,
            json,
            arguments,
            back,
            schema: style.dialect.map(|_| schema),
            check: OnceLock::new(),
        };
        Ok((tool, mistakes))
    }

    /// What the server calls it.
    #[must_use]
    pub fn own_name(&self) -> &str {
        &self.own
    }

    /// What the view calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tool as the view lists it; nothing when that is as the server does.
    #[must_use]
    pub fn json(&self) -> Option<&str> {
        self.json.as_deref()
    }

    /// Whether a call's arguments go to the server as they are, unchecked.
    #[must_use]
    pub fn passes_arguments(&self) -> bool {
        self.back.is_none() && self.schema.is_none() && self.arguments.are_plain()
    }

    /// The arguments of a call as the server takes them.
    ///
    /// # Errors
    ///
    /// Names that the view does not list and, under a dialect, values that the server's schema does not
    /// take. A call without arguments is one with `{}`.
    pub fn arguments<'t>(&self, given: &'t str) -> Result<Cow<'t, str>, Vec<Fault>> {
        if self.passes_arguments() {
            return Ok(Cow::Borrowed(given));
        }
        if self.back.is_some() && values(given) > MOST_VALUES {
            return Err(vec![Fault::TooManyValues { most: MOST_VALUES }]);
        }
        let arguments = self.arguments.upstream(given, self.back.as_ref(), true)?;
        let faults = match self.check() {
            Some(Ok(check)) => check.faults(&arguments),
            _ => Vec::new(),
        };
        if faults.is_empty() {
            return Ok(arguments);
        }
        Err(faults
            .into_iter()
            .map(|fault| self.arguments.fault(fault))
            .collect())
    }

    /// What the server calls the view's argument; nothing where a call may not give it.
    #[must_use]
    pub fn own_argument<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.arguments.own(name)
    }

    /// The arguments that the view calls otherwise: the server's name of each, and the view's.
    pub fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.arguments.renamed()
    }

    /// Why arguments are not checked although the view has a dialect. Compiles the schema.
    #[must_use]
    pub fn unchecked(&self) -> Option<&str> {
        self.check()?.as_ref().err().map(String::as_str)
    }

    fn check(&self) -> Option<&Result<Check, String>> {
        let schema = self.schema.as_deref()?;
        Some(self.check.get_or_init(|| Check::new(schema)))
    }
}

/// The overrides of arguments that the schema has.
fn arguments(
    schema: &str,
    change: &ToolOverride,
    key: &str,
) -> Result<(Arguments, Vec<Mistake>), JsonError> {
    if change.arguments.is_empty() {
        return Ok((Arguments::default(), Vec::new()));
    }
    let root = Members::parse(schema)?;
    let properties = Members::parse(root.get("properties").unwrap_or("{}"))?;
    let names: Vec<&str> = properties.iter().map(|(name, _)| name).collect();
    let required = root
        .get("required")
        .map(elements)
        .transpose()?
        .unwrap_or_default();
    let required: Vec<String> = required
        .iter()
        .filter_map(|name| serde_json::from_str(name).ok())
        .collect();
    let required: Vec<&str> = required.iter().map(String::as_str).collect();
    Ok(Arguments::new(&change.arguments, &names, &required, key))
}

/// What the view calls a tool or prompt.
pub(super) fn named(
    own: &str,
    name: Option<&str>,
    dialect: Option<Dialect>,
    key: &str,
    mistakes: &mut Vec<Mistake>,
) -> String {
    let wanted = name.unwrap_or(own);
    let Some(dialect) = dialect else {
        return wanted.to_owned();
    };
    let taken = dialect.name(wanted).into_owned();
    if name.is_some() && taken != wanted {
        mistakes.push(Mistake::UnfitName {
            key: format!("{key}.name"),
            dialect,
            instead: taken.clone(),
        });
    }
    taken
}

fn name(
    own: &str,
    change: &ToolOverride,
    dialect: Option<Dialect>,
    key: &str,
    mistakes: &mut Vec<Mistake>,
) -> String {
    named(own, change.name.as_deref(), dialect, key, mistakes)
}

/// The values that the server's schema does not take.
fn unfit(schema: &str, arguments: &Arguments, key: &str) -> Vec<Mistake> {
    let mut values = arguments.values().peekable();
    if values.peek().is_none() {
        return Vec::new();
    }
    let Ok(check) = Check::new(schema) else {
        return Vec::new();
    };
    let unfit = values.filter_map(|(name, said, value)| {
        let alone = format!("{{{}:{}}}", string(name), value.to_json());
        let path = mcp_vary::json::pointer("", name);
        let mut faults = check.faults(&alone).into_iter();
        // The value itself may be a secret.
        let why = faults.find_map(|fault| match fault {
            Fault::Value {
                path: at, expected, ..
            } => {
                let within = at.strip_prefix(&path)?;
                let place = if within.is_empty() {
                    String::new()
                } else {
                    format!("`{within}`: ")
                };
                let own = within.is_empty() || within.starts_with('/');
                own.then(|| format!("{place}expected {expected}"))
            }
            _ => None,
        })?;
        Some(Mistake::UnfitValue {
            key: format!("{key}.arguments.{}.{said}", shown(name)),
            why,
        })
    });
    unfit.collect()
}

/// Changes to the members of an item, and whether there were any.
pub(super) struct Changes<'m, 't> {
    members: &'m mut Members<'t>,
    pub(super) any: bool,
}

impl<'m, 't> Changes<'m, 't> {
    pub(super) fn new(members: &'m mut Members<'t>) -> Self {
        Self {
            members,
            any: false,
        }
    }

    pub(super) fn set(&mut self, key: &'static str, json: String) {
        if self.members.get(key) != Some(&json) {
            self.members.set(key, json);
            self.any = true;
        }
    }

    pub(super) fn string(&mut self, key: &'static str, text: Option<&str>) {
        if let Some(text) = text
            && self.members.get_str(key).as_deref() != Some(text)
        {
            self.set(key, string(text));
        }
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.any |= self.members.remove(key).is_some();
    }

    pub(super) fn description(
        &mut self,
        description: Option<&str>,
        style: Description,
    ) -> Result<(), JsonError> {
        match (description, style, self.members.get("description")) {
            (Some(description), _, _) => self.string("description", Some(description)),
            (None, Description::FirstSentence, Some(written)) => {
                let shortened = derive::shorten(written)?;
                self.set("description", shortened);
            }
            (None, _, _) => {}
        }
        Ok(())
    }

    pub(super) fn annotations(
        &mut self,
        annotations: &BTreeMap<String, Json<'static>>,
    ) -> Result<(), JsonError> {
        if annotations.is_empty() {
            return Ok(());
        }
        let written = self.members.get("annotations").unwrap_or("{}").to_owned();
        let mut there = Members::parse(&written)?;
        for (key, value) in annotations {
            there.set(key.clone(), value.to_json());
        }
        self.set("annotations", there.to_json());
        Ok(())
    }

    fn schema(
        &mut self,
        written: &str,
        arguments: &Arguments,
        style: Style,
    ) -> Result<Option<WayBack>, JsonError> {
        let mut schema = arguments.schema(written)?;
        if style.schema == SchemaStyle::Compact {
            let compact = derive::schema::compact(&schema)?;
            if compact.len() < schema.len() {
                schema = Cow::Owned(compact);
            }
        }
        let mut back = None;
        if let Some(dialect) = style.dialect {
            let rewritten = dialect.rewritten(&schema)?;
            back = Some(
                rewritten
                    .back
                    .renamed(|name| arguments.own(name).map(str::to_owned)),
            );
            schema = rewritten.schema.map_or(schema, Cow::Owned);
        }
        if schema != written {
            self.set("inputSchema", schema.into_owned());
        }
        Ok(back)
    }
}
