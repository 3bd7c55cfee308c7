//! Values of a file with the keys that lead to them.

use crate::diagnostic::Position;
use crate::document::{Entry, Node, join};

/// A value that was read, with its position and the keys that lead to it.
#[derive(Clone, Debug)]
pub(super) struct Placed<T> {
    pub(super) at: Position,
    pub(super) path: String,
    /// The text as the file has it.
    pub(super) written: String,
    pub(super) value: T,
}

/// A node and the keys that lead to it.
pub(super) struct Located<'t> {
    pub(super) path: String,
    pub(super) node: &'t Node,
}

impl<'t> Located<'t> {
    /// The member `entry` of this table.
    pub(super) fn member(&self, entry: &'t Entry) -> Self {
        Self {
            path: join(&self.path, &entry.key),
            node: &entry.node,
        }
    }

    /// The `value` that was read from this node.
    pub(super) fn placed<T>(&self, value: T) -> Placed<T> {
        Placed {
            at: self.node.at,
            path: self.path.clone(),
            written: self.written().to_owned(),
            value,
        }
    }

    /// The keys of a table.
    pub(super) fn keys(&self) -> Vec<&'t str> {
        let entries = self.node.entries().iter();
        entries.map(|entry| entry.key.as_str()).collect()
    }

    /// The value at the path `keys`, or at the longest part of it that exists.
    pub(super) fn deepest(&self, keys: &[&str]) -> Self {
        let mut field = Self {
            path: self.path.clone(),
            node: self.node,
        };
        for key in keys {
            let mut entries = field.node.entries().iter();
            let Some(entry) = entries.find(|entry| entry.key == *key) else {
                break;
            };
            field = field.member(entry);
        }
        field
    }

    /// The items of a list; none of another value.
    pub(super) fn items(&self) -> Vec<Self> {
        let items = self.node.items().iter().enumerate();
        let located = items.map(|(index, node)| Self {
            path: format!("{}[{index}]", self.path),
            node,
        });
        located.collect()
    }

    /// The text as written in the file, as [`Node::written`].
    pub(super) fn written(&self) -> &'t str {
        self.node.written()
    }
}
