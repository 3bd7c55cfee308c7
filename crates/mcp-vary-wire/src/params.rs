//! The params of a request, parsed once: its members and those of its `_meta`.

use mcp_vary::json::Members;

use crate::envelope::{Message, WireError, read_unusual, utf8};
use crate::meta::PROTOCOL_VERSION;
use crate::raw_envelope::RawEnvelope;
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
    /// Parses `params`; missing params count as an empty object.
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
        let meta = match members.get_written("_meta") {
            Some(meta) => Members::parse(meta)
                .map_err(|error| ParamsError::unreadable("params._meta", &error))?,
            None => Members::default(),
        };
        Ok(Self { members, meta })
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
            params = Some(Params { members, meta });
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
