//! What files of checks of servers use.

pub(crate) use crate::check::{Test, server};
pub(crate) use crate::client::{Client, selecting};
pub(crate) use crate::extension::{NEGOTIATION, VARIANTS};
pub(crate) use crate::json::{array_at, at, brief, object_at, text_at};
pub(crate) use crate::list_kind::{ListKind, PROMPTS, RESOURCES, TOOLS};
pub(crate) use crate::member::{IfAbsent, Member};
pub(crate) use crate::objection::{
    Objection, Verdict, ensure, not_applicable, requires, violation,
};
pub(crate) use crate::probe::Probe;
pub(crate) use crate::survey::Survey;
