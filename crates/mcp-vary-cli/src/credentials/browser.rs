//! How the command line shows a person where to authorize.

use std::future::Future;
use std::io::ErrorKind;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use mcp_vary_base::io_error;
use mcp_vary_login::user_agent::{DeviceCode, UserAgent};
use tokio::process::Command;

use crate::environment::variable;
use crate::print::{self, sanitize};
use crate::question;

/// Whether the address is opened, or a person opens it on another machine.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Browser {
    /// A browser of this machine opens it.
    Opened,
    /// A person opens it, and pastes the address that the browser shows at the end.
    Pasted,
}

impl UserAgent for Browser {
    fn authorize<'a>(
        &'a self,
        url: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>> {
        Box::pin(async move {
            match self {
                Self::Opened => {
                    print::notice(&sanitize(&format!(
                        "To log in, authorize Vary in the browser:\n  {url}"
                    )));
                    if let Err(why) = open(url).await {
                        let fix = "open the address yourself, or name a program in BROWSER";
                        print::notice(&sanitize(&format!("{why}; {fix}")));
                    }
                    std::future::pending().await
                }
                Self::Pasted => {
                    print::notice(&sanitize(&format!(
                        "To log in, open this address in a browser:\n  {url}\n\
                         It ends at an address that begins with http://127.0.0.1. If the browser cannot open that, paste it here:"
                    )));
                    match question::line().await {
                        Ok(line) if !line.trim().is_empty() => Ok(line),
                        // The browser may run on this machine.
                        _ => std::future::pending().await,
                    }
                }
            }
        })
    }

    fn show_issuer(&self, server: &str, issuer: &str) {
        print::notice(&sanitize(&format!(
            "Logging in to {} at {issuer}",
            server.split('?').next().unwrap_or_default()
        )));
    }

    fn confirm_hosts<'a>(
        &'a self,
        server: &'a str,
        authorization: &'a str,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(async move {
            let question = format!(
                "{} sends you to {authorization}, but {token} gets the token for what you permit there. Do both belong to one \
                 service? [y/N] ",
                server.split('?').next().unwrap_or_default()
            );
            let is_asked = question::has_person();
            is_asked
                && question::is_confirmed(&sanitize(&question))
                    .await
                    .unwrap_or(false)
        })
    }

    fn show_device_code(&self, code: &DeviceCode) {
        print::notice(&sanitize(&format!(
            "To log in, open {} on any device, and enter the code {}",
            code.verification_uri, code.user_code
        )));
    }
}

/// Starts the browser. The address is one argument and passes no shell.
///
/// # Errors
///
/// When its program cannot be started, or fails at once. The error names it.
pub(crate) async fn open(url: &str) -> Result<(), String> {
    let named = variable("BROWSER").filter(|named| !named.trim().is_empty());
    let terms: Vec<String> = match &named {
        // A list of programs, by the convention of Unix; the first one is used.
        Some(named) => {
            let first = named.split(':').next().unwrap_or_default();
            let first = if cfg!(windows) { named.as_str() } else { first };
            first.split_whitespace().map(str::to_owned).collect()
        }
        None => SYSTEM.iter().map(ToString::to_string).collect(),
    };
    let is_placed = terms.iter().any(|word| word.contains("%s"));
    let mut filled = terms.into_iter().map(|word| word.replace("%s", url));
    let program = filled.next().unwrap_or_default();
    let mut command = Command::new(&program);
    command.args(filled);
    if !is_placed {
        command.arg(url);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let failed = |why: &str| format!("no browser could be started (`{program}`: {why})");
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => failed("the program was not found"),
        _ => failed(&io_error::describe(&error)),
    })?;
    // One that still runs is the browser itself.
    match tokio::time::timeout(EXIT_WAIT, child.wait()).await {
        Ok(Ok(status)) if !status.success() => Err(failed(&exit_text(status))),
        _ => Ok(()),
    }
}

/// How a program ended, as in `exit status 3`.
fn exit_text(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit status {code}"),
        None => status.to_string(),
    }
}

/// How long the program that opens an address may take to fail.
const EXIT_WAIT: Duration = Duration::from_secs(2);

/// The program of the system that opens an address.
const SYSTEM: &[&str] = if cfg!(windows) {
    &["rundll32", "url.dll,FileProtocolHandler"]
} else if cfg!(target_os = "macos") {
    &["open"]
} else {
    &["xdg-open"]
};
