//! Argument overrides: what a view lists of a tool's arguments, and how it maps the arguments of a call back to the
//! server's.

mod schema;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::diagnostic::ViewDiagnostic;
use super::dialect::ArgumentDecoder;
use super::fault::{ArgumentError, nearest, truncated};
use mcp_vary::ignored::for_display;
use mcp_vary::json::{Json, JsonError, Members, folded, write_string};

/// How a view changes one argument of a tool or prompt.
///
/// | | in the list | in a call |
/// |---|---|---|
/// | `name` | it has this name | it is renamed to the server's name |
/// | `description` | it has this description | |
/// | `hidden` | it is not listed | it cannot be given; its `default` is sent if it has one |
/// | `fixed` | it is not listed | it cannot be given; this value is sent |
/// | `default` | the schema has this `default`, and it is not required | this value is sent if the call omits it |
/// | `required` | it is required | a call without it is rejected |
///
/// `Debug` omits the values: one may be a secret.
#[derive(Clone, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written out by hand")]
pub struct ArgumentOverride {
    /// Its name in the view.
    pub name: Option<String>,
    /// Its description in the view.
    pub description: Option<String>,
    /// Whether the view hides it.
    pub hidden: bool,
    /// The value that is always sent.
    pub fixed: Option<Json<'static>>,
    /// The value that is sent if the call omits it.
    pub default: Option<Json<'static>>,
    /// Whether every call must give it.
    pub required: bool,
}

impl fmt::Debug for ArgumentOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentOverride")
            .field("name", &self.name)
            .field("description", &self.description)
            .field("hidden", &self.hidden)
            .field("fixed", &self.fixed.as_ref().map(|_| "…"))
            .field("default", &self.default.as_ref().map(|_| "…"))
            .field("required", &self.required)
            .finish()
    }
}

/// The overrides of one item's arguments, by the server's names, for arguments that exist. A hidden or fixed
/// argument stays unavailable even if the server does not list it.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments {
    overrides: BTreeMap<String, ArgumentOverride>,
    /// The server's names by the view's names, where they differ.
    upstream_names: BTreeMap<String, String>,
    /// The names that a call may use.
    accepted: Vec<String>,
    /// The server's names by their folded form; empty if arguments are forwarded unchanged.
    by_fold: BTreeMap<String, Vec<String>>,
}

impl ArgumentOverride {
    /// Whether a call cannot give it.
    fn is_unavailable(&self) -> bool {
        self.hidden || self.fixed.is_some()
    }

    /// The value that is sent if a call does not give one.
    fn implied_value(&self) -> Option<&Json<'static>> {
        self.fixed.as_ref().or(self.default.as_ref())
    }

    /// Whether every call must give it.
    fn must_be_given(&self) -> bool {
        self.required && !self.is_unavailable() && self.implied_value().is_none()
    }

    fn conflicts(&self) -> impl Iterator<Item = [&'static str; 2]> {
        let fixed = self.fixed.is_some();
        let default = self.default.is_some();
        let gone = if fixed { "fixed" } else { "hidden" };
        let renamed = self.name.is_some();
        [
            (fixed && default).then_some(["fixed", "default"]),
            (self.is_unavailable() && self.required).then_some([gone, "required"]),
            (self.is_unavailable() && renamed).then_some([gone, "name"]),
            (default && self.required).then_some(["default", "required"]),
        ]
        .into_iter()
        .flatten()
    }
}

impl Arguments {
    /// Keeps the overrides of arguments that exist (`names`, and among them the `required` ones) and of unavailable
    /// arguments, and reports what is wrong with the others.
    pub(super) fn new(
        overrides: &BTreeMap<String, ArgumentOverride>,
        names: &[&str],
        required: &[&str],
        key: &str,
    ) -> (Self, Vec<ViewDiagnostic>) {
        let mut arguments = Self::default();
        let mut mistakes = Vec::new();
        let key = |name: &str, remaining: &str| {
            format!("{key}.arguments.{}{remaining}", for_display(name))
        };
        for (name, changed) in overrides {
            if !names.contains(&name.as_str()) {
                mistakes.push(ViewDiagnostic::UnknownArgument {
                    key: key(name, ""),
                    suggestion: nearest(name, names.iter().copied()).map(str::to_owned),
                });
                // A server may accept an argument that its schema does not list.
                if !changed.is_unavailable() {
                    continue;
                }
            }
            mistakes.extend(
                changed
                    .conflicts()
                    .map(|reported| ViewDiagnostic::Conflict {
                        key: key(name, ""),
                        settings: reported,
                    }),
            );
            if changed.hidden
                && changed.implied_value().is_none()
                && required.contains(&name.as_str())
            {
                mistakes.push(ViewDiagnostic::HiddenRequired {
                    key: key(name, ".hidden"),
                });
            }
            arguments.overrides.insert(name.clone(), changed.clone());
        }
        while let Err((native, name)) = arguments.assign_names(names) {
            mistakes.push(ViewDiagnostic::ArgumentNameTaken {
                key: key(&native, ".name"),
                name,
            });
        }
        let nothing = ArgumentOverride::default();
        arguments.overrides.retain(|_, changed| *changed != nothing);
        if !arguments.is_identity() {
            arguments.index_folded_names(names);
        }
        (arguments, mistakes)
    }

    /// Indexes the server's names by their folded form, including names that its schema does not list.
    fn index_folded_names(&mut self, names: &[&str]) {
        let unlisted = self.overrides.keys().map(String::as_str);
        for name in names.iter().copied().chain(unlisted) {
            let alike = self.by_fold.entry(folded(name).collect()).or_default();
            if !alike.iter().any(|known| known == name) {
                alike.push(name.to_owned());
            }
        }
    }

    /// The server's name that another reader may take `name` for; `None` if the server has `name` itself.
    fn lookalike_of(&self, name: &str) -> Option<&str> {
        if self.by_fold.is_empty() {
            return None;
        }
        let alike = self.by_fold.get(&folded(name).collect::<String>())?;
        let is_known = alike.iter().any(|known| known == name);
        alike.first().filter(|_| !is_known).map(String::as_str)
    }

    /// Assigns the view's names. If a name is taken, removes that override and returns the server's name of its
    /// argument and the rejected name.
    fn assign_names(&mut self, names: &[&str]) -> Result<(), (String, String)> {
        self.upstream_names.clear();
        self.accepted.clear();
        let mut used = BTreeSet::new();
        let renamed = |arguments: &Self, name: &str| {
            let changed = arguments.overrides.get(name)?;
            changed.name.clone().filter(|new| new != name)
        };
        let is_gone = |arguments: &Self, name: &str| {
            let changed = arguments.overrides.get(name);
            changed.is_some_and(ArgumentOverride::is_unavailable)
        };
        // Arguments without a new name go first, whatever their position.
        let mut listed: Vec<&str> = names.to_vec();
        listed.retain(|name| !is_gone(self, name));
        listed.sort_by_key(|name| renamed(self, name).is_some());
        for name in listed {
            let new = renamed(self, name);
            if !used.insert(new.clone().unwrap_or_else(|| name.to_owned())) {
                let changed = self.overrides.get_mut(name);
                let taken_back = changed.and_then(|changed| changed.name.take());
                return Err((name.to_owned(), taken_back.unwrap_or_default()));
            }
            self.accepted
                .push(new.clone().unwrap_or_else(|| name.to_owned()));
            self.upstream_names
                .extend(new.map(|new| (new, name.to_owned())));
        }
        Ok(())
    }

    /// Whether a call's arguments are already in the server's form.
    pub(super) fn is_identity(&self) -> bool {
        let plain = |changed: &ArgumentOverride| {
            !changed.is_unavailable()
                && changed.implied_value().is_none()
                && !changed.must_be_given()
        };
        self.upstream_names.is_empty() && self.overrides.values().all(plain)
    }

    /// The view's name of a server's argument.
    pub(super) fn view_name<'a>(&'a self, native: &'a str) -> &'a str {
        let renamed = self
            .overrides
            .get(native)
            .and_then(|changed| changed.name.as_deref());
        renamed.unwrap_or(native)
    }

    /// The view's name of a server's argument; `None` if a call cannot give it.
    pub(super) fn given_name<'a>(&'a self, native: &'a str) -> Option<&'a str> {
        let changed = self.overrides.get(native);
        let is_unavailable = changed.is_some_and(ArgumentOverride::is_unavailable);
        (!is_unavailable).then(|| self.view_name(native))
    }

    /// The server's name of a view's argument; `None` if a call cannot give it.
    pub(super) fn upstream_name<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        if let Some(native) = self.upstream_names.get(name) {
            return Some(native);
        }
        let free = |changed: &ArgumentOverride| {
            !changed.is_unavailable() && changed.name.as_deref().is_none_or(|new| new == name)
        };
        let may_be_given = match self.overrides.get(name) {
            Some(changed) => free(changed),
            None => self.lookalike_of(name).is_none(),
        };
        may_be_given.then_some(name)
    }

    /// The renamed arguments: the server's name and the view's name of each.
    pub(super) fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.upstream_names
            .iter()
            .map(|(name, native)| (native.as_str(), name.as_str()))
    }

    /// The configured values: the server's argument name, the key, and the value.
    pub(super) fn values(&self) -> impl Iterator<Item = (&str, &'static str, &Json<'static>)> {
        self.overrides.iter().flat_map(|(name, changed)| {
            let fixed = changed
                .fixed
                .iter()
                .map(|value| (name.as_str(), "fixed", value));
            fixed.chain(
                changed
                    .default
                    .iter()
                    .map(|value| (name.as_str(), "default", value)),
            )
        })
    }

    /// The arguments of a call, whose members are `given`, in the server's form.
    pub(super) fn to_upstream<'t>(
        &self,
        arguments: &'t str,
        given: &Members<'t>,
        back: Option<&ArgumentDecoder>,
    ) -> Result<Cow<'t, str>, Vec<ArgumentError>> {
        let mut used = Vec::new();
        let mut there = BTreeSet::new();
        let mut faults = Vec::new();
        let mut changed = false;
        for (name, value) in given.iter() {
            let Some(native) = self.upstream_name(name) else {
                if faults.len() < MAX_ERRORS {
                    faults.push(self.unknown_argument(name));
                }
                continue;
            };
            let reversed = match back {
                Some(back) => back.argument(native, value),
                None => Ok(Some(Cow::Borrowed(value))),
            };
            let returned = reversed.map_err(|error| vec![unreadable(&error)])?;
            changed |= native != name || returned.as_deref() != Some(value);
            if let Some(returned) = returned {
                there.insert(native);
                used.push((native, returned));
            }
        }
        faults.extend(self.missing_arguments(&there));
        if !faults.is_empty() {
            faults.truncate(MAX_ERRORS);
            return Err(faults);
        }
        for (native, change) in &self.overrides {
            if !there.contains(native.as_str())
                && let Some(value) = change.implied_value()
            {
                used.push((native, Cow::Owned(value.to_json())));
                changed = true;
            }
        }
        Ok(if changed {
            Cow::Owned(object(&used))
        } else {
            Cow::Borrowed(arguments)
        })
    }

    /// One error for each argument that the view requires and the call does not give.
    fn missing_arguments<'a>(
        &'a self,
        there: &'a BTreeSet<&str>,
    ) -> impl Iterator<Item = ArgumentError> + 'a {
        let asked_for = self
            .overrides
            .iter()
            .filter(|(_, change)| change.must_be_given());
        let missing = asked_for.filter(|(native, _)| !there.contains(native.as_str()));
        missing.map(|(native, _)| ArgumentError::MissingArgument {
            name: truncated(self.view_name(native), 64),
        })
    }

    /// One error for each given argument that has no name in `known`, the server's names.
    pub(super) fn unnamed_arguments(
        &self,
        given: &Members<'_>,
        known: &BTreeSet<String>,
    ) -> Vec<ArgumentError> {
        let unnamed = given.iter().filter(|(name, _)| {
            let upstream_name = self.upstream_name(name);
            upstream_name.is_some_and(|native| !known.contains(native))
        });
        let offered = || {
            let names = known.iter().map(|native| self.view_name(native));
            names.filter(|name| self.upstream_name(name).is_some())
        };
        let errors = unnamed.map(|(name, _)| ArgumentError::UnknownArgument {
            name: truncated(&for_display(name), 64),
            suggestion: nearest(name, offered()).map(|suggested| truncated(suggested, 64)),
        });
        errors.collect()
    }

    fn unknown_argument(&self, name: &str) -> ArgumentError {
        if let Some(imitated) = self.lookalike_of(name) {
            return ArgumentError::Lookalike {
                name: truncated(name, 64),
                known: truncated(imitated, 64),
            };
        }
        let renamed = self
            .overrides
            .get(name)
            .filter(|changed| !changed.is_unavailable());
        let meant = renamed
            .and_then(|changed| changed.name.clone())
            .or_else(|| nearest(name, self.accepted.iter().map(String::as_str)).map(str::to_owned));
        ArgumentError::UnknownArgument {
            name: truncated(name, 64),
            suggestion: meant,
        }
    }

    /// The error with the view's names. Details of values that a call cannot give are removed.
    pub(super) fn in_view_names(&self, fault: ArgumentError) -> ArgumentError {
        if let ArgumentError::MissingArgument { name } = &fault {
            let changed = self.overrides.get(name);
            return if changed.is_some_and(ArgumentOverride::is_unavailable) {
                ArgumentError::InvalidFixedValue
            } else {
                ArgumentError::MissingArgument {
                    name: self.view_name(name).to_owned(),
                }
            };
        }
        let ArgumentError::InvalidValue {
            path,
            expected,
            actual: given,
        } = fault
        else {
            return fault;
        };
        let Some(tokens) = path.strip_prefix('/') else {
            return ArgumentError::InvalidValue {
                path,
                expected,
                actual: given,
            };
        };
        let (native, remaining) = tokens.split_at(tokens.find('/').unwrap_or(tokens.len()));
        let argument = native.replace("~1", "/").replace("~0", "~");
        if self
            .overrides
            .get(&argument)
            .is_some_and(ArgumentOverride::is_unavailable)
        {
            return ArgumentError::InvalidFixedValue;
        }
        let path = format!(
            "{}{remaining}",
            mcp_vary::json::pointer("", self.view_name(&argument))
        );
        ArgumentError::InvalidValue {
            path,
            expected,
            actual: given,
        }
    }
}

/// The arguments of a call by name.
pub(super) fn read_members(arguments: &str) -> Result<Members<'_>, Vec<ArgumentError>> {
    Members::parse(arguments).map_err(|error| vec![unreadable(&error)])
}

/// Why the arguments cannot be read.
fn unreadable(error: &JsonError) -> ArgumentError {
    match error.duplicate_key() {
        Some(key) => ArgumentError::DuplicateKey {
            key: key.to_owned(),
        },
        None => ArgumentError::NotAnObject,
    }
}

/// The JSON object of `members`, whose names are distinct.
fn object(members: &[(&str, Cow<'_, str>)]) -> String {
    let mut json = String::from("{");
    for (at, (name, value)) in members.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        write_string(&mut json, name);
        json.push(':');
        json.push_str(value);
    }
    json.push('}');
    json
}

/// The number of errors that are reported.
const MAX_ERRORS: usize = 8;
