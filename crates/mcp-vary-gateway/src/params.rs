//! The params of a request, opened once: its members, and those of its `_meta`.

use mcp_vary::json::Members;

use crate::member_check::Refusal;
use crate::meta::PROTOCOL_VERSION;
use crate::reply::Failure;

/// The members of `params` and of `params._meta`, every value as written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params<'a> {
    pub(crate) members: Members<'a>,
    pub(crate) meta: Members<'a>,
}

impl<'a> Params<'a> {
    /// Opens `params`; none are an empty object.
    ///
    /// # Errors
    ///
    /// `-32602` when either object repeats a key, or `_meta` is no object.
    pub(crate) fn read(params: Option<&'a str>) -> Result<Self, Refusal> {
        let Some(text) = params else {
            return Ok(Self::default());
        };
        let members =
            Members::parse(text).map_err(|error| Refusal::unreadable("params", &error))?;
        let meta = match members.get_written("_meta") {
            Some(meta) => {
                Members::parse(meta).map_err(|error| Refusal::unreadable("params._meta", &error))?
            }
            None => Members::default(),
        };
        Ok(Self { members, meta })
    }

    /// Whether the request says which revision it speaks, as modern requests do.
    pub(crate) fn is_modern(&self) -> bool {
        self.meta.contains(PROTOCOL_VERSION)
    }

    /// The member `key`, which must be a string.
    pub(crate) fn string(&self, key: &str) -> Result<String, Failure> {
        self.members
            .get_str(key)
            .ok_or_else(|| Failure::invalid_params(format!("`{key}` must be a string")))
    }

    /// The member `key`, which must be an object.
    pub(crate) fn object(&self, key: &str) -> Result<&str, Failure> {
        self.members
            .get(key)
            .filter(|value| value.starts_with('{'))
            .ok_or_else(|| Failure::invalid_params(format!("`{key}` must be an object")))
    }
}
