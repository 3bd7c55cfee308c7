//! What a run checks, and how long it may take.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::called_tool::NamedTool;
use crate::check::Check;
use crate::era::{BOTH, Era};
use crate::extension::Extension;
use crate::limits::Limits;
use crate::registry;

/// Which checks run, in which eras, and the time limits.
///
/// By default all checks run in both eras, each request may take 10 s, the first response of a process 20 s, and
/// the run 55 s: with the end of all processes there is a verdict within a minute.
#[derive(Clone, Debug)]
pub struct Options {
    only: Vec<String>,
    expected: Vec<Extension>,
    tools: Vec<NamedTool>,
    eras: Vec<Era>,
    limits: Limits,
    run_limit: Duration,
    is_for_clients: bool,
}

/// Arguments of a tool that are not a JSON object.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "the arguments of the tool `{tool}` are not a JSON object; write them as `{{\"city\": \"Bern\"}}`"
)]
pub struct InvalidArguments {
    tool: String,
}

/// A selector that matches no check.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "no check is called {0:?}; use a requirement such as `SV-9`, or a check such as `SV-1/unique-ids`"
)]
pub struct UnknownCheck(String);

impl Default for Options {
    fn default() -> Self {
        Self {
            only: Vec::new(),
            expected: Vec::new(),
            tools: Vec::new(),
            eras: BOTH.to_vec(),
            limits: Limits {
                request: Duration::from_secs(10),
                start: Duration::from_secs(20),
            },
            run_limit: Duration::from_secs(55),
            is_for_clients: false,
        }
    }
}

impl Options {
    /// The options of a run that checks a client: [`run_client`](crate::run_client).
    ///
    /// By default all checks of clients run in both eras. A client may take 20 s until its first message, is ended after 5 s
    /// without a message, or after 30 s in any case.
    pub fn for_clients() -> Self {
        let limits = Limits {
            request: Duration::from_secs(5),
            start: Duration::from_secs(20),
        };
        Self {
            limits,
            is_for_clients: true,
            ..Self::default()
        }
    }

    /// The same, with only these checks: identifiers of checks or of requirements. None means all.
    ///
    /// # Errors
    ///
    /// If a selector matches no check, so that a typing error is not taken for a passing run.
    pub fn only(
        mut self,
        selectors: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, UnknownCheck> {
        self.only = selectors.into_iter().map(Into::into).collect();
        let is_for_clients = self.is_for_clients;
        let is_unknown = |selector: &&String| {
            let mut checks = registry::of(is_for_clients);
            !checks.any(|check| check.matches(selector))
        };
        match self.only.iter().find(is_unknown) {
            Some(selector) => Err(UnknownCheck(selector.clone())),
            None => Ok(self),
        }
    }

    /// The same, from a server that must declare `extension`. Without this, the checks of an extension that the server does
    /// not declare are not applicable; with it, they object. [`Options::only`] expects what it selects.
    #[must_use]
    pub fn expect(mut self, extension: Extension) -> Self {
        self.expected.push(extension);
        self
    }

    /// The same, with a tool that the checks may call although it does not declare `readOnlyHint: true`, and whose results they
    /// prefer. `arguments` is a JSON object; without it, the arguments are made from the input schema.
    ///
    /// # Errors
    ///
    /// If the arguments are not a JSON object.
    pub fn tool(
        mut self,
        name: impl Into<String>,
        arguments: Option<&str>,
    ) -> Result<Self, InvalidArguments> {
        let tool = name.into();
        let arguments = match arguments.map(serde_json::from_str::<Map<String, Value>>) {
            None => None,
            Some(Ok(arguments)) => Some(arguments.into()),
            Some(Err(_)) => return Err(InvalidArguments { tool }),
        };
        let name = tool;
        self.tools.push(NamedTool { name, arguments });
        Ok(self)
    }

    /// The same, in one era.
    #[must_use]
    pub fn era(mut self, era: Era) -> Self {
        self.eras = vec![era];
        self
    }

    /// The same, with a limit for each request and its response. Of a client: how long it may be silent before it is ended.
    #[must_use]
    pub fn request_limit(mut self, limit: Duration) -> Self {
        self.limits.request = limit;
        self
    }

    /// The same, with a limit for the first response of each process of a command: a package runner may have to install it.
    #[must_use]
    pub fn start_limit(mut self, limit: Duration) -> Self {
        self.limits.start = limit;
        self
    }

    /// The same, with a limit for the whole run. Checks that were not reached have no verdict.
    #[must_use]
    pub fn run_limit(mut self, limit: Duration) -> Self {
        self.run_limit = limit;
        self
    }

    /// Whether the run includes `check`.
    pub fn selects(&self, check: &Check) -> bool {
        self.only.is_empty() || self.only.iter().any(|selector| check.matches(selector))
    }

    /// Whether the run asks for `check` also of servers that do not declare its extension.
    pub(crate) fn asks_for(&self, check: &Check) -> bool {
        let extension = check.extension();
        !self.only.is_empty() || extension.is_some_and(|extension| self.expects(extension))
    }

    pub(crate) fn selects_all(&self) -> bool {
        self.only.is_empty()
    }

    /// Whether the server must declare `extension`, and have something that its checks can use.
    pub(crate) fn expects(&self, extension: Extension) -> bool {
        self.expected.contains(&extension)
    }

    pub(crate) fn tools(&self) -> &[NamedTool] {
        &self.tools
    }

    pub(crate) fn is_for_clients(&self) -> bool {
        self.is_for_clients
    }

    pub(crate) fn eras(&self) -> &[Era] {
        &self.eras
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// The limit of the whole run.
    pub(crate) fn whole(&self) -> Duration {
        self.run_limit
    }
}

/// The most seconds of a run.
pub(crate) const LONGEST_RUN: u64 = 3600;
