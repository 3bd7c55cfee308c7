//! The fields of a struct beside their defaults.

/// A struct whose fields have their defaults beside them, and the function that makes it of these. What has no default is a
/// parameter of the function.
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
