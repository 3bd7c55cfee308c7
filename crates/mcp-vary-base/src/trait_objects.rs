//! `Debug` that shows a name and no content.

/// Implements `Debug` as the name of the type: for types whose content is secret or of no use, and for trait objects.
/// With `Debug` as a supertrait, the program would contain the code that writes each implementor and all of its fields,
/// which is never called.
///
/// # Examples
///
/// ```
/// trait Clock { fn now(&self) -> u64; }
///
/// mcp_vary_base::debug_by_name!(dyn Clock);
///
/// impl Clock for u64 { fn now(&self) -> u64 { *self } }
///
/// let clock: Box<dyn Clock> = Box::new(7);
/// assert_eq!(format!("{clock:?}"), "dyn Clock");
/// ```
#[macro_export]
macro_rules! debug_by_name {
    ($object:ty) => {
        impl std::fmt::Debug for $object {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($object))
            }
        }
    };
}
