//! Copies of values that outlive the process which made them.

use std::sync::Arc;
use std::time::Duration;

/// Where values are copied to; nowhere by default.
///
/// No copy is made without a place, nor of a value that the place does not want.
#[derive(Clone, Default)]
pub struct Copies(Option<Arc<dyn CopyPlace>>);

/// Takes copies. It must not block.
pub trait CopyPlace: Send + Sync {
    /// Whether it takes a value of about so many bytes at the moment.
    fn wants(&self, bytes: usize) -> bool;

    /// Takes a value, which is of use for `lifetime`.
    fn put(&self, id: &str, value: Vec<u8>, lifetime: Duration);
}

impl Copies {
    /// Copies go to `place`.
    #[must_use]
    pub fn to(place: impl CopyPlace + 'static) -> Self {
        Self(Some(Arc::new(place)))
    }

    /// Copies a value of about so many bytes, which is of use for `lifetime`. Returns whether it was copied.
    pub fn add(
        &self,
        id: &str,
        lifetime: Duration,
        bytes: usize,
        encode: impl FnOnce() -> Vec<u8>,
    ) -> bool {
        let place = self.0.as_ref().filter(|place| place.wants(bytes));
        if let Some(place) = place {
            place.put(id, encode(), lifetime);
        }
        place.is_some()
    }
}

crate::debug_by_name!(Copies);
