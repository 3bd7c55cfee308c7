//! Reloads the configuration file while it is served: when it or a secret file that it names changes, on `SIGHUP`,
//! and when the operator requests it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_vary_base::io_error;
use mcp_vary_config::{Effect, File, ProgramSettings, SecretFiles, Watch, effects};
use mcp_vary_gateway::Gateway;
use mcp_vary_operator::{Outcome, ReloadRequest, Requests};

use crate::failure::Failure;
use crate::file;
use crate::print::{notice, sanitize};
use crate::serving::start_report::unmatched_warnings;
use crate::stop::Hangup;

use super::args::Serve;
use super::flags;
use super::service_manager::ServiceManager;

/// Applies the configuration file to the gateway whenever it changes.
#[derive(Debug)]
pub(crate) struct FileReloader {
    path: PathBuf,
    watch: Watch,
    hangup: Hangup,
    startup: StartupSettings,
}

/// The settings that apply at the start only.
#[derive(Clone, Debug, Default)]
pub(crate) struct StartupSettings {
    /// Those of the file.
    pub(crate) program: ProgramSettings,
    /// The address that is served on, once it is known.
    pub(crate) address: Option<SocketAddr>,
    /// What the user confirmed, if the file was not named: nothing else may be started or sent.
    pub(crate) confirmed: Option<Vec<Effect>>,
}

impl StartupSettings {
    /// The settings that are different in `file`, without those that the command line overrides.
    fn changed_keys(&self, file: &File, args: &Serve) -> Vec<&'static str> {
        let (then, now) = (&self.program, &file.program);
        let may_listen = args.listen.is_none() && !args.stdio;
        let settings = [
            ("listen", may_listen && then.listen != now.listen),
            ("admin", args.admin.is_none() && then.admin != now.admin),
            ("probes", args.probes.is_none() && then.probes != now.probes),
            ("admin-token", then.admin_token != now.admin_token),
            ("admin-calls", then.admin_calls != now.admin_calls),
            ("admin-writes", then.admin_writes != now.admin_writes),
            ("log", then.log != now.log),
        ];
        let changed = settings.into_iter().filter(|(_, is_changed)| *is_changed);
        changed.map(|(key, _)| key).collect()
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

    /// Watches the secret files that the file named when it was read.
    pub(crate) fn with_secrets(mut self, secrets: &SecretFiles) -> Self {
        self.watch.follow_secrets(secrets.versions());
        self
    }

    /// Sets the address that is served on: a configuration that does not allow it is refused.
    pub(crate) const fn serves_at(&mut self, address: SocketAddr) {
        self.startup.address = Some(address);
    }

    /// Reloads forever. A newer text replaces one that is still being applied.
    pub(crate) async fn run(
        &mut self,
        gateway: &Arc<Gateway>,
        args: &Serve,
        manager: &ServiceManager,
        requests: &mut Requests,
    ) -> Infallible {
        // Those who requested what is being applied. A newer text is for them, too.
        let mut waiting = Vec::new();
        let mut text = self.next(gateway, requests, &mut waiting).await;
        loop {
            manager.reloading();
            let name = self.path.display().to_string();
            let fixed = self.startup.clone();
            let file = self.parse(text, args);
            let reloading = reload(&name, file, &fixed, gateway, args);
            text = tokio::select! {
                outcome = reloading => {
                    manager.reloaded(outcome.is_ok());
                    let (Ok(sentence) | Err(sentence)) = &outcome;
                    notice(&sanitize(sentence));
                    for request in waiting.drain(..) {
                        ReloadRequest::answer(request, outcome.clone());
                    }
                    self.next(gateway, requests, &mut waiting).await
                }
                newer = self.next(gateway, requests, &mut waiting) => newer,
            };
        }
    }

    /// Parses the text, and watches the secret files that it names from now on, also those that are missing. Returns the
    /// digest of the text, too.
    fn parse(&mut self, text: io::Result<String>, args: &Serve) -> Result<(File, String), String> {
        let text =
            text.map_err(|error| format!("it cannot be read: {}", io_error::describe(&error)))?;
        if let Some(confirmed) = &self.startup.confirmed {
            let name = self.path.display().to_string();
            let read = effects(&name, &text, &args.target.servers);
            let now = read.map_err(|all| file::invalid_file(&all).to_string())?;
            if now.iter().any(|effect| !confirmed.contains(effect)) {
                return Err(UNCONFIRMED.to_owned());
            }
        }
        let secrets = SecretFiles::beside(&self.path);
        let only = &args.target.servers;
        let listen = args.listen.as_deref();
        let parsed = file::parse_and_report(&self.path, &text, only, &secrets, listen);
        self.watch.follow_secrets(secrets.versions());
        let file = parsed.map_err(|failure| failure.to_string())?;
        Ok((file, mcp_vary_config::digest(&text)))
    }

    /// Waits for a change, a signal or a request, and returns the text of the file. After a signal or a request the audit log
    /// is opened again, whatever is in the file.
    async fn next(
        &mut self,
        gateway: &Gateway,
        requests: &mut Requests,
        waiting: &mut Vec<ReloadRequest>,
    ) -> io::Result<String> {
        tokio::select! {
            text = self.watch.changed() => return text,
            () = self.hangup.received() => {}
            request = requests.reload() => waiting.push(request),
        }
        gateway.reopen_audit_log();
        self.watch.now()
    }
}

/// Why a file that was found is not reloaded.
const UNCONFIRMED: &str =
    "it starts or sends what you did not confirm; start Vary again to confirm it, or name the file";

/// Applies a `file` to the gateway, and returns a sentence about the outcome.
async fn reload(
    name: &str,
    file: Result<(File, String), String>,
    fixed: &StartupSettings,
    gateway: &Arc<Gateway>,
    args: &Serve,
) -> Outcome {
    let unchanged =
        |why: &str| format!("{name} was not reloaded, everything stays as it was: {why}");
    let refused = |why: &str| {
        gateway.count_unread_config();
        Err(unchanged(why))
    };
    let (file, digest) = match file {
        Ok(parsed) => parsed,
        Err(why) => return refused(&why),
    };
    let others = fixed.changed_keys(&file, args);
    let places = file.places.clone();
    let config = match flags::file_config(args, file) {
        Ok(mut config) => {
            config.digest = Some(digest.into());
            config
        }
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
            let warnings = unmatched_warnings(gateway, name, &places);
            Ok(format!("{name} reloaded: {reloaded}{warnings}"))
        }
        Err(error) => Err(unchanged(&error.to_string())),
    }
}
