//! Values that differ from the default in one place.

/// The default of a type after `edit`.
pub fn default_with<T: Default>(edit: impl FnOnce(&mut T)) -> T {
    let mut value = T::default();
    edit(&mut value);
    value
}
