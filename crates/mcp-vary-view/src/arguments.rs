//! What a view makes of arguments: in a list fewer, renamed, with defaults; in a call the way back.

mod schema;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::dialect::WayBack;
use super::fault::{Fault, cut, nearest};
use super::mistake::Mistake;
use mcp_vary::ignored::shown;
use mcp_vary::json::{Json, JsonError, Members, folded, write_string};

/// What a view makes of one argument of a tool or prompt.
///
/// | | in the list | in a call |
/// |---|---|---|
/// | `name` | it has this name | and the server's again |
/// | `description` | it has this description | |
/// | `hidden` | it is not there | nor may it be given; with `default` that is sent |
/// | `fixed` | it is not there | nor may it be given; this value is sent |
/// | `default` | the schema has this `default`, and it is not required | this value is sent where it is left out |
/// | `required` | it is required | a call without it is refused |
///
/// Shown for debugging, the values are left out: one may be a secret.
#[derive(Clone, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written out by hand")]
pub struct ArgumentOverride {
    /// What it is called.
    pub name: Option<String>,
    /// How it is described.
    pub description: Option<String>,
    /// Whether it is left out.
    pub hidden: bool,
    /// What is always sent.
    pub fixed: Option<Json<'static>>,
    /// What is sent where it is left out.
    pub default: Option<Json<'static>>,
    /// Whether it is required.
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

/// The overrides of one item's arguments, by the server's names, as far as there are such arguments. What
/// is hidden or fixed is so whether it is listed or not.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments {
    overrides: BTreeMap<String, ArgumentOverride>,
    /// The server's names by the view's, where they differ.
    own: BTreeMap<String, String>,
    /// What a call may give.
    known: Vec<String>,
    /// The server's names by what they fold to; empty where arguments pass as they are.
    by_fold: BTreeMap<String, Vec<String>>,
}

impl ArgumentOverride {
    /// Whether a call may not give it.
    fn is_gone(&self) -> bool {
        self.hidden || self.fixed.is_some()
    }

    /// What is sent where a call does not give it.
    fn filled(&self) -> Option<&Json<'static>> {
        self.fixed.as_ref().or(self.default.as_ref())
    }

    /// Whether every call has to give it.
    fn is_asked_for(&self) -> bool {
        self.required && !self.is_gone() && self.filled().is_none()
    }

    fn contradictions(&self) -> impl Iterator<Item = [&'static str; 2]> {
        let (fixed, default) = (self.fixed.is_some(), self.default.is_some());
        let gone = if fixed { "fixed" } else { "hidden" };
        let renamed = self.name.is_some();
        [
            (fixed && default).then_some(["fixed", "default"]),
            (self.is_gone() && self.required).then_some([gone, "required"]),
            (self.is_gone() && renamed).then_some([gone, "name"]),
            (default && self.required).then_some(["default", "required"]),
        ]
        .into_iter()
        .flatten()
    }
}

impl Arguments {
    /// The overrides of arguments that there are (`names`, and of those the `required`), those that nobody
    /// may give, and what is wrong with the others.
    pub(super) fn new(
        overrides: &BTreeMap<String, ArgumentOverride>,
        names: &[&str],
        required: &[&str],
        key: &str,
    ) -> (Self, Vec<Mistake>) {
        let mut arguments = Self::default();
        let mut mistakes = Vec::new();
        let key = |name: &str, rest: &str| format!("{key}.arguments.{}{rest}", shown(name));
        for (name, changed) in overrides {
            if !names.contains(&name.as_str()) {
                mistakes.push(Mistake::UnknownArgument {
                    key: key(name, ""),
                    meant: nearest(name, names.iter().copied()).map(str::to_owned),
                });
                // A server may take what its schema does not list.
                if !changed.is_gone() {
                    continue;
                }
            }
            mistakes.extend(changed.contradictions().map(|said| Mistake::Contradiction {
                key: key(name, ""),
                said,
            }));
            if changed.hidden && changed.filled().is_none() && required.contains(&name.as_str()) {
                mistakes.push(Mistake::HiddenRequired {
                    key: key(name, ".hidden"),
                });
            }
            arguments.overrides.insert(name.clone(), changed.clone());
        }
        while let Err((own, name)) = arguments.name(names) {
            mistakes.push(Mistake::ArgumentTaken {
                key: key(&own, ".name"),
                name,
            });
        }
        let nothing = ArgumentOverride::default();
        arguments.overrides.retain(|_, changed| *changed != nothing);
        if !arguments.are_plain() {
            arguments.fold(names);
        }
        (arguments, mistakes)
    }

    /// Remembers what the server's names fold to, those that its schema does not list included.
    fn fold(&mut self, names: &[&str]) {
        let unlisted = self.overrides.keys().map(String::as_str);
        for name in names.iter().copied().chain(unlisted) {
            let alike = self.by_fold.entry(folded(name).collect()).or_default();
            if !alike.iter().any(|known| known == name) {
                alike.push(name.to_owned());
            }
        }
    }

    /// The server's name that another reader takes `name` for; none where the server has `name` itself.
    fn imitated(&self, name: &str) -> Option<&str> {
        if self.by_fold.is_empty() {
            return None;
        }
        let alike = self.by_fold.get(&folded(name).collect::<String>())?;
        let is_known = alike.iter().any(|known| known == name);
        alike.first().filter(|_| !is_known).map(String::as_str)
    }

    /// Gives the arguments their names in the view, or takes back the first that another has already:
    /// that argument's own name, and the one that it should have had.
    fn name(&mut self, names: &[&str]) -> Result<(), (String, String)> {
        self.own.clear();
        self.known.clear();
        let mut taken = BTreeSet::new();
        let renamed = |arguments: &Self, name: &str| {
            let changed = arguments.overrides.get(name)?;
            changed.name.clone().filter(|new| new != name)
        };
        let is_gone = |arguments: &Self, name: &str| {
            let changed = arguments.overrides.get(name);
            changed.is_some_and(ArgumentOverride::is_gone)
        };
        // What keeps its name comes first, wherever it stands.
        let mut listed: Vec<&str> = names.to_vec();
        listed.retain(|name| !is_gone(self, name));
        listed.sort_by_key(|name| renamed(self, name).is_some());
        for name in listed {
            let new = renamed(self, name);
            if !taken.insert(new.clone().unwrap_or_else(|| name.to_owned())) {
                let changed = self.overrides.get_mut(name);
                let taken_back = changed.and_then(|changed| changed.name.take());
                return Err((name.to_owned(), taken_back.unwrap_or_default()));
            }
            self.known
                .push(new.clone().unwrap_or_else(|| name.to_owned()));
            self.own.extend(new.map(|new| (new, name.to_owned())));
        }
        Ok(())
    }

    /// Whether a call's arguments are the server's as they are.
    pub(super) fn are_plain(&self) -> bool {
        let plain = |changed: &ArgumentOverride| {
            !changed.is_gone() && changed.filled().is_none() && !changed.is_asked_for()
        };
        self.own.is_empty() && self.overrides.values().all(plain)
    }

    /// What the view calls the server's argument.
    pub(super) fn shown<'a>(&'a self, own: &'a str) -> &'a str {
        let renamed = self
            .overrides
            .get(own)
            .and_then(|changed| changed.name.as_deref());
        renamed.unwrap_or(own)
    }

    /// What the server calls the view's argument; nothing where a call may not give it.
    pub(super) fn own<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        if let Some(own) = self.own.get(name) {
            return Some(own);
        }
        let free = |changed: &ArgumentOverride| {
            !changed.is_gone() && changed.name.as_deref().is_none_or(|new| new == name)
        };
        let may_be_given = match self.overrides.get(name) {
            Some(changed) => free(changed),
            None => self.imitated(name).is_none(),
        };
        may_be_given.then_some(name)
    }

    /// The arguments that the view calls otherwise: the server's name of each, and the view's.
    pub(super) fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.own
            .iter()
            .map(|(name, own)| (own.as_str(), name.as_str()))
    }

    /// The values that are given, with the server's names of their arguments and their keys.
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

    /// The arguments of a call as the server takes them.
    pub(super) fn upstream<'t>(
        &self,
        arguments: &'t str,
        back: Option<&WayBack>,
        fill: bool,
    ) -> Result<Cow<'t, str>, Vec<Fault>> {
        let given = Members::parse(arguments).map_err(|error| vec![unread(&error)])?;
        let (mut taken, mut there) = (Vec::new(), BTreeSet::new());
        let (mut faults, mut changed) = (Vec::new(), false);
        for (name, value) in given.iter() {
            let Some(own) = self.own(name) else {
                if faults.len() < MOST_FAULTS {
                    faults.push(self.unknown(name));
                }
                continue;
            };
            let returned = match back {
                Some(back) => back.argument(own, value),
                None => Ok(Some(Cow::Borrowed(value))),
            };
            let returned = returned.map_err(|error| vec![unread(&error)])?;
            changed |= own != name || returned.as_deref() != Some(value);
            if let Some(returned) = returned {
                there.insert(own);
                taken.push((own, returned));
            }
        }
        if fill {
            faults.extend(self.missing(&there));
        }
        if !faults.is_empty() {
            faults.truncate(MOST_FAULTS);
            return Err(faults);
        }
        for (own, change) in self.overrides.iter().filter(|_| fill) {
            if let Some(value) = change.filled().filter(|_| !there.contains(own.as_str())) {
                taken.push((own, Cow::Owned(value.to_json())));
                changed = true;
            }
        }
        Ok(if changed {
            Cow::Owned(object(&taken))
        } else {
            Cow::Borrowed(arguments)
        })
    }

    /// What the view requires and is not `there`.
    fn missing<'a>(&'a self, there: &'a BTreeSet<&str>) -> impl Iterator<Item = Fault> + 'a {
        let asked_for = self
            .overrides
            .iter()
            .filter(|(_, change)| change.is_asked_for());
        let missing = asked_for.filter(|(own, _)| !there.contains(own.as_str()));
        missing.map(|(own, _)| Fault::MissingArgument {
            name: cut(self.shown(own), 64),
        })
    }

    fn unknown(&self, name: &str) -> Fault {
        if let Some(imitated) = self.imitated(name) {
            return Fault::Lookalike {
                name: cut(name, 64),
                imitated: cut(imitated, 64),
            };
        }
        let renamed = self
            .overrides
            .get(name)
            .filter(|changed| !changed.is_gone());
        let meant = renamed
            .and_then(|changed| changed.name.clone())
            .or_else(|| nearest(name, self.known.iter().map(String::as_str)).map(str::to_owned));
        Fault::UnknownArgument {
            name: cut(name, 64),
            meant,
        }
    }

    /// The fault in the view's names, without what a call could not give.
    pub(super) fn fault(&self, fault: Fault) -> Fault {
        let Fault::Value {
            path,
            expected,
            given,
        } = fault
        else {
            return fault;
        };
        let Some(tokens) = path.strip_prefix('/') else {
            return Fault::Value {
                path,
                expected,
                given,
            };
        };
        let (own, rest) = tokens.split_at(tokens.find('/').unwrap_or(tokens.len()));
        let own = own.replace("~1", "/").replace("~0", "~");
        if self
            .overrides
            .get(&own)
            .is_some_and(ArgumentOverride::is_gone)
        {
            return Fault::Fixed;
        }
        let path = format!("{}{rest}", mcp_vary::json::pointer("", self.shown(&own)));
        Fault::Value {
            path,
            expected,
            given,
        }
    }
}

/// Why arguments cannot be read.
fn unread(error: &JsonError) -> Fault {
    match error.repeated_key() {
        Some(key) => Fault::RepeatedKey {
            key: key.to_owned(),
        },
        None => Fault::NoObject,
    }
}

/// The object of `members`, whose names are different.
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

/// How many arguments are told that there are not.
const MOST_FAULTS: usize = 8;
