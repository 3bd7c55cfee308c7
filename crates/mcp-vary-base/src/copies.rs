//! Copies of values that outlive the process which made them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Where values are copied to; nowhere by default.
///
/// Without a place, no copy is made.
#[derive(Clone, Default)]
pub struct Copies(Option<Arc<Place>>);

/// Takes the id of a value, its bytes, and how long they are of use.
type Place = dyn Fn(&str, Vec<u8>, Duration) + Send + Sync;

impl Copies {
    /// Copies go to `place`, which must not block.
    #[must_use]
    pub fn to(place: impl Fn(&str, Vec<u8>, Duration) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(place)))
    }

    /// Copies a value, which is of use for `lifetime`.
    pub fn add(&self, id: &str, lifetime: Duration, encode: impl FnOnce() -> Vec<u8>) {
        if let Some(place) = &self.0 {
            place(id, encode(), lifetime);
        }
    }
}

impl fmt::Debug for Copies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Copies").field(&self.0.is_some()).finish()
    }
}
