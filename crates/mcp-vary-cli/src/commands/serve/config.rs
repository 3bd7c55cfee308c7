//! What is served, and where: from the flags alone, or from a file.

use mcp_vary_config::{Position, ProgramSettings, SecretFiles, VariantSpans};
use mcp_vary_gateway::{Config, Naming};

use crate::failure::Failure;
use crate::log::CommandLog;
use crate::server_target;
use crate::server_target::args::{ServerTarget, TargetFile};
use crate::serving::LISTEN;

use super::admin::OperatorAddresses;
use super::args::Serve;
use super::flags::{file_config, server_config};
use super::reload::{FileReloader, StartupSettings};

/// The configuration, and the addresses to serve on.
#[derive(Debug)]
pub(super) struct ServeConfig {
    pub(super) config: Config,
    pub(super) listen: String,
    /// The addresses for the operator.
    pub(super) operator: OperatorAddresses,
    pub(super) reloader: Option<FileReloader>,
    pub(super) source: ConfigSource,
}

/// The file of the configuration, for messages about it.
#[derive(Debug, Default)]
pub(super) struct ConfigSource {
    pub(super) name: String,
    pub(super) places: VariantSpans,
    pub(super) naming: Naming,
    /// The servers whose entries cannot be used.
    pub(super) left_out: Vec<String>,
    /// The position of `audit.to`, if the file has it.
    pub(super) audit_at: Option<Position>,
}

impl ServeConfig {
    pub(super) async fn from_args(args: &Serve, log: &CommandLog) -> Result<Self, Failure> {
        let target = args
            .target
            .resolve(args.named.as_deref(), "vary serve")
            .await?;
        let server = match &target {
            ServerTarget::File(file) => return Self::from_file(file, args, log),
            ServerTarget::Url { url, headers, ca } => {
                server_target::url(url, headers, ca.as_deref())?
            }
            ServerTarget::Command(command) => server_target::command(command)?,
        };
        let program = ProgramSettings::default();
        log.start_serving(args.log_format, &program.log)?;
        Ok(Self {
            config: server_config(args, server)?,
            listen: args.listen.clone().unwrap_or_else(|| LISTEN.to_owned()),
            operator: OperatorAddresses::new(args, &program),
            reloader: None,
            source: ConfigSource::default(),
        })
    }

    fn from_file(target: &TargetFile, args: &Serve, log: &CommandLog) -> Result<Self, Failure> {
        let secrets = SecretFiles::beside(&target.path);
        let file = target.read_with(&secrets, args.listen.as_deref())?;
        let program = file.program.clone();
        log.start_serving(args.log_format, &program.log)?;
        let listen = args.listen.clone().or_else(|| program.listen.clone());
        let mut operator = OperatorAddresses::new(args, &program);
        operator.file = Some(target.path.clone());
        let fixed = StartupSettings {
            program,
            address: None,
            confirmed: target.confirmed_effects()?,
        };
        let places = file.places.clone();
        let left_out = file.left_out.clone();
        let audit_at = file.addresses_at.get("audit.to").copied();
        let digest = mcp_vary_config::digest(&target.text);
        let reloader = FileReloader::new(&target.path, target.text.clone(), fixed)?;
        let reloading = reloader.with_secrets(&secrets);
        let mut config = file_config(args, file)?;
        config.digest = Some(digest.into());
        let naming = config.naming;
        Ok(Self {
            config,
            listen: listen.unwrap_or_else(|| LISTEN.to_owned()),
            operator,
            reloader: Some(reloading),
            source: ConfigSource {
                name: target.name(),
                places,
                naming,
                left_out: left_out.into_iter().map(|server| server.name).collect(),
                audit_at,
            },
        })
    }
}
