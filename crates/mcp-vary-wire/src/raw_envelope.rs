//! The members of a JSON-RPC envelope as written: what messages of clients and of servers have in common.
//!
//! Nothing is checked here. [`envelope`](crate::envelope) is strict, since clients get an error that explains what is
//! wrong; [`server_message`](crate::server_message) is tolerant, since servers in use omit `jsonrpc` or send `null`.

use std::borrow::Cow;
use std::fmt;

use mcp_vary::json::{self, MAX_DEPTH, ObjectReader};
use serde::de::{Deserializer as _, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an envelope, each as written.
#[derive(Debug, Default)]
pub(crate) struct RawEnvelope<'a> {
    pub(crate) jsonrpc: Option<&'a str>,
    pub(crate) id: Option<&'a str>,
    pub(crate) method: Option<&'a str>,
    pub(crate) params: Option<&'a str>,
    pub(crate) result: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
    /// Whether `jsonrpc` is repeated, which servers may do. Any other repeated member is an error.
    pub(crate) repeats_jsonrpc: bool,
    /// Whether it has other members, too.
    pub(crate) has_others: bool,
}

impl<'a> RawEnvelope<'a> {
    /// Reads nearly all messages in one pass; `None` for unusual ones and for errors, which [`read`](Self::read)
    /// explains, and for text that nests deeper than [`MAX_DEPTH`].
    // Measured: returned by value, the members cost a tenth of a small message.
    #[inline(always)]
    pub(crate) fn read_plain(text: &'a str) -> Option<Self> {
        Self::read_plain_with(text, |reader| reader.value().ok())
    }

    /// Like [`read_plain`](Self::read_plain), with a function that reads the value of `params` and returns its text.
    #[inline(always)]
    pub(crate) fn read_plain_with(
        text: &'a str,
        mut read_params: impl FnMut(&mut ObjectReader<'a>) -> Option<&'a str>,
    ) -> Option<Self> {
        let mut envelope = Self::default();
        let mut reader = ObjectReader::open(text, MAX_DEPTH)?;
        while let Some(key) = reader.key().ok()? {
            let value = match key {
                "params" => read_params(&mut reader)?,
                _ => reader.value().ok()?,
            };
            let slot = match key {
                "jsonrpc" => &mut envelope.jsonrpc,
                "id" => &mut envelope.id,
                "method" => &mut envelope.method,
                "params" => &mut envelope.params,
                "result" => &mut envelope.result,
                "error" => &mut envelope.error,
                key if key.contains('\\') => return None,
                _ => {
                    envelope.has_others = true;
                    continue;
                }
            };
            if slot.replace(value).is_some() {
                return None;
            }
        }
        reader.is_at_end().then_some(envelope)
    }

    /// Reads a message of any depth.
    ///
    /// # Errors
    ///
    /// When `text` is not JSON, is not an object, or repeats a member of the envelope.
    #[cold]
    pub(crate) fn read(text: &'a str) -> serde_json::Result<Self> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let envelope = (&mut reader).deserialize_map(EnvelopeVisitor)?;
        reader.end()?;
        Ok(envelope)
    }

    /// Whether a notification is written as the specification demands, so that every client can read it.
    pub(crate) fn is_strict_notification(&self) -> bool {
        let others = [self.id, self.result, self.error];
        self.jsonrpc == Some("\"2.0\"")
            && !self.repeats_jsonrpc
            && others.iter().all(Option::is_none)
            && self.params.is_none_or(|params| params.starts_with('{'))
    }

    /// The method, if there is one and it is a string.
    #[inline]
    pub(crate) fn method(&self) -> Option<Cow<'a, str>> {
        json::unquoted(self.method?)
    }
}

/// A member of the envelope; `null` counts as absent, since some programs write it where there is no value.
#[inline]
pub(crate) fn present(member: Option<&str>) -> Option<&str> {
    member.filter(|value| *value != "null")
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = RawEnvelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut envelope = RawEnvelope::default();
        while let Some(member) = map.next_key::<Member>()? {
            let (name, slot) = match member {
                Member::Jsonrpc => ("jsonrpc", &mut envelope.jsonrpc),
                Member::Id => ("id", &mut envelope.id),
                Member::Method => ("method", &mut envelope.method),
                Member::Params => ("params", &mut envelope.params),
                Member::Result => ("result", &mut envelope.result),
                Member::Error => ("error", &mut envelope.error),
                Member::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                    envelope.has_others = true;
                    continue;
                }
            };
            let value: &'de RawValue = map.next_value()?;
            let is_repeated = slot.replace(value.get()).is_some();
            match member {
                Member::Jsonrpc => envelope.repeats_jsonrpc |= is_repeated,
                _ if is_repeated => {
                    return Err(A::Error::custom(format_args!("`{name}` is given twice")));
                }
                _ => {}
            }
        }
        Ok(envelope)
    }
}

/// The members of the envelope.
#[derive(Clone, Copy, serde::Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Member {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Unknown,
}
