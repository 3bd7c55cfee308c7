//! How a person is shown where to authorize.

use std::future::Future;
use std::pin::Pin;

/// Shows a person where to authorize. The command line has one with a browser, and one with text alone.
pub trait UserAgent: Send + Sync {
    /// Shows `url`, an address of the authorization server. It ends with the address that a person pasted, with an error
    /// if `url` cannot be shown, and not at all if nothing can be pasted.
    fn authorize<'a>(
        &'a self,
        url: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>>;

    /// Shows at which authorization server, its `issuer`, a person logs in to `server` for the first time: `server` chose it,
    /// unless the configuration did.
    fn show_issuer(&self, server: &str, issuer: &str);

    /// Whether a person confirms that the host `token` may exchange what they permit at another host, `authorization`: `server`
    /// chose both. Nobody confirms it where nobody can be asked.
    fn confirm_hosts<'a>(
        &'a self,
        server: &'a str,
        authorization: &'a str,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

    /// Shows the code that a person enters on another device.
    fn show_device_code(&self, code: &DeviceCode);
}

mcp_vary_base::debug_by_name!(dyn UserAgent);

/// What a person needs on another device (RFC 8628, section 3.2). The texts are those of the authorization server: they
/// are bounded, and have no control characters.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct DeviceCode {
    /// Where to enter the code.
    pub verification_uri: String,
    /// The code.
    pub user_code: String,
}

/// How a person authorizes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Flow {
    /// In a browser, which is redirected to this machine.
    #[default]
    AuthorizationCode,
    /// On another device.
    Device,
}
