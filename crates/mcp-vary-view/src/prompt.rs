//! One prompt in a view: how it is listed, and how its arguments are mapped back.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcp_vary::ignored::for_display;
use mcp_vary::json::{Json, JsonError, Members, elements, string};

use super::arguments::{ArgumentOverride, Arguments, read_members};
use super::changes::Changes;
use super::derive;
use super::diagnostic::ViewDiagnostic;
use super::dialect::sentences;
use super::fault::ArgumentError;
use super::style::{Description, Style};
use super::tool::view_name;

/// How a view changes one prompt.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written out by hand")]
pub struct PromptOverride {
    /// Its name in the view.
    pub name: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its description, listed in full with every style.
    pub description: Option<String>,
    /// By the server's names. The values are strings.
    pub arguments: BTreeMap<String, ArgumentOverride>,
}

/// One prompt in a view.
///
/// # Examples
///
/// ```
/// use mcp_vary::json::Json;
/// use mcp_vary_view::{ArgumentOverride, PreparedPrompt, PromptOverride, Style};
///
/// let definition = r#"{"name": "review", "arguments": [{"name": "code", "required": true}, {"name": "lang"}]}"#;
/// let mut change = PromptOverride::default();
/// change.arguments.insert("lang".into(), ArgumentOverride {
///     default: Some(Json::String("rust".into())),
///     ..Default::default()
/// });
/// let (prompt, _) = PreparedPrompt::new(definition, &change, Style::default())?;
/// // A prompt's arguments have no schema: the description states the default.
/// assert_eq!(
///     prompt.json(),
///     Some(r#"{"name":"review","arguments":[{"name": "code", "required": true},{"name":"lang","description":"Default: \"rust\"."}]}"#),
/// );
/// assert_eq!(prompt.arguments(r#"{"code": "x"}"#).unwrap(), r#"{"code":"x","lang":"rust"}"#);
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PreparedPrompt {
    upstream_name: String,
    name: String,
    json: Option<String>,
    arguments: Arguments,
}

impl PreparedPrompt {
    /// Applies `change` and `style` to the prompt of `definition`, and reports what is wrong with `change`.
    ///
    /// # Errors
    ///
    /// When `definition` is not a JSON object or repeats a key. List such a prompt unchanged.
    pub fn new(
        definition: &str,
        change: &PromptOverride,
        style: Style,
    ) -> Result<(Self, Vec<ViewDiagnostic>), JsonError> {
        let mut members = Members::parse(definition)?;
        let native = members.get_str("name").unwrap_or_default();
        let key = format!("prompts.{}", for_display(&native));
        let arguments = members.get("arguments").map(str::to_owned);
        let written = arguments
            .as_deref()
            .map(elements)
            .transpose()?
            .unwrap_or_default();
        let listed: Vec<ListedArgument<'_>> =
            written.into_iter().map(ListedArgument::read).collect();
        let (arguments, mut mistakes) = overrides(&listed, change, &key);
        let name = view_name(
            &native,
            change.name.as_deref(),
            style.dialect,
            &key,
            &mut mistakes,
        );

        let mut changed = Changes::new(&mut members);
        changed.string("name", (*name != native).then_some(&*name));
        changed.string("title", change.title.as_deref());
        changed.description(change.description.as_deref(), style.description)?;
        let mut all = Vec::new();
        let mut differs = false;
        for argument in &listed {
            let shown = argument.in_view(change, &arguments, style)?;
            differs |= shown.as_deref() != Some(argument.written);
            all.extend(shown);
        }
        if differs {
            changed.set("arguments", format!("[{}]", all.join(",")));
        }
        let json = changed.is_changed.then(|| members.to_json());
        let prompt = Self {
            upstream_name: native,
            name,
            json,
            arguments,
        };
        Ok((prompt, mistakes))
    }

    /// Its name on the server.
    pub fn upstream_name(&self) -> &str {
        &self.upstream_name
    }

    /// Its name in the view.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The prompt as the view lists it; `None` if that equals the server's definition.
    pub fn json(&self) -> Option<&str> {
        self.json.as_deref()
    }

    /// The arguments of `prompts/get` in the server's form.
    ///
    /// # Errors
    ///
    /// Names that the view does not list.
    pub fn arguments<'t>(&self, given: &'t str) -> Result<Cow<'t, str>, Vec<ArgumentError>> {
        if self.arguments.is_identity() {
            return Ok(Cow::Borrowed(given));
        }
        self.arguments
            .to_upstream(given, &read_members(given)?, None)
    }

    /// The server's name of a view's argument; `None` if the view has no such argument.
    pub fn upstream_argument<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.arguments.upstream_name(name)
    }

    /// The renamed arguments: the server's name and the view's name of each.
    pub fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.arguments.renamed()
    }
}

/// One argument as the server lists it.
struct ListedArgument<'t> {
    written: &'t str,
    name: String,
    members: Members<'t>,
}

impl<'t> ListedArgument<'t> {
    /// Something that is not an argument stays as written.
    fn read(written: &'t str) -> Self {
        let members = Members::parse(written).unwrap_or_default();
        Self {
            written,
            name: members.get_str("name").unwrap_or_default(),
            members,
        }
    }

    /// The argument as the view lists it; `None` if it does not.
    fn in_view(
        &self,
        change: &PromptOverride,
        arguments: &Arguments,
        style: Style,
    ) -> Result<Option<String>, JsonError> {
        let changed = change.arguments.get(&self.name);
        if changed.is_some_and(|changed| changed.hidden || changed.fixed.is_some()) {
            return Ok(None);
        }
        let mut members = self.members.clone();
        let name = arguments.view_name(&self.name);
        if name != self.name {
            members.set("name", string(name));
        }
        let native = changed.and_then(|changed| changed.description.clone());
        let short = || {
            let written = self.members.get_str("description")?;
            Some(match style.description {
                Description::Full => written,
                Description::FirstSentence => derive::first_sentence(&written),
            })
        };
        let default = changed
            .and_then(|changed| changed.default.as_ref())
            .and_then(sentences::default);
        let description =
            sentences::with_sentences(native.or_else(short).as_deref(), default.as_slice());
        if description != self.members.get_str("description") {
            members.set("description", string(&description.unwrap_or_default()));
        }
        match changed {
            Some(changed) if changed.required => members.set("required", "true"),
            Some(changed) if changed.default.is_some() => drop(members.remove("required")),
            _ => {}
        }
        let same = members.iter().eq(self.members.iter());
        Ok(Some(if same {
            self.written.to_owned()
        } else {
            members.to_json()
        }))
    }
}

fn overrides(
    listed: &[ListedArgument<'_>],
    change: &PromptOverride,
    key: &str,
) -> (Arguments, Vec<ViewDiagnostic>) {
    let names: Vec<&str> = listed
        .iter()
        .map(|argument| argument.name.as_str())
        .collect();
    let is_required =
        |argument: &&ListedArgument<'_>| argument.members.get("required") == Some("true");
    let required = listed
        .iter()
        .filter(is_required)
        .map(|argument| argument.name.as_str());
    let required_names: Vec<&str> = required.collect();
    let (arguments, mut mistakes) = Arguments::new(&change.arguments, &names, &required_names, key);
    let other = arguments
        .values()
        .filter(|(_, _, value)| !matches!(value, Json::String(_)));
    let unfit = other.map(|(name, reported, _)| ViewDiagnostic::InvalidValue {
        key: format!("{key}.arguments.{}.{reported}", for_display(name)),
        reason: "the arguments of prompts are strings; put it in quotation marks".to_owned(),
    });
    mistakes.extend(unfit);
    (arguments, mistakes)
}
