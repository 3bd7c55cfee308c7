//! One limit: what it counts, for whom, and how often that may happen.

use globset::{GlobBuilder, GlobMatcher};

use crate::caller::{Bucket, Caller, Operation, named};
use crate::rate::Rate;

/// The maximum length of a limit's name, in bytes.
pub const MAX_LIMIT_NAME: usize = 64;

/// The maximum length of a pattern of tools, in bytes.
const MAX_PATTERN: usize = 512;

/// What a limit counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Counted {
    /// Calls of tools, and reads of resources and prompts.
    Calls,
    /// Changes of the variant.
    Switches,
    /// Refused credentials.
    AuthFailures,
}

/// What has a bucket of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Per {
    /// Each principal; anonymous clients by address. All sessions of a principal share the bucket.
    Principal,
    /// Each API key. Requests without a key are not counted.
    Key,
    /// Each address, for all clients that send from there.
    Address,
    /// Each tool, for all clients together.
    Tool,
    /// Each server, for all clients together.
    Server,
}

/// A limit of a rate.
///
/// # Examples
///
/// ```
/// use mcp_vary_rates::{Counted, Limit, Per};
///
/// let limit = Limit::new("search", Per::Principal, Counted::Calls, "10/min".parse()?)?;
/// // All tools that the pattern matches share the bucket of a principal; with `Per::Tool`, each has its own.
/// let limit = limit.for_tools("search_*")?;
/// assert_eq!(limit.name(), "search");
///
/// // A change of the variant belongs to no server, so a limit per server cannot count it.
/// assert!(Limit::new("s", Per::Server, Counted::Switches, "10/min".parse()?).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Limit {
    name: String,
    per: Per,
    counted: Counted,
    rate: Rate,
    tools: Option<GlobMatcher>,
    server: Option<String>,
}

/// Values do not make a [`Limit`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LimitError {
    /// The name is not usable. Clients see it.
    #[error(
        "the name of a limit must have 1 to {MAX_LIMIT_NAME} characters, all letters, digits or one of ` -_./:[]*`"
    )]
    Name,
    /// The limit would never count anything.
    #[error("a limit per {per} cannot count {counted}; count calls, or set `per` to `principal`")]
    NeverCounts {
        /// `tool`, `server` or `key`.
        per: &'static str,
        /// `switches` or `refused credentials`.
        counted: &'static str,
    },
    /// Tools or a server restrict a limit that counts no calls.
    #[error("`{restriction}` applies to limits that count calls")]
    Restriction {
        /// `tools` or `server`.
        restriction: &'static str,
    },
    /// The pattern of tools cannot be read.
    #[error("the pattern of tools {0}")]
    Pattern(String),
}

impl Limit {
    /// A limit for everything that `counted` names.
    ///
    /// # Errors
    ///
    /// If clients cannot be shown the name, or the limit would never count.
    pub fn new(name: &str, per: Per, counted: Counted, rate: Rate) -> Result<Self, LimitError> {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b" -_./:[]*".contains(&byte);
        if name.is_empty() || name.len() > MAX_LIMIT_NAME || !name.bytes().all(is_valid) {
            return Err(LimitError::Name);
        }
        if let Some((per, counted)) = contradiction(per, counted) {
            return Err(LimitError::NeverCounts { per, counted });
        }
        Ok(Self {
            name: name.to_owned(),
            per,
            counted,
            rate,
            tools: None,
            server: None,
        })
    }

    /// Counts only calls of tools whose name the glob matches; reads no longer count.
    ///
    /// # Errors
    ///
    /// If the pattern cannot be read, or the limit does not count calls.
    pub fn for_tools(mut self, pattern: &str) -> Result<Self, LimitError> {
        self.restrict("tools")?;
        if pattern.is_empty() || pattern.len() > MAX_PATTERN {
            let range = format!("must have 1 to {MAX_PATTERN} bytes; write `*` for all tools");
            return Err(LimitError::Pattern(range));
        }
        let glob = GlobBuilder::new(pattern)
            .literal_separator(false)
            .backslash_escape(true)
            .build();
        let glob =
            glob.map_err(|error| LimitError::Pattern(format!("cannot be read: {}", error.kind())))?;
        self.tools = Some(glob.compile_matcher());
        Ok(self)
    }

    /// Counts only calls and reads at the server with this key.
    ///
    /// # Errors
    ///
    /// If the limit does not count calls.
    pub fn for_server(mut self, server: &str) -> Result<Self, LimitError> {
        self.restrict("server")?;
        self.server = Some(server.to_owned());
        Ok(self)
    }

    fn restrict(&self, restriction: &'static str) -> Result<(), LimitError> {
        match self.counted {
            Counted::Calls => Ok(()),
            Counted::Switches | Counted::AuthFailures => {
                Err(LimitError::Restriction { restriction })
            }
        }
    }

    /// The name, which refused clients see.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How often.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// What is counted.
    pub fn counted(&self) -> Counted {
        self.counted
    }

    /// Whether the names of tools decide what is counted, or where.
    pub fn uses_tool_names(&self) -> bool {
        self.tools.is_some() || self.per == Per::Tool
    }

    /// The bucket that counts the operation; `None` if this limit does not count it.
    pub(crate) fn bucket<P: Clone>(
        &self,
        caller: &Caller<'_, P>,
        operation: &Operation<'_>,
    ) -> Option<Bucket<P>> {
        if !self.counts(operation) {
            return None;
        }
        match (self.per, *operation) {
            (Per::Principal, _) => Some(caller.client()),
            (Per::Address, _) => Some(caller.host()),
            (Per::Key, _) => caller.key.map(named),
            (Per::Tool, Operation::CallTool { tool, .. }) => Some(named(tool)),
            (Per::Server, Operation::CallTool { server, .. } | Operation::Read { server }) => {
                Some(named(server))
            }
            (Per::Tool | Per::Server, _) => None,
        }
    }

    fn counts(&self, operation: &Operation<'_>) -> bool {
        let is_server = |server: &str| self.server.as_ref().is_none_or(|native| native == server);
        match *operation {
            Operation::CallTool { server, tool } => {
                let is_tool = |tools: &GlobMatcher| tools.is_match(tool);
                self.counted == Counted::Calls
                    && is_server(server)
                    && self.tools.as_ref().is_none_or(is_tool)
            }
            Operation::Read { server } => {
                self.counted == Counted::Calls && is_server(server) && self.tools.is_none()
            }
            Operation::SwitchVariant => self.counted == Counted::Switches,
            Operation::AuthFailure => self.counted == Counted::AuthFailures,
        }
    }
}

/// Limits are equal if they have the same name and count the same operations at the same rate.
impl PartialEq for Limit {
    fn eq(&self, other: &Self) -> bool {
        let glob = |limit: &Self| limit.tools.as_ref().map(|tools| tools.glob().clone());
        (&self.name, self.per, self.counted, self.rate, &self.server)
            == (
                &other.name,
                other.per,
                other.counted,
                other.rate,
                &other.server,
            )
            && glob(self) == glob(other)
    }
}

/// The names of `per` and `counted`, if a limit with both never counts.
fn contradiction(per: Per, counted: Counted) -> Option<(&'static str, &'static str)> {
    let counted_name = match counted {
        Counted::Calls => return None,
        Counted::Switches => "switches",
        Counted::AuthFailures => "refused credentials",
    };
    match per {
        Per::Tool => Some(("tool", counted_name)),
        Per::Server => Some(("server", counted_name)),
        // A refused credential has no name of a key.
        Per::Key if counted == Counted::AuthFailures => Some(("key", counted_name)),
        Per::Principal | Per::Key | Per::Address => None,
    }
}
