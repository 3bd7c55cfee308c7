//! A call that has ended, as the history has it.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary_audit::{
    Actor, ClientInfo, LongText, Outcome, Record, Target, Text, Transport, VariantChoice,
};
use mcp_vary_wire::revision::Era;
use tokio::time::Instant;

use crate::finished_call::{CallSource, CallTarget, FinishedCall, WatchedClient, is_uri};
use crate::request_line::without_secrets;

/// A call that has ended, by its record, of which it takes what the history has.
pub(crate) struct EndedCall<'a> {
    pub(crate) record: &'a mut Record,
    pub(crate) ended: Instant,
    /// The server that worked on it.
    pub(crate) server: Option<Arc<str>>,
    /// What [`FinishedCall`] has of this name.
    pub(crate) arguments: Option<String>,
    /// As above.
    pub(crate) error: Option<String>,
    /// As above.
    pub(crate) is_unknown_tool: bool,
}

#[cfg(test)]
impl<'a> EndedCall<'a> {
    /// What its record alone says of it.
    pub(crate) const fn new(record: &'a mut Record, ended: Instant) -> Self {
        Self {
            record,
            ended,
            server: None,
            arguments: None,
            error: None,
            is_unknown_tool: false,
        }
    }
}

/// A call that has ended as the history has it: with the texts of its record, of which most are shared with others.
#[derive(Clone, Debug)]
pub(crate) struct RecordedCall {
    pub(crate) id: u64,
    ended: Instant,
    method: Option<Text>,
    target: Option<Target>,
    /// The server that worked on it.
    server: Option<Arc<str>>,
    actor: Option<Arc<Actor>>,
    client: Option<Arc<ClientInfo>>,
    era: Option<Era>,
    transport: Option<Transport>,
    variant: Option<Text>,
    reason: Option<Text>,
    variant_rule: Option<Text>,
    rule: Option<Text>,
    arguments: Option<String>,
    pub(crate) outcome: Outcome,
    code: Option<i64>,
    error: Option<String>,
    is_unknown_tool: bool,
    duration: Option<Duration>,
    waited: Option<Duration>,
    at_server: Option<Duration>,
    bytes_in: Option<u64>,
    bytes_out: Option<u64>,
    /// The bytes of memory that it takes, with all of what it may share with others.
    pub(crate) size: usize,
}

impl RecordedCall {
    /// The call with this number, which takes what its record has.
    pub(crate) fn new(id: u64, call: EndedCall<'_>) -> Self {
        let record = call.record;
        let choice = record.variant.take();
        let (variant, reason, variant_rule) = match choice {
            Some(VariantChoice {
                id, reason, rule, ..
            }) => (Some(id), Some(reason), rule),
            None => (None, None, None),
        };
        let mut recorded = Self {
            id,
            ended: call.ended,
            method: record.method.take(),
            target: record.target.take().map(shown_target),
            server: call.server,
            actor: record.actor.take(),
            client: record.client.take(),
            era: record.era,
            transport: record.transport,
            variant,
            reason,
            variant_rule,
            rule: record.rule.take(),
            arguments: call.arguments,
            outcome: record.outcome,
            code: record.code,
            error: call.error,
            is_unknown_tool: call.is_unknown_tool,
            duration: record.duration,
            waited: record.waited,
            at_server: record.upstream_duration,
            bytes_in: record.bytes_in,
            bytes_out: record.bytes_out,
            size: 0,
        };
        recorded.size = recorded.measured();
        recorded
    }

    fn measured(&self) -> usize {
        let target = self.target.as_ref();
        let client = self.client.as_ref();
        let names = [
            target.map(|target| &target.name),
            target.and_then(|target| target.upstream_name.as_ref()),
        ];
        let texts = [
            client.map(|client| &client.name),
            client.map(|client| &client.version),
            self.principal(),
            self.variant.as_ref(),
            self.variant_rule.as_ref(),
            self.rule.as_ref(),
        ];
        let names = names.into_iter().flatten().map(|name| name.as_str().len());
        let texts = texts.into_iter().flatten().map(|text| text.as_str().len());
        let copied = [&self.arguments, &self.error].into_iter().flatten();
        let server = self.server.as_ref().map_or(0, |server| server.len());
        size_of::<Self>()
            + names
                .chain(texts)
                .chain(copied.map(String::len))
                .sum::<usize>()
            + server
    }

    fn principal(&self) -> Option<&Text> {
        let actor = self.actor.as_ref()?;
        Some(actor.name.as_ref().unwrap_or(&actor.id))
    }

    /// The call as others get it.
    pub(crate) fn finished(&self) -> FinishedCall {
        FinishedCall {
            id: self.id,
            ended: self.ended,
            target: Arc::new(self.called()),
            source: Arc::new(self.source()),
            arguments: self.arguments.clone(),
            outcome: self.outcome,
            code: self.code,
            error: self.error.clone(),
            is_unknown_tool: self.is_unknown_tool,
            duration: self.duration,
            waited: self.waited,
            at_server: self.at_server,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
        }
    }

    fn called(&self) -> CallTarget {
        let target = self.target.as_ref();
        CallTarget {
            method: self.method.clone().unwrap_or(Text::from_static("")),
            target: target.map(|target| target.name.clone()),
            server: self.server.as_ref().map(Text::shared),
            upstream_name: target.and_then(|target| target.upstream_name.clone()),
        }
    }

    fn source(&self) -> CallSource {
        CallSource {
            client: self.client.as_ref().map(|client| WatchedClient {
                name: client.name.clone(),
                version: client.version.clone(),
            }),
            era: self.era,
            transport: self.transport,
            principal: self.principal().cloned(),
            variant: self.variant.clone(),
            reason: self.reason.clone(),
            variant_rule: self.variant_rule.clone(),
            rule: self.rule.clone(),
        }
    }
}

/// What is called; a URI without what may be a secret.
fn shown_target(target: Target) -> Target {
    if !is_uri(target.kind) {
        return target;
    }
    Target {
        name: LongText::new(without_secrets(target.name.as_str())),
        upstream_name: None,
        ..target
    }
}
