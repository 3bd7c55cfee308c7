//! Structs with a default beside each field.

/// Defines a struct with a default beside each field, and the function that builds it. The function has a parameter for
/// each value without a default.
///
/// # Examples
///
/// ```
/// mcp_vary_base::defaults! {
///     /// A server.
///     #[derive(Debug)]
///     pub struct Server {
///         /// The server `name`.
///         pub fn new(name: &str);
///         /// Its name.
///         pub name: String = name.to_owned(),
///         /// The most bytes of a body.
///         pub body: usize = 4 << 20,
///     }
/// }
///
/// let server = Server::new("git");
/// assert_eq!((&*server.name, server.body), ("git", 4 << 20));
/// ```
#[macro_export]
macro_rules! defaults {
    (
        $(#[$about:meta])*
        $vis:vis struct $name:ident {
            $(#[$new_about:meta])*
            $new_vis:vis fn $new:ident($($given:ident: $given_type:ty),*);
            $($(#[$field_about:meta])* $field_vis:vis $field:ident: $type:ty = $default:expr,)*
        }
    ) => {
        $(#[$about])*
        $vis struct $name {
            $($(#[$field_about])* $field_vis $field: $type,)*
        }

        impl $name {
            $(#[$new_about])*
            $new_vis fn $new($($given: $given_type),*) -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
}
