//! The params of a request, opened once: its members, and those of its `_meta`.

use mcp_vary::json::Members;

use crate::meta::PROTOCOL_VERSION;
use crate::refusal::Refusal;
use crate::response::Failure;

/// The members of `params` and of `params._meta`, every value as written.
#[derive(Clone, Debug, Default)]
pub struct Params<'a> {
    /// All members, as written.
    pub members: Members<'a>,
    /// The members of `_meta`, as written.
    pub meta: Members<'a>,
}

impl<'a> Params<'a> {
    /// Opens `params`; none are an empty object.
    ///
    /// # Errors
    ///
    /// `-32602` when either object repeats a key, or `_meta` is no object.
    pub fn read(params: Option<&'a str>) -> Result<Self, Refusal> {
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
    pub fn is_modern(&self) -> bool {
        self.meta.contains(PROTOCOL_VERSION)
    }

    /// The member `key`, which must be a string.
    pub fn string(&self, key: &str) -> Result<String, Failure> {
        self.members
            .get_str(key)
            .ok_or_else(|| Failure::invalid_params(format!("`{key}` must be a string")))
    }

    /// The member `key`, which must be an object.
    pub fn object(&self, key: &str) -> Result<&str, Failure> {
        self.members
            .get(key)
            .filter(|value| value.starts_with('{'))
            .ok_or_else(|| Failure::invalid_params(format!("`{key}` must be an object")))
    }
}
