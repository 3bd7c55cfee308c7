//! The params of a request, parsed once: its members and those of its `_meta`.

use mcp_vary::json::Members;

use crate::envelope::Message;
use crate::meta::PROTOCOL_VERSION;
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
