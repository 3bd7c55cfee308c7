//! A call of an item.

use mcp_vary::variant::VariantId;

use crate::item::Item;
use crate::principal::Principal;

/// One call, as expressions see it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Who calls.
    pub principal: &'a Principal,
    /// What is called.
    pub item: Item<'a>,
    /// The active variant.
    pub variant: &'a VariantId,
    /// The arguments as the JSON text of an object; `None` if there are none.
    pub arguments: Option<&'a str>,
}
