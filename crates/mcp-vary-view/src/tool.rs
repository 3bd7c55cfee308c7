//! One tool in a view: how it is listed, and how its arguments are mapped back.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use mcp_vary::ignored::for_display;
use mcp_vary::json::{Json, JsonError, Members, count_values, elements, string};

use super::arguments::{ArgumentOverride, Arguments, read_members};
use super::call_check::{CallCheck, erroneous_part, escape_invisible};
use super::changes::Changes;
use super::check::{MAX_CHECKED_VALUES, SchemaCheck};
use super::derive;
use super::diagnostic::ViewDiagnostic;
use super::dialect::{ArgumentDecoder, Dialect};
use super::fault::ArgumentError;
use super::model::model_tokens;
use super::on_demand::typed;
use super::style::{ArgumentCheck, Description, SchemaStyle, Style};

/// How a view changes one tool.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written out by hand")]
pub struct ToolOverride {
    /// Its name in the view.
    pub name: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its description, listed in full with every style.
    pub description: Option<String>,
    /// Members of its `annotations` to set or replace.
    pub annotations: BTreeMap<String, Json<'static>>,
    /// By the server's names.
    pub arguments: BTreeMap<String, ArgumentOverride>,
}

/// One tool in a view.
///
/// # Properties
///
/// - Unchanged parts stay as written. If nothing changes, [`json`](Self::json) is `None`, and
///   [`arguments`](Self::arguments) returns its input.
/// - Under a [`Dialect`], arguments are validated against the server's own schema, which is compiled with the first
///   call.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::{ArgumentOverride, PreparedTool, Style, ToolOverride};
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
/// // A call cannot give a fixed argument.
/// let faults = tool.arguments(r#"{"query": "x", "owner": "evil"}"#).unwrap_err();
/// assert_eq!(faults[0].to_string(), "there is no argument `owner`; leave it out");
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[derive(Debug)]
pub struct PreparedTool {
    upstream_name: String,
    name: String,
    /// `None` if the tool is listed as the server lists it.
    json: Option<String>,
    /// The description that the view sets.
    description: Option<String>,
    arguments: Arguments,
    decoder: Option<ArgumentDecoder>,
    /// The server's schema, if arguments are validated against it.
    schema: Option<String>,
    argument_check: ArgumentCheck,
    saved_tokens: usize,
    check: OnceLock<Result<CallCheck, String>>,
}

impl PreparedTool {
    /// Applies `change` and `style` to the tool of `definition`, and reports what is wrong with `change`.
    ///
    /// With schemas on demand, the tool is listed in its compact form if that costs a model no more.
    ///
    /// # Errors
    ///
    /// When `definition` is not a JSON object, repeats a key, or nests too deep. List such a tool unchanged.
    pub fn new(
        definition: &str,
        change: &ToolOverride,
        style: Style,
    ) -> Result<(Self, Vec<ViewDiagnostic>), JsonError> {
        let (mut tool, mistakes) = Self::styled(definition, change, style)?;
        if style.schema.is_on_demand() {
            let compact = compact_form(definition, change, style)?;
            let listed = tool.json().unwrap_or(definition);
            tool.saved_tokens = model_tokens(&compact).saturating_sub(model_tokens(listed));
            if tool.saved_tokens == 0 {
                tool.json = Some(compact);
            }
        }
        Ok((tool, mistakes))
    }

    /// Like [`new`](Self::new), but the tool is listed in its compact form: for a variant with schemas on demand where
    /// describing the tools [costs more than it saves](crate::is_worth_describing).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn compact(
        definition: &str,
        change: &ToolOverride,
        style: Style,
    ) -> Result<(Self, Vec<ViewDiagnostic>), JsonError> {
        let (mut tool, mistakes) = Self::styled(definition, change, style)?;
        tool.json = Some(compact_form(definition, change, style)?);
        Ok((tool, mistakes))
    }

    fn styled(
        definition: &str,
        change: &ToolOverride,
        style: Style,
    ) -> Result<(Self, Vec<ViewDiagnostic>), JsonError> {
        let mut members = Members::parse(definition)?;
        let native = members.get_str("name").unwrap_or_default();
        let key = format!("tools.{}", for_display(&native));
        let schema = members.get("inputSchema").unwrap_or("{}").to_owned();
        let (arguments, mut mistakes) = arguments(&schema, change, &key)?;
        let name = view_name(
            &native,
            change.name.as_deref(),
            style.dialect,
            &key,
            &mut mistakes,
        );
        mistakes.extend(invalid_values(&schema, &arguments, &key));

        let mut changed = Changes::new(&mut members);
        changed.string("name", (*name != native).then_some(&*name));
        changed.string("title", change.title.as_deref());
        changed.description(change.description.as_deref(), style.description)?;
        changed.annotations(&change.annotations)?;
        let back = changed.schema(&schema, &arguments, style)?;
        if !style.result.lists_output_schema() {
            changed.remove("outputSchema");
        }
        let json = changed.is_changed.then(|| members.to_json());
        let tool = Self {
            name,
            upstream_name: native,
            json,
            description: change.description.clone(),
            arguments,
            decoder: back,
            schema: (style.dialect.is_some() || style.check != ArgumentCheck::Off)
                .then_some(schema),
            argument_check: style.check,
            saved_tokens: 0,
            check: OnceLock::new(),
        };
        Ok((tool, mistakes))
    }

    /// Its name on the server.
    pub fn upstream_name(&self) -> &str {
        &self.upstream_name
    }

    /// Its name in the view.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tool as the view lists it; `None` if that equals the server's definition.
    pub fn json(&self) -> Option<&str> {
        self.json.as_deref()
    }

    /// An estimate of how many tokens less a model reads of the tool as it is listed than of its compact form, if schemas
    /// are on demand.
    pub const fn saved_tokens(&self) -> usize {
        self.saved_tokens
    }

    /// Whether a call's arguments are forwarded unchanged and unchecked.
    pub fn forwards_arguments_unchanged(&self) -> bool {
        self.decoder.is_none() && self.schema.is_none() && self.arguments.is_identity()
    }

    /// The arguments of a call in the server's form.
    ///
    /// # Errors
    ///
    /// Names that the view does not list and, under a dialect, values that the server's schema rejects. For a call
    /// without arguments, pass `{}`.
    pub fn arguments<'t>(&self, given: &'t str) -> Result<Cow<'t, str>, Vec<ArgumentError>> {
        if self.forwards_arguments_unchanged() {
            return Ok(Cow::Borrowed(given));
        }
        if self.decoder.is_some() && count_values(given) > MAX_CHECKED_VALUES {
            return Err(vec![ArgumentError::TooManyValues {
                limit: MAX_CHECKED_VALUES,
            }]);
        }
        let members = read_members(given)?;
        let decoder = self.decoder.as_ref();
        let arguments = self.arguments.to_upstream(given, &members, decoder)?;
        let faults = match self.check() {
            Some(Ok(check)) => check.errors(&self.arguments, &members, &arguments),
            _ => Vec::new(),
        };
        if faults.is_empty() {
            Ok(arguments)
        } else {
            Err(faults)
        }
    }

    /// The arguments of a call in the form of the view: those that calls cannot give are left out, others have their names in
    /// the view. Values stay as they are.
    ///
    /// # Errors
    ///
    /// When `given` is not an object, or repeats a key.
    pub fn view_arguments(&self, given: &str) -> Result<String, JsonError> {
        let given = Members::parse(given)?;
        let mut arguments = Members::default();
        for (name, value) in given.iter() {
            if let Some(name) = self.arguments.given_name(name) {
                arguments.set(name, value);
            }
        }
        Ok(arguments.to_json())
    }

    /// The tool as `describe_tools` returns it: its name, its whole description, and its compact input schema, both as
    /// the view changes them. `definition` is the tool as the server lists it.
    ///
    /// Compact JSON in which invisible characters are escaped, so that a reader sees all of what the server wrote.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_view::{PreparedTool, SchemaStyle, Style, ToolOverride};
    ///
    /// let definition = r#"{"name": "wait", "description": "Waits. At most a minute.", "inputSchema": {
    ///     "type": "object", "properties": {"seconds": {"type": "integer", "maximum": 60, "title": "Seconds"}}
    /// }}"#;
    /// let style = Style { schema: SchemaStyle::OnDemand, ..Style::default() };
    /// let (tool, _) = PreparedTool::new(definition, &ToolOverride::default(), style)?;
    /// assert!(tool.json().unwrap().ends_with(r#""properties":{"seconds":{"type":"integer"}}}}"#));
    /// assert_eq!(
    ///     tool.describe(definition)?,
    ///     r#"{"name":"wait","description":"Waits. At most a minute.","inputSchema":{"type":"object","properties":{"seconds":{"type":"integer","maximum":60}}}}"#,
    /// );
    /// # Ok::<(), mcp_vary::json::JsonError>(())
    /// ```
    pub fn describe(&self, definition: &str) -> Result<String, JsonError> {
        let members = Members::parse(definition)?;
        let mut described = Members::default();
        described.set("name", string(&self.name));
        let changed = self.description.clone();
        if let Some(description) = changed.or_else(|| members.get_str("description")) {
            described.set("description", string(&description));
        }
        let schema = members.get("inputSchema").unwrap_or("{}");
        let known = derive::known_words(&described);
        described.set("inputSchema", self.compact_schema_of(schema, &known)?);
        Ok(escape_invisible(&described.to_json()))
    }

    /// The compact schema of the view's arguments, for an answer to arguments with these errors; `None` if arguments
    /// are not checked by [`Style::check`].
    ///
    /// At most 8 KiB: of a longer schema only the arguments that the errors name, as many as fit.
    pub fn schema_for_errors(&self, errors: &[ArgumentError]) -> Option<String> {
        if self.argument_check == ArgumentCheck::Off {
            return None;
        }
        let known = derive::Vocabulary::of(&self.name);
        let compact = self.compact_schema_of(self.schema.as_deref()?, &known);
        let schema = escape_invisible(&compact.ok()?);
        if schema.len() <= MAX_SCHEMA_IN_ERROR {
            Some(schema)
        } else {
            erroneous_part(&schema, errors, MAX_SCHEMA_IN_ERROR)
        }
    }

    fn compact_schema_of(
        &self,
        schema: &str,
        known: &derive::Vocabulary,
    ) -> Result<String, JsonError> {
        let prose = derive::Prose::Essential(known);
        derive::schema::compact(&self.arguments.schema(schema)?, prose)
    }

    /// The server's name of a view's argument; `None` if a call cannot give it.
    pub fn upstream_argument<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.arguments.upstream_name(name)
    }

    /// The renamed arguments: the server's name and the view's name of each.
    pub fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.arguments.renamed()
    }

    /// The arguments that calls cannot give since the view fixes them, by the server's names.
    pub fn fixed(&self) -> impl Iterator<Item = &str> {
        let fixed = self
            .arguments
            .values()
            .filter(|(_, key, _)| *key == "fixed");
        fixed.map(|(name, ..)| name)
    }

    /// Why arguments are not validated although the view has a dialect or a check. Compiles the schema.
    pub fn unchecked_reason(&self) -> Option<&str> {
        self.check()?.as_ref().err().map(String::as_str)
    }

    fn check(&self) -> Option<&Result<CallCheck, String>> {
        let schema = self.schema.as_deref()?;
        let compiled = || CallCheck::new(schema, self.argument_check);
        Some(self.check.get_or_init(compiled))
    }
}

/// The tool in its compact form, with the changes of the view.
fn compact_form(
    definition: &str,
    change: &ToolOverride,
    style: Style,
) -> Result<String, JsonError> {
    let compact = derive::compact_tool(definition)?;
    let style = Style {
        description: Description::Full,
        schema: SchemaStyle::Full,
        ..style
    };
    let (tool, _) = PreparedTool::styled(&compact, change, style)?;
    let listed = tool.json.unwrap_or(compact);
    let mut members = Members::parse(&listed)?;
    // A dialect writes types as its clients need them.
    let is_plain = style.dialect.is_none();
    if is_plain && let Some(schema) = members.get("inputSchema") {
        let schema = typed(schema)?;
        members.set("inputSchema", schema);
    }
    Ok(members.to_json())
}

/// The overrides that apply to the schema's arguments.
fn arguments(
    schema: &str,
    change: &ToolOverride,
    key: &str,
) -> Result<(Arguments, Vec<ViewDiagnostic>), JsonError> {
    if change.arguments.is_empty() {
        return Ok((Arguments::default(), Vec::new()));
    }
    let root = Members::parse(schema)?;
    let properties = Members::parse(root.get("properties").unwrap_or("{}"))?;
    let names: Vec<&str> = properties.iter().map(|(name, _)| name).collect();
    let listed = root
        .get("required")
        .map(elements)
        .transpose()?
        .unwrap_or_default();
    let required_names: Vec<String> = listed
        .iter()
        .filter_map(|name| serde_json::from_str(name).ok())
        .collect();
    let required: Vec<&str> = required_names.iter().map(String::as_str).collect();
    Ok(Arguments::new(&change.arguments, &names, &required, key))
}

/// The name of a tool or prompt in the view.
pub(super) fn view_name(
    native: &str,
    name: Option<&str>,
    dialect: Option<Dialect>,
    key: &str,
    mistakes: &mut Vec<ViewDiagnostic>,
) -> String {
    let wanted = name.unwrap_or(native);
    let Some(dialect) = dialect else {
        return wanted.to_owned();
    };
    let used = dialect.name(wanted).into_owned();
    if name.is_some() && used != wanted {
        mistakes.push(ViewDiagnostic::InvalidName {
            key: format!("{key}.name"),
            dialect,
            suggestion: used.clone(),
        });
    }
    used
}

/// The configured values that the server's schema rejects.
fn invalid_values(schema: &str, arguments: &Arguments, key: &str) -> Vec<ViewDiagnostic> {
    let mut values = arguments.values().peekable();
    if values.peek().is_none() {
        return Vec::new();
    }
    let Ok(check) = SchemaCheck::new(schema) else {
        return Vec::new();
    };
    let unfit = values.filter_map(|(name, reported, value)| {
        let single = format!("{{{}:{}}}", string(name), value.to_json());
        let path = mcp_vary::json::pointer("", name);
        let mut faults = check.errors(&single).into_iter();
        // The value itself may be a secret.
        let why = faults.find_map(|fault| match fault {
            ArgumentError::InvalidValue {
                path: at, expected, ..
            } => {
                let within = at.strip_prefix(&path)?;
                let place = if within.is_empty() {
                    String::new()
                } else {
                    format!("`{within}`: ")
                };
                let native = within.is_empty() || within.starts_with('/');
                native.then(|| format!("{place}expected {expected}"))
            }
            _ => None,
        })?;
        Some(ViewDiagnostic::InvalidValue {
            key: format!("{key}.arguments.{}.{reported}", for_display(name)),
            reason: why,
        })
    });
    unfit.collect()
}

/// Bytes of a schema in the answer to wrong arguments.
const MAX_SCHEMA_IN_ERROR: usize = 8 * 1024;
