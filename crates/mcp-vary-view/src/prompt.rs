//! One prompt as one view lists it, and its arguments on the way back.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcp_vary::ignored::shown;
use mcp_vary::json::{Json, JsonError, Members, elements, string};

use super::arguments::{ArgumentOverride, Arguments};
use super::derive;
use super::dialect::words;
use super::fault::Fault;
use super::mistake::Mistake;
use super::tool::{Changes, Description, Style, named};

/// What a view makes of one prompt.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written out by hand")]
pub struct PromptOverride {
    /// What it is called.
    pub name: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its description, listed as it is whatever the style.
    pub description: Option<String>,
    /// By the server's names. Their values are texts.
    pub arguments: BTreeMap<String, ArgumentOverride>,
}

/// One prompt as one view lists it.
///
/// # Examples
///
/// ```
/// use mcp_vary::json::Json;
/// use crate::{ArgumentOverride, PreparedPrompt, PromptOverride, Style};
///
/// let definition = r#"{"name": "review", "arguments": [{"name": "code", "required": true}, {"name": "lang"}]}"#;
/// let mut change = PromptOverride::default();
/// change.arguments.insert("lang".into(), ArgumentOverride {
///     default: Some(Json::String("rust".into())),
///     ..Default::default()
/// });
/// let (prompt, _) = PreparedPrompt::new(definition, &change, Style::default())?;
/// // A prompt's arguments have no schema: the default is said in words.
/// assert_eq!(
///     prompt.json(),
///     Some(r#"{"name":"review","arguments":[{"name": "code", "required": true},{"name":"lang","description":"Default: \"rust\"."}]}"#),
/// );
/// assert_eq!(prompt.arguments(r#"{"code": "x"}"#).unwrap(), r#"{"code":"x","lang":"rust"}"#);
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PreparedPrompt {
    own: String,
    name: String,
    json: Option<String>,
    arguments: Arguments,
}

impl PreparedPrompt {
    /// The prompt of `definition` as `change` and `style` make it, and what is wrong with `change`.
    ///
    /// # Errors
    ///
    /// When `definition` is not a JSON object or repeats a key. Such a prompt is best listed as it is.
    pub fn new(
        definition: &str,
        change: &PromptOverride,
        style: Style,
    ) -> Result<(Self, Vec<Mistake>), JsonError> {
        let mut members = Members::parse(definition)?;
        let own = members.get_str("name").unwrap_or_default();
        let key = format!("prompts.{}", shown(&own));
        let listed = members.get("arguments").map(str::to_owned);
        let listed = listed
            .as_deref()
            .map(elements)
            .transpose()?
            .unwrap_or_default();
        let listed: Vec<Listed<'_>> = listed.into_iter().map(Listed::read).collect();
        let (arguments, mut mistakes) = overrides(&listed, change, &key);
        let name = named(
            &own,
            change.name.as_deref(),
            style.dialect,
            &key,
            &mut mistakes,
        );

        let mut changed = Changes::new(&mut members);
        changed.string("name", (*name != own).then_some(&*name));
        changed.string("title", change.title.as_deref());
        changed.description(change.description.as_deref(), style.description)?;
        let mut all = Vec::new();
        let mut differs = false;
        for argument in &listed {
            let shown = argument.shown(change, &arguments, style)?;
            differs |= shown.as_deref() != Some(argument.written);
            all.extend(shown);
        }
        if differs {
            changed.set("arguments", format!("[{}]", all.join(",")));
        }
        let json = changed.any.then(|| members.to_json());
        let prompt = Self {
            own,
            name,
            json,
            arguments,
        };
        Ok((prompt, mistakes))
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

    /// The prompt as the view lists it; nothing when that is as the server does.
    #[must_use]
    pub fn json(&self) -> Option<&str> {
        self.json.as_deref()
    }

    /// The arguments of `prompts/get` as the server takes them.
    ///
    /// # Errors
    ///
    /// Names that the view does not list.
    pub fn arguments<'t>(&self, given: &'t str) -> Result<Cow<'t, str>, Vec<Fault>> {
        if self.arguments.are_plain() {
            return Ok(Cow::Borrowed(given));
        }
        self.arguments.upstream(given, None, true)
    }

    /// What the server calls the argument that is to be completed; nothing where there is none.
    #[must_use]
    pub fn own_argument<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.arguments.own(name)
    }

    /// The arguments that the view calls otherwise: the server's name of each, and the view's.
    pub fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.arguments.renamed()
    }
}

/// One argument as the server lists it.
struct Listed<'t> {
    written: &'t str,
    name: String,
    members: Members<'t>,
}

impl<'t> Listed<'t> {
    /// What is no argument stays as it is written.
    fn read(written: &'t str) -> Self {
        let members = Members::parse(written).unwrap_or_default();
        Self {
            written,
            name: members.get_str("name").unwrap_or_default(),
            members,
        }
    }

    /// As the view lists it; nothing where it does not.
    fn shown(
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
        let name = arguments.shown(&self.name);
        if name != self.name {
            members.set("name", string(name));
        }
        let own = changed.and_then(|changed| changed.description.clone());
        let short = || {
            let written = self.members.get_str("description")?;
            Some(match style.description {
                Description::Full => written,
                Description::FirstSentence => derive::first_sentence(&written),
            })
        };
        let default = changed
            .and_then(|changed| changed.default.as_ref())
            .and_then(words::default);
        let description = words::description(own.or_else(short).as_deref(), default.as_slice());
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
    listed: &[Listed<'_>],
    change: &PromptOverride,
    key: &str,
) -> (Arguments, Vec<Mistake>) {
    let names: Vec<&str> = listed
        .iter()
        .map(|argument| argument.name.as_str())
        .collect();
    let is_required = |argument: &&Listed<'_>| argument.members.get("required") == Some("true");
    let required = listed
        .iter()
        .filter(is_required)
        .map(|argument| argument.name.as_str());
    let required: Vec<&str> = required.collect();
    let (arguments, mut mistakes) = Arguments::new(&change.arguments, &names, &required, key);
    let other = arguments
        .values()
        .filter(|(_, _, value)| !matches!(value, Json::String(_)));
    let unfit = other.map(|(name, said, _)| Mistake::UnfitValue {
        key: format!("{key}.arguments.{}.{said}", shown(name)),
        why: "the arguments of prompts are texts; put it in quotation marks".to_owned(),
    });
    mistakes.extend(unfit);
    (arguments, mistakes)
}
