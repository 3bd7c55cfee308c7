//! Reloads the configuration file while it is served: when it changes, and on `SIGHUP`.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_vary_config::{File, Watch};
use mcp_vary_gateway::Gateway;

use crate::args::Serve;
use crate::failure::Failure;
use crate::print::{notice, sanitize};
use crate::stop::Hangup;
use crate::{file, serve_args};

/// Applies the configuration file to the gateway whenever it changes.
#[derive(Debug)]
pub(crate) struct FileReloader {
    path: PathBuf,
    watch: Watch,
    hangup: Hangup,
    startup: StartupSettings,
}

/// The settings of the file that apply at the start only. Each is `None` if the command line overrides it.
#[derive(Clone, Debug, Default)]
pub(crate) struct StartupSettings {
    /// The address to serve on.
    pub(crate) listen: Option<Option<String>>,
    /// The address for the operator.
    pub(crate) admin: Option<Option<String>>,
    /// The address that is served on, once it is known.
    pub(crate) address: Option<SocketAddr>,
}

impl StartupSettings {
    /// The settings that are different in `file`.
    fn changed_keys(&self, file: &File) -> Vec<&'static str> {
        let settings = [
            ("listen", &self.listen, &file.listen),
            ("admin", &self.admin, &file.admin),
        ];
        let is_another = |(_, then, now): &(_, &Option<Option<String>>, &Option<String>)| {
            then.as_ref().is_some_and(|then| then != *now)
        };
        let others = settings.into_iter().filter(is_another);
        others.map(|(key, ..)| key).collect()
    }
}

impl FileReloader {
    /// Watches the file at `path`, whose text was `text` at the start.
    pub(crate) fn new(path: &Path, text: String, fixed: StartupSettings) -> Result<Self, Failure> {
        Ok(Self {
            path: path.to_owned(),
            watch: Watch::new(path, text),
            hangup: Hangup::listen()?,
            startup: fixed,
        })
    }

    /// Sets the address that is served on: a configuration that does not allow it is refused.
    pub(crate) const fn serves_at(&mut self, address: SocketAddr) {
        self.startup.address = Some(address);
    }

    /// Reloads forever. A newer text replaces one that is still being applied.
    pub(crate) async fn run(&mut self, gateway: &Arc<Gateway>, args: &Serve) -> Infallible {
        let mut text = self.next().await;
        loop {
            let name = self.path.display().to_string();
            let fixed = self.startup.clone();
            let reload = reload(&name, text, &fixed, gateway, args);
            text = tokio::select! {
                said = reload => {
                    notice(&sanitize(&said));
                    self.next().await
                }
                newer = self.next() => newer,
            };
        }
    }

    /// Waits for a change or a signal, and returns the text of the file.
    async fn next(&mut self) -> io::Result<String> {
        tokio::select! {
            text = self.watch.changed() => return text,
            () = self.hangup.received() => {}
        }
        self.watch.now()
    }
}

/// Applies the `text` of a file to the gateway, and returns a sentence about the outcome.
async fn reload(
    name: &str,
    text: io::Result<String>,
    fixed: &StartupSettings,
    gateway: &Arc<Gateway>,
    args: &Serve,
) -> String {
    let refused = |why: &str| format!("{name} was not reloaded, everything stays as it was: {why}");
    let text = match text {
        Ok(text) => text,
        Err(error) => return refused(&format!("it cannot be read: {error}")),
    };
    let file = match file::parse_and_report(name, &text, args.server.as_deref()) {
        Ok(file) => file,
        Err(failure) => return refused(&failure.to_string()),
    };
    let others = fixed.changed_keys(&file);
    let places = file.places.clone();
    let config = match serve_args::file_config(args, file) {
        Ok(config) => config,
        Err(failure) => return refused(&failure.to_string()),
    };
    let allowed = fixed
        .address
        .map(|address| config.check_listen_address(address));
    if let Some(Err(error)) = allowed {
        return refused(&error.to_string());
    }
    match gateway.reload(config).await {
        Ok(mut reloaded) => {
            reloaded.at_next_start.splice(..0, others);
            let slips = serve_args::unmatched_warnings(gateway, name, &places);
            format!("{name} reloaded: {reloaded}{slips}")
        }
        Err(error) => refused(&error.to_string()),
    }
}
