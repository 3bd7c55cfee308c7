//! The setters of a type as rows.

/// The setters of a builder, one a row: its name, its argument, and the field with the value that it gets.
///
/// # Examples
///
/// ```
/// struct Limits { body: usize, name: Option<String> }
///
/// impl Limits {
///     mcp_vary_base::setters! {
///         /// Bounds a body to `bytes`.
///         with_body(bytes: usize): body = bytes;
///         /// Sets the name.
///         with_name(name: &str): name = Some(name.to_owned());
///     }
/// }
///
/// let limits = Limits { body: 0, name: None }.with_body(7).with_name("short");
/// assert_eq!((limits.body, limits.name.as_deref()), (7, Some("short")));
/// ```
#[macro_export]
macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident($value:ident: $type:ty): $($field:ident).+ = $set:expr;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $setter(mut self, $value: $type) -> Self {
            self.$($field).+ = $set;
            self
        }
    )*};
}
