//! The objects that templates read.

use std::sync::Arc;

use indexmap::IndexMap;
use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectExt as _};

/// An object with few members, which are found faster one after the other than by a hash.
#[derive(Debug)]
struct Record(Vec<(Value, Value)>);

/// The members that are compared one after the other, at most. The template engine does the same with its own maps.
const FEW_MEMBERS: usize = 12;

/// An object with `members`, which have different names.
pub(super) fn object(members: impl ExactSizeIterator<Item = (Value, Value)>) -> Value {
    match members.len() {
        0..=FEW_MEMBERS => Value::from_object(Record(members.collect())),
        _ => Value::from_object(members.collect::<IndexMap<_, _>>()),
    }
}

impl Object for Record {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        let found = self.0.iter().find(|(name, _)| name.as_str() == Some(key));
        found.map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.mapped_rev_key_value_enumerator(|this| Box::new(this.0.iter().cloned()))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.0.len())
    }
}

/// The names that a template can use: the built-in ones, and the members of the value.
#[derive(Debug)]
pub(super) struct Names {
    /// They take precedence over members with the same name.
    pub(super) built_in: Vec<(&'static str, Value)>,
    pub(super) value: Value,
}

impl Names {
    fn find_built_in(&self, name: &str) -> Option<&Value> {
        let found = self.built_in.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value)
    }
}

impl Object for Names {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        match self.find_built_in(key) {
            Some(value) => Some(value.clone()),
            None => self.value.as_object()?.get_value_by_str(key),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let built_in = self.built_in.iter().map(|(name, _)| Value::from(*name));
        let members = self.value.try_iter().into_iter().flatten().filter(|name| {
            name.as_str()
                .is_some_and(|key| self.find_built_in(key).is_none())
        });
        Enumerator::Values(built_in.chain(members).collect())
    }
}
