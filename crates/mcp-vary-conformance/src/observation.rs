//! What a client under test did in its runs, as the checks of clients read it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::era::Era;
use crate::extension::{NEGOTIATION, SELECTOR, VARIANTS};
use crate::json::{at, object_at, text_at};
use crate::scope::Scope;
use crate::traffic::Exchange;

/// The most exchanges of a run that a finding shows.
const EXCHANGES: usize = 8;

/// What the mock server is like in one run of the client.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Scenario {
    /// It declares both extensions, offers three variants, and its tools have two pages.
    Ordinary,
    /// It declares no extension, and refuses selectors.
    NoExtensions,
    /// It declares server variants without any variant, and refuses selectors.
    NoVariants,
    /// Its variants have hints and members that no document knows.
    UnknownMembers,
    /// The settings of its extensions have wrong types.
    BadSettings,
    /// It offers variants, and refuses every selector as invalid.
    RefusedSelectors,
    /// It refuses every request for a list or item as one with an invalid selector.
    RefusedRequests,
    /// Its tools and resources change after they were listed, in all variants.
    ChangedLists,
    /// Its tools change after they were listed, in the variant in which they were.
    ChangedVariant,
}

impl Scenario {
    /// All of them, in the order in which they run.
    pub(crate) const ALL: [Self; 9] = [
        Self::Ordinary,
        Self::NoExtensions,
        Self::NoVariants,
        Self::UnknownMembers,
        Self::BadSettings,
        Self::RefusedSelectors,
        Self::RefusedRequests,
        Self::ChangedLists,
        Self::ChangedVariant,
    ];

    /// Its name, which the client receives in `MCP_CONFORMANCE_SCENARIO`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary",
            Self::NoExtensions => "no-extensions",
            Self::NoVariants => "no-variants",
            Self::UnknownMembers => "unknown-members",
            Self::BadSettings => "bad-settings",
            Self::RefusedSelectors => "refused-selectors",
            Self::RefusedRequests => "refused-requests",
            Self::ChangedLists => "changed-lists",
            Self::ChangedVariant => "changed-variant",
        }
    }
}

/// Something that was sent: by the client with what it was answered, or by the mock server alone.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// The client's message; none for a notification of the server.
    pub(crate) message: Option<Value>,
    /// The response to a request, or the server's notification.
    pub(crate) response: Option<Value>,
    /// When it was, counted from the start of the run.
    pub(crate) time: Duration,
}

impl Event {
    /// The method of the client's message; empty for others.
    pub(crate) fn method(&self) -> &str {
        let message = self.message.as_ref();
        message
            .and_then(|message| text_at(message, &["method"]))
            .unwrap_or_default()
    }

    /// The value below `keys` in the parameters of the client's message.
    pub(crate) fn param(&self, keys: &[&str]) -> Option<&Value> {
        at(at(self.message.as_ref()?, &["params"])?, keys)
    }

    /// The variant that the client selects, whatever its type.
    pub(crate) fn selector(&self) -> Option<&Value> {
        self.param(&["_meta", SELECTOR])
    }

    /// The variant that a notification of the server names.
    pub(crate) fn notified_variant(&self) -> Option<&str> {
        text_at(self.response.as_ref()?, &["params", "_meta", SELECTOR])
    }

    /// The result that the client received.
    pub(crate) fn result(&self) -> Option<&Value> {
        self.response.as_ref()?.get("result")
    }

    /// The capabilities that the message declares.
    pub(crate) fn capabilities(&self) -> Option<&Value> {
        match self.method() {
            "initialize" => self.param(&["capabilities"]),
            _ => self.param(&["_meta", "io.modelcontextprotocol/clientCapabilities"]),
        }
    }

    fn to_exchange(&self) -> Exchange {
        let text = |value: &Option<Value>| value.as_ref().map(Value::to_string);
        let sent = text(&self.message).unwrap_or("(a notification of the server)".to_owned());
        Exchange::new(&sent, &text(&self.response).unwrap_or_default())
    }
}

/// How a run ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// The client ended with success.
    Success,
    /// The client ended without success; the text is its status.
    Failure(String),
    /// The client was silent, and was ended.
    Silence,
    /// The client sent messages until its time was over, or more than a run records, and was ended.
    Limit,
}

/// One run of the client.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) events: Vec<Event>,
    pub(crate) end: End,
    /// When it ended, counted from its start.
    pub(crate) duration: Duration,
    /// What it wrote to standard output, as far as it was read.
    pub(crate) stdout: String,
    /// The last lines of its standard error.
    pub(crate) stderr: String,
}

impl Record {
    /// The client's messages with their places in the record.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (usize, &Event)> {
        let events = self.events.iter().enumerate();
        events.filter(|(_, event)| event.message.is_some())
    }

    /// The messages with `method`.
    pub(crate) fn with_method(&self, method: &str) -> impl Iterator<Item = (usize, &Event)> {
        let messages = self.messages();
        messages.filter(move |(_, event)| event.method() == method)
    }

    /// Whether `method` was answered with a result.
    pub(crate) fn has_result(&self, method: &str) -> bool {
        self.with_method(method)
            .any(|(_, event)| event.result().is_some())
    }

    /// Whether the client ended as one that has nothing to complain about: with success, or not by itself.
    pub(crate) fn is_content(&self) -> bool {
        matches!(self.end, End::Success | End::Silence)
    }

    /// How the client ended, as part of a sentence.
    pub(crate) fn describe_end(&self) -> String {
        match &self.end {
            End::Success => "the client ended with success".to_owned(),
            End::Failure(status) => format!("the client ended with {status}"),
            End::Silence => "the client was silent and was ended".to_owned(),
            End::Limit => "the client sent messages until it was ended".to_owned(),
        }
    }

    /// The last exchanges up to `last_event`, or of all.
    pub(crate) fn exchanges(&self, last_event: Option<usize>) -> Vec<Exchange> {
        let end = last_event.map_or(self.events.len(), |last| last + 1);
        let until_end = self.events.get(..end).unwrap_or(&self.events);
        let first = until_end.len().saturating_sub(EXCHANGES);
        let events = until_end.iter().skip(first);
        events.map(Event::to_exchange).collect()
    }
}

/// All runs of a client in one era.
#[derive(Debug)]
pub(crate) struct Observation<'a> {
    pub(crate) era: Era,
    pub(crate) records: &'a BTreeMap<Scenario, Record>,
    /// How long a client that is notified must stay until it must have reacted.
    pub(crate) reaction: Duration,
}

impl<'a> Observation<'a> {
    /// The run in `scenario`. The run in the ordinary one stands for one that is missing.
    pub(crate) fn of(&self, scenario: Scenario) -> &'a Record {
        let record = self.records.get(&scenario);
        record
            .or_else(|| self.records.get(&Scenario::Ordinary))
            .unwrap_or(&NO_RECORD)
    }

    /// The run before the ordinary server.
    pub(crate) fn ordinary(&self) -> &'a Record {
        self.of(Scenario::Ordinary)
    }

    /// The capabilities that the ordinary run declares, with the place of the message. Of several that differ, those of the
    /// first message with extensions: some clients look at a server before they declare anything.
    pub(crate) fn declaration(&self) -> Option<(usize, &'a Value)> {
        let has_extensions =
            |(_, capabilities): &(usize, &Value)| capabilities.get("extensions").is_some();
        let mut declarations = self.declarations();
        let extended = declarations.find(has_extensions);
        extended.or_else(|| self.declarations().next())
    }

    /// The settings of `extension` that the ordinary run declares first.
    pub(crate) fn settings(&self, extension: &str) -> Option<(usize, &'a Value)> {
        self.declarations().find_map(|(event, capabilities)| {
            let settings = object_at(capabilities, &["extensions"])?.get(extension)?;
            Some((event, settings))
        })
    }

    /// All capabilities that the ordinary run declares.
    fn declarations(&self) -> impl Iterator<Item = (usize, &'a Value)> + use<'a> {
        let messages = self.ordinary().messages();
        messages.filter_map(|(at, event)| Some((at, event.capabilities()?)))
    }

    /// Whether the client is one to which checks of `scope` apply.
    pub(crate) fn is_in(&self, scope: Scope) -> bool {
        let selects = || {
            let mut messages = self.records.values().flat_map(Record::messages);
            messages.any(|(_, event)| event.selector().is_some())
        };
        match scope {
            Scope::NegotiatingClient => self.settings(NEGOTIATION).is_some(),
            Scope::VariantsClient => self.settings(VARIANTS).is_some() || selects(),
            _ => scope == Scope::Any,
        }
    }
}

/// Of a client that was never run.
static NO_RECORD: Record = Record {
    events: Vec::new(),
    end: End::Silence,
    duration: Duration::ZERO,
    stdout: String::new(),
    stderr: String::new(),
};
