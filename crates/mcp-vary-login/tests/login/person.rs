//! A person with a browser.

use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;

use mcp_vary_login::user_agent::{DeviceCode, UserAgent};
use mcp_vary_testkit::login_server::parameter;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// A person whose browser is redirected at once.
#[derive(Debug, Default)]
pub(crate) struct Person {
    /// The address that the person opened.
    pub(crate) opened: Mutex<Vec<String>>,
    /// The servers and issuers that the person was shown.
    pub(crate) issuers: Mutex<Vec<[String; 2]>>,
    /// The hosts that the person was asked about.
    pub(crate) hosts: Mutex<Vec<[String; 2]>>,
    /// Whether the person confirms them.
    pub(crate) is_trusting: bool,
    pub(crate) device_codes: Mutex<Vec<DeviceCode>>,
    /// What is added to the query of the redirect instead of a code.
    pub(crate) answer: Option<String>,
    /// Whether the person pastes the address instead.
    pub(crate) is_pasting: bool,
}

impl UserAgent for Person {
    fn authorize<'a>(
        &'a self,
        url: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>> {
        Box::pin(async move {
            self.opened.lock().unwrap().push(url.to_owned());
            let redirect = parameter(url, "redirect_uri")
                .replace("%3A", ":")
                .replace("%2F", "/");
            let answer = self.answer.as_deref().unwrap_or("code=TOPSECRET-code");
            let target = format!("{redirect}?{answer}&state={}", parameter(url, "state"));
            if self.is_pasting {
                return Ok(target);
            }
            let (_, address) = target.split_once("http://").unwrap();
            let (authority, path) = address.split_once('/').unwrap();
            let mut socket = TcpStream::connect(authority).await.unwrap();
            let request = format!("GET /{path} HTTP/1.1\r\nhost: {authority}\r\n\r\n");
            socket.write_all(request.as_bytes()).await.unwrap();
            std::future::pending().await
        })
    }

    fn show_issuer(&self, server: &str, issuer: &str) {
        let shown = [server, issuer].map(str::to_owned);
        self.issuers.lock().unwrap().push(shown);
    }

    fn confirm_hosts<'a>(
        &'a self,
        _: &'a str,
        authorization: &'a str,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        let hosts = [authorization, token].map(str::to_owned);
        self.hosts.lock().unwrap().push(hosts);
        Box::pin(async { self.is_trusting })
    }

    fn show_device_code(&self, code: &DeviceCode) {
        self.device_codes.lock().unwrap().push(code.clone());
    }
}
