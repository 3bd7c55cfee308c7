//! What is wrong with a view as it is configured, each with its key and the fix.

use std::collections::BTreeMap;
use std::fmt;

use mcp_vary::ignored::shown;

use super::dialect::Dialect;
use super::fault::nearest;
use super::uri::UriError;

/// One thing that is wrong with a view as it is configured.
///
/// The keys are those of a variant: `tools.search.arguments.q.name`.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Mistake {
    /// An override of an item that no server lists, or that the view does not show.
    UnknownItem {
        /// `tools.serach`
        key: String,
        /// One that there is.
        meant: Option<String>,
    },
    /// An override of an argument that the item does not have.
    UnknownArgument {
        /// `tools.search.arguments.quer`
        key: String,
        /// One that there is.
        meant: Option<String>,
    },
    /// Two items of a view have one name.
    Collision {
        /// The name that both have.
        name: String,
        /// The keys of both, after the items' own names.
        keys: [String; 2],
    },
    /// An argument is renamed to what another is called.
    ArgumentTaken {
        /// `tools.search.arguments.q.name`
        key: String,
        /// The name that is taken.
        name: String,
    },
    /// An argument is hidden that every call has to give.
    HiddenRequired {
        /// `tools.search.arguments.q.hidden`
        key: String,
    },
    /// Two things are said of an argument that cannot both be.
    Contradiction {
        /// `tools.search.arguments.q`
        key: String,
        /// One of them, and the other.
        said: [&'static str; 2],
    },
    /// The server does not take a value that is given for an argument.
    UnfitValue {
        /// `tools.search.arguments.q.fixed`
        key: String,
        /// What the server takes.
        why: String,
    },
    /// A name that the models of the dialect refuse.
    UnfitName {
        /// `tools.search.name`
        key: String,
        /// The dialect.
        dialect: Dialect,
        /// The nearest name that it takes.
        instead: String,
    },
    /// A URI that no resource or template can have.
    UnfitUri {
        /// `resources.docs://a.uri`
        key: String,
        /// What is wrong with it.
        why: UriError,
    },
    /// A URI that a view gives is that of another resource or template, too, or could be.
    UriTaken {
        /// `resources.docs://a.uri`
        key: String,
        /// What the server calls the one that is not listed.
        own: String,
        /// What the view would call it.
        uri: String,
    },
    /// A rule about what is shown holds for names that servers give, and for none that clients see.
    OwnName {
        /// `tools.include[0]`
        key: String,
        /// The rule, as it is written.
        rule: String,
        /// A server that has something of that name.
        server: String,
        /// What the server calls it.
        own: String,
        /// What clients see.
        name: String,
    },
    /// A rule of a selection holds for nothing.
    Idle {
        /// `tools.include[0]`
        key: String,
        /// The rule, as it is written.
        rule: String,
    },
}

impl Mistake {
    /// Where it is, below the variant.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Self::UnknownItem { key, .. }
            | Self::UnknownArgument { key, .. }
            | Self::ArgumentTaken { key, .. }
            | Self::HiddenRequired { key }
            | Self::Contradiction { key, .. }
            | Self::UnfitValue { key, .. }
            | Self::UnfitName { key, .. }
            | Self::UnfitUri { key, .. }
            | Self::UriTaken { key, .. }
            | Self::OwnName { key, .. }
            | Self::Idle { key, .. } => key,
            Self::Collision { keys, .. } => &keys[1],
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownItem { key, meant } => {
                write!(f, "`{key}` is in no list of this view")?;
                did_you_mean(f, meant.as_deref(), "take it out")
            }
            Self::UnknownArgument { key, meant } => {
                write!(f, "`{key}` is no argument")?;
                did_you_mean(f, meant.as_deref(), "take it out")
            }
            Self::Collision {
                name,
                keys: [one, other],
            } => write!(
                f,
                "`{one}` and `{other}` are both called `{}` in this view; give one of them another `name`",
                shown(name)
            ),
            Self::ArgumentTaken { key, name } => write!(
                f,
                "`{key}`: there is an argument `{}` already; choose another name, or rename or hide that one",
                shown(name)
            ),
            Self::HiddenRequired { key } => write!(
                f,
                "`{key}`: the server requires the argument; give it a `fixed` value or a `default`"
            ),
            Self::Contradiction {
                key,
                said: [one, other],
            } => {
                write!(f, "`{key}` has `{one}` and `{other}`; take out one of them")
            }
            Self::UnfitValue { key, why } => {
                write!(f, "`{key}` is not what the server takes: {why}")
            }
            Self::UnfitName {
                key,
                dialect,
                instead,
            } => write!(
                f,
                "`{key}` is no name for the dialect `{}`; write `{instead}`",
                dialect.as_str()
            ),
            Self::UnfitUri { key, why } => write!(f, "`{key}` {why}"),
            Self::UriTaken { key, own, uri } => write!(
                f,
                "`{key}` leaves no URI to `{}`: `{}` is another's in this view; give one of them another `uri`",
                shown(own),
                shown(uri)
            ),
            Self::OwnName {
                key,
                rule,
                server,
                own,
                name,
            } => write!(
                f,
                "`{key}`: `{rule}` holds for nothing that clients see: server `{server}` calls it `{}`, and they see `{}`; \
                 say whose it is, as in `{{server: {server}, name: {rule}}}`, or `server: \"*\"` for every server's",
                shown(own),
                shown(name)
            ),
            Self::Idle { key, rule } => write!(f, "`{key}`: `{rule}` holds for nothing"),
        }
    }
}

impl std::error::Error for Mistake {}

fn did_you_mean(f: &mut fmt::Formatter<'_>, meant: Option<&str>, else_: &str) -> fmt::Result {
    match meant {
        Some(meant) => write!(f, "; did you mean `{}`?", shown(meant)),
        None => write!(f, "; {else_}"),
    }
}

/// The overrides in `key` of items that are not in `there`.
pub fn unknown_items<'a>(
    key: &str,
    overridden: impl IntoIterator<Item = &'a str>,
    there: &[&str],
) -> Vec<Mistake> {
    let missing = overridden.into_iter().filter(|name| !there.contains(name));
    missing
        .map(|name| Mistake::UnknownItem {
            key: format!("{key}.{}", shown(name)),
            meant: nearest(name, there.iter().copied()).map(str::to_owned),
        })
        .collect()
}

/// The items in `key` that have one name in a view: of each the own name and the one in the view.
///
/// # Examples
///
/// ```
/// use crate::collisions;
///
/// let mistakes = collisions("tools", [("git_log", "log"), ("svn_log", "log"), ("log_off", "log_off")]);
/// assert_eq!(
///     mistakes[0].to_string(),
///     "`tools.git_log` and `tools.svn_log` are both called `log` in this view; give one of them another `name`",
/// );
/// assert_eq!(mistakes.len(), 1);
/// ```
pub fn collisions<'a>(
    key: &str,
    items: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<Mistake> {
    let mut first = BTreeMap::new();
    let mut mistakes = Vec::new();
    for (own, name) in items {
        if let Some(other) = first.insert(name, own) {
            mistakes.push(Mistake::Collision {
                name: name.to_owned(),
                keys: [other, own].map(|own| format!("{key}.{}", shown(own))),
            });
        }
    }
    mistakes
}
