//! The params of a request, parsed once: its members and those of its `_meta`.

use mcp_vary::json::Members;

use crate::envelope::{Message, WireError, read_unusual, utf8};
use crate::meta::{LOG_LEVEL, PROGRESS_TOKEN, PROTOCOL_VERSION};
use crate::raw_envelope::{RawEnvelope, present};
use crate::refusal::ParamsError;
use crate::response::RpcError;

/// The members of `params` and of `params._meta`, every value as written.
#[derive(Clone, Debug, Default)]
pub struct Params<'a> {
    /// All members, as written.
    pub members: Members<'a>,
    /// The members of `_meta`, as written.
    pub meta: Members<'a>,
}

impl<'a> Params<'a> {
    /// Parses `params`; missing params count as an empty object, and optional members that are `null` as missing.
    ///
    /// # Errors
    ///
    /// `-32602` if either object repeats a key, or if `_meta` is not an object.
    pub fn read(params: Option<&'a str>) -> Result<Self, ParamsError> {
        let Some(text) = params else {
            return Ok(Self::default());
        };
        let members =
            Members::parse(text).map_err(|error| ParamsError::unreadable("params", &error))?;
        let meta = match present(members.get_written("_meta")) {
            Some(meta) => Members::parse(meta)
                .map_err(|error| ParamsError::unreadable("params._meta", &error))?,
            None => Members::default(),
        };
        Ok(Self { members, meta }.without_nulls())
    }

    /// Removes the optional members that are `null`, so that no server reads them differently than Vary does.
    fn without_nulls(mut self) -> Self {
        let has_null = |members: &Members<'_>| members.iter().any(|(_, value)| value == "null");
        if has_null(&self.members) {
            remove_nulls(&mut self.members, &OPTIONAL);
        }
        if has_null(&self.meta) {
            remove_nulls(&mut self.meta, &[PROGRESS_TOKEN, LOG_LEVEL]);
            self.members.set("_meta", self.meta.to_json());
        }
        self
    }

    /// The params of `message`: those that were `read` with it, or else read now.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn of(message: &Message<'a>, read: Option<Self>) -> Result<Self, ParamsError> {
        match read {
            Some(params) => Ok(params),
            None => Self::read(message.params),
        }
    }

    /// Whether the request names its revision, as modern requests do.
    pub fn is_modern(&self) -> bool {
        self.meta.contains(PROTOCOL_VERSION)
    }

    /// The member `key`, which must be a string.
    pub fn string(&self, key: &str) -> Result<String, RpcError> {
        self.members
            .get_str(key)
            .ok_or_else(|| RpcError::invalid_params(format!("`{key}` must be a string")))
    }

    /// The member `key`, which must be an object.
    pub fn object(&self, key: &str) -> Result<&str, RpcError> {
        self.members
            .get(key)
            .filter(|value| value.starts_with('{'))
            .ok_or_else(|| RpcError::invalid_params(format!("`{key}` must be an object")))
    }
}

#[cold]
fn remove_nulls(members: &mut Members<'_>, keys: &[&str]) {
    for key in keys {
        if members.get(key) == Some("null") {
            members.remove(key);
        }
    }
}

/// The members of `params` that the protocol lets clients leave out.
const OPTIONAL: [&str; 7] = [
    "_meta",
    "arguments",
    "context",
    "cursor",
    "inputResponses",
    "requestState",
    "task",
];

impl<'a> Message<'a> {
    /// Reads one message, and its params in the same pass; `None` for params that only [`Params::read`] can read or
    /// explain.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_with_params(bytes: &'a [u8]) -> Result<(Self, Option<Params<'a>>), WireError> {
        let text = utf8(bytes)?;
        let mut params = None;
        let envelope = RawEnvelope::read_plain_with(text, |reader| {
            let Some((text, members, meta)) = Members::read_nested(reader, "_meta") else {
                return reader.value().ok();
            };
            params = Some(Params { members, meta }.without_nulls());
            Some(text)
        });
        let envelope = match envelope {
            Some(envelope) => envelope,
            None => {
                params = None;
                read_unusual(text)?
            }
        };
        let message = Self::checked(&envelope).map_err(|error| error.with_id_of(text))?;
        Ok((message, params))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(params: &str, members: &str, meta: &str) {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
        let (message, read) = Message::read_with_params(text.as_bytes()).unwrap();
        for params in [Params::of(&message, read), Params::read(message.params)] {
            let params = params.unwrap();
            let found = (params.members.to_json(), params.meta.to_json());
            assert_eq!(found, (members.to_owned(), meta.to_owned()), "{text}");
        }
    }

    #[test]
    fn optional_members_that_are_null_are_absent_for_every_reader() {
        reads("null", "{}", "{}");
        reads(r#"{"_meta":null,"cursor":null}"#, "{}", "{}");
        let call = r#"{"name":"t","arguments":null}"#;
        reads(call, r#"{"name":"t"}"#, "{}");
        let modern = r#"{"task":null,"context":null,"requestState":null,"inputResponses":null}"#;
        reads(modern, "{}", "{}");
        let meta = r#"{"_meta":{"progressToken":null,"a":null}}"#;
        reads(meta, r#"{"_meta":{"a":null}}"#, r#"{"a":null}"#);
        let unknown = r#"{"x":null,"name":null}"#;
        reads(unknown, unknown, "{}");
        let inner = r#"{"arguments":{"a":null}}"#;
        reads(inner, inner, "{}");
    }
}
