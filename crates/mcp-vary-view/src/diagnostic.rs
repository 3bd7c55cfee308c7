//! Diagnostics of a configured view, each with its key and the fix.

use std::collections::BTreeMap;
use std::fmt;

use mcp_vary::ignored::for_display;
use mcp_vary::text::is_invisible;

use super::dialect::Dialect;
use super::fault::nearest;
use super::uri::UriError;

/// One problem of a configured view.
///
/// Keys are relative to the variant: `tools.search.arguments.q.name`.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ViewDiagnostic {
    /// An override of an item that no server lists or that the view does not show.
    UnknownItem {
        /// `tools.serach`
        key: String,
        /// A similar key that exists.
        suggestion: Option<String>,
    },
    /// An override of an argument that the item does not have.
    UnknownArgument {
        /// `tools.search.arguments.quer`
        key: String,
        /// A similar key that exists.
        suggestion: Option<String>,
    },
    /// Two items of a view have one name.
    Collision {
        /// The name that both have.
        name: String,
        /// The keys of both, with the items' names on the server.
        keys: [String; 2],
    },
    /// An argument is renamed to the name of another.
    ArgumentNameTaken {
        /// `tools.search.arguments.q.name`
        key: String,
        /// The name that is taken.
        name: String,
    },
    /// A required argument is hidden.
    HiddenRequired {
        /// `tools.search.arguments.q.hidden`
        key: String,
    },
    /// Two settings of an argument exclude each other.
    Conflict {
        /// `tools.search.arguments.q`
        key: String,
        /// The two settings.
        settings: [&'static str; 2],
    },
    /// The server does not accept a configured value.
    InvalidValue {
        /// `tools.search.arguments.q.fixed`
        key: String,
        /// What the server accepts.
        reason: String,
    },
    /// A name that the models of the dialect reject.
    InvalidName {
        /// `tools.search.name`
        key: String,
        /// The dialect.
        dialect: Dialect,
        /// The nearest accepted name.
        suggestion: String,
    },
    /// An invalid URI for a resource or template.
    InvalidUri {
        /// `resources.docs://a.uri`
        key: String,
        /// Why it is invalid.
        reason: UriError,
    },
    /// A configured URI is or may be that of another resource or template.
    UriTaken {
        /// `resources.docs://a.uri`
        key: String,
        /// The server's URI of the item that is not listed.
        upstream_uri: String,
        /// Its URI in the view.
        uri: String,
    },
    /// A selection rule matches names on the servers, but no name that clients see.
    UpstreamNameOnly {
        /// `tools.include[0]`
        key: String,
        /// The rule, as it is written.
        rule: String,
        /// A server with an item of that name.
        server: String,
        /// Its name on the server.
        upstream_name: String,
        /// Its name for clients.
        name: String,
    },
    /// A selection rule matches nothing.
    UnmatchedRule {
        /// `tools.include[0]`
        key: String,
        /// The rule, as it is written.
        rule: String,
        /// The name that was probably meant.
        suggestion: Option<String>,
    },
}

impl ViewDiagnostic {
    /// The key, relative to the variant.
    pub fn key(&self) -> &str {
        match self {
            Self::UnknownItem { key, .. }
            | Self::UnknownArgument { key, .. }
            | Self::ArgumentNameTaken { key, .. }
            | Self::HiddenRequired { key }
            | Self::Conflict { key, .. }
            | Self::InvalidValue { key, .. }
            | Self::InvalidName { key, .. }
            | Self::InvalidUri { key, .. }
            | Self::UriTaken { key, .. }
            | Self::UpstreamNameOnly { key, .. }
            | Self::UnmatchedRule { key, .. } => key,
            Self::Collision { keys, .. } => &keys[1],
        }
    }

    /// Whether it is a note about a guard: a rule of `exclude` that matches nothing now may match what servers add later.
    pub fn is_note(&self) -> bool {
        matches!(self, Self::UnmatchedRule { key, .. } if key.contains(".exclude["))
    }

    /// The problem, to be read after the key.
    pub fn problem(&self) -> String {
        match self {
            Self::UnknownItem { key, .. } => {
                let kind = key.split('.').next().unwrap_or_default();
                let singular = kind.strip_suffix('s');
                let known = singular.filter(|kind| ["tool", "prompt", "resource"].contains(kind));
                let item = known.unwrap_or("item");
                format!("names no {item} that a server has")
            }
            Self::UnknownArgument { .. } => "is not an argument".to_owned(),
            Self::Collision { name, keys } => {
                let name = printable(name);
                let other = &keys[0];
                format!("is called `{name}` in this view, like `{other}`")
            }
            Self::ArgumentNameTaken { name, .. } => {
                let name = printable(name);
                format!("is `{name}`, which is the name of another argument")
            }
            Self::HiddenRequired { .. } => "hides an argument that the server requires".to_owned(),
            Self::Conflict { settings, .. } => {
                let [one, other] = settings;
                format!("has `{one}` and `{other}`")
            }
            Self::InvalidValue { reason, .. } => {
                format!("is not accepted by the server: {reason}")
            }
            Self::InvalidName { dialect, .. } => {
                format!("is not a valid name in the dialect `{}`", dialect.as_str())
            }
            Self::InvalidUri { reason, .. } => reason.problem(),
            Self::UriTaken {
                upstream_uri, uri, ..
            } => {
                let upstream = printable(upstream_uri);
                let uri = printable(uri);
                format!("leaves no URI for `{upstream}`: another item has `{uri}` in this view")
            }
            Self::UpstreamNameOnly {
                server,
                upstream_name,
                name,
                ..
            } => {
                let upstream = printable(upstream_name);
                let name = printable(name);
                format!(
                    "matches nothing that clients see: the item is `{upstream}` on server `{server}`, and clients see `{name}`"
                )
            }
            Self::UnmatchedRule { rule, .. } if self.is_note() => {
                format!("matches nothing now: `{rule}`")
            }
            Self::UnmatchedRule { rule, .. } => format!("matches nothing: `{rule}`"),
        }
    }

    /// How to fix it.
    pub fn fix(&self) -> String {
        let fix = match self {
            Self::UnknownItem { suggestion, .. } | Self::UnknownArgument { suggestion, .. } => {
                return did_you_mean(suggestion.as_deref(), "take it out");
            }
            Self::UnmatchedRule {
                suggestion: None, ..
            } if self.is_note() => "it will exclude what the servers add later",
            Self::UnmatchedRule { suggestion, .. } => {
                return did_you_mean(suggestion.as_deref(), "correct it, or take it out");
            }
            Self::InvalidName { suggestion, .. } => return format!("write `{suggestion}`"),
            Self::InvalidUri { reason, .. } => return reason.fix(),
            Self::UpstreamNameOnly { rule, server, .. } => {
                return format!(
                    "name the server, as in `{{server: {server}, name: {rule}}}`, or write `server: \"*\"` for all servers"
                );
            }
            Self::Collision { .. } => "give one of them another `name`",
            Self::ArgumentNameTaken { .. } => "choose another name, or rename or hide that one",
            Self::HiddenRequired { .. } => "give it a `fixed` value or a `default`",
            Self::Conflict { .. } => "take out one of them",
            Self::InvalidValue { .. } => "write a value that it accepts",
            Self::UriTaken { .. } => "give one of them another `uri`",
        };
        fix.to_owned()
    }
}

/// The key, the problem and the fix.
impl fmt::Display for ViewDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}; {}", self.key(), self.problem(), self.fix())
    }
}

impl std::error::Error for ViewDiagnostic {}

fn did_you_mean(suggestion: Option<&str>, otherwise: &str) -> String {
    match suggestion {
        Some(name) => format!("did you mean `{}`?", printable(name)),
        None => otherwise.to_owned(),
    }
}

/// A name of a server, bounded and without characters that could deceive a reader.
fn printable(name: &str) -> String {
    let mut out = String::new();
    for (at, c) in name.chars().enumerate() {
        match c {
            _ if at == MAX_PRINTED => {
                out.push('…');
                break;
            }
            c if is_invisible(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// The most characters of a name in a message.
const MAX_PRINTED: usize = 128;

/// One diagnostic for each override in `key` of an item that is not in `there`.
pub fn unknown_items<'a>(
    key: &str,
    overridden: impl IntoIterator<Item = &'a str>,
    there: &[&str],
) -> Vec<ViewDiagnostic> {
    let overridden: Vec<&str> = overridden.into_iter().collect();
    // What has an override of its own is not what another one means.
    let free = || there.iter().filter(|name| !overridden.contains(name));
    let missing = overridden.iter().filter(|name| !there.contains(name));
    missing
        .map(|name| ViewDiagnostic::UnknownItem {
            key: format!("{key}.{}", for_display(name)),
            suggestion: nearest(name, free().copied()).map(str::to_owned),
        })
        .collect()
}

/// One diagnostic for each two items in `key` with the same name in a view; `items` are pairs of the server's name
/// and the view's.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::collisions;
///
/// let mistakes = collisions("tools", [("git_log", "log"), ("svn_log", "log"), ("log_off", "log_off")]);
/// assert_eq!(
///     mistakes[0].to_string(),
///     "`tools.svn_log` is called `log` in this view, like `tools.git_log`; give one of them another `name`",
/// );
/// assert_eq!(mistakes.len(), 1);
/// ```
pub fn collisions<'a>(
    key: &str,
    items: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<ViewDiagnostic> {
    let mut first = BTreeMap::new();
    let mut mistakes = Vec::new();
    for (native, name) in items {
        if let Some(other) = first.insert(name, native) {
            mistakes.push(ViewDiagnostic::Collision {
                name: name.to_owned(),
                keys: [other, native].map(|native| format!("{key}.{}", for_display(native))),
            });
        }
    }
    mistakes
}
