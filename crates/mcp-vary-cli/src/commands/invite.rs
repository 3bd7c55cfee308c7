//! `vary invite`: all that a person needs to use a gateway of this user.

use std::path::{Path, PathBuf};

use clap::Parser;
use mcp_vary_auth::address::EndpointPath;
use mcp_vary_config::{ClientText, Syntax};
use mcp_vary_upstream::command_line::shell_word;
use serde_json::json;

use crate::commands::connect::client::{Client, ClientName};
use crate::commands::key::{self, KeyArgs};
use crate::failure::{Failure, Verdict};
use crate::file;
use crate::operator::client::{GatewayAddress, running_gateways};
use crate::print::{self, notice, sanitize};

/// Let a person use a running gateway
///
/// Makes an API key. Prints to standard output the commands with which the person connects a client, and to standard
/// error the entry for `auth.keys` of the configuration, which has the digest of the key. The key is stored nowhere: if
/// it is lost, make another one.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  \
    vary invite ann\n  \
    vary invite ann --groups dev --client cursor\n  \
    vary invite ann vary.yaml --expires 2027-01-31 > for-ann.txt")]
pub(crate) struct Invite {
    #[command(flatten)]
    key: KeyArgs,
    /// The client of the person, as `vary connect` names it
    #[arg(
        long,
        value_name = "CLIENT",
        default_value = "claude-code",
        hide_possible_values = true
    )]
    client: ClientName,
    /// The configuration of the gateway, or the address of a running one [default: the running gateway of this user]
    #[arg(value_name = "TARGET")]
    target: Option<String>,
}

/// Prints what to send to the person, and what to add to the configuration.
pub(crate) async fn run(args: &Invite) -> Result<Verdict, Failure> {
    let gateway = Invited::to(args).await?;
    let config = key::read_config(&gateway.file)?;
    let shown = gateway.file.display();
    let authentication = config.authentication.as_ref();
    let keys = authentication.map(|authentication| authentication.authenticator.keys());
    let name = args.key.name.as_str();
    if keys.is_none() {
        refuse_client_file(&gateway.file, name)?;
    }
    let mut known = keys.into_iter().flat_map(|keys| keys.principals());
    if known.any(|principal| principal.key_name() == Some(name)) {
        return Err(Failure::command(format!(
            "`auth.keys` of {shown} has a key `{name}`; choose another name, or remove that line first"
        )));
    }
    let public_url = config.listener.public_url.as_ref();
    let public = public_url.map(|url| url.resource(&EndpointPath::Base));
    let url = public.or(gateway.url).ok_or_else(|| {
        Failure::command(format!(
            "{shown} does not say by which address people reach the gateway; add `public-url: https://...`, without \
             `/mcp`"
        ))
    })?;
    let (key, entry) = key::generate(&args.key)?;
    let connect = connect_commands(args.client.client(), &url);
    let secret = key.expose();
    print::data(&format!("export VARY_API_KEY={secret}\n{connect}\n"))?;
    let step = match keys {
        Some(_) => format!("Add this line to `auth.keys` of {shown}:\n\n    - {entry}\n"),
        None => format!(
            "Add these lines to {shown}, which asks for no key so far:\n\nauth:\n  keys:\n    - {entry}\n\n\
             From then on, your clients need a key, too: vary key new NAME\n"
        ),
    };
    notice(&sanitize(&format!(
        "Send the lines on standard output to `{name}`, where nobody else reads them. The key is not stored, and \
         cannot be shown again.\n{step}"
    )));
    if public_url.is_none() {
        notice(&sanitize(&format!(
            "note: only this machine can use {url}; for others add `public-url: https://HOST` to {shown}"
        )));
    }
    Ok(Verdict::Fine)
}

/// The commands that connect `client` to the gateway at `url`, with a key that is in a variable. If the client's file cannot
/// have the header, the client starts Vary for a configuration that has it.
fn connect_commands(client: &Client, url: &str) -> String {
    let (name, value) = (client.name, "Bearer ${VARY_API_KEY}");
    if client.takes_headers() {
        let target = shell_word(url);
        return format!("vary connect {name} {target} --header 'Authorization: {value}' --write");
    }
    let gateway = json!({"url": url, "headers": {"Authorization": value}});
    let config = shell_word(&json!({"servers": {"gateway": gateway}}).to_string());
    format!("echo {config} > gateway.json\nvary connect {name} gateway.json --write")
}

/// Refuses the file of a client, which has servers alone: keys are in a configuration.
fn refuse_client_file(path: &Path, name: &str) -> Result<(), Failure> {
    let text = file::text(path)?;
    let servers = ClientText::new(Syntax::Json, &text).entries(&["mcpServers"]);
    let shown = path.display().to_string();
    if servers.unwrap_or_default().is_empty() {
        return Ok(());
    }
    let (quoted, person) = (shell_word(&shown), shell_word(name));
    Err(Failure::command(sanitize(&format!(
        "{shown} is a client's file, which has no keys; first: vary config import {quoted} > vary.yaml, serve that, then: \
         vary invite {person}"
    ))))
}

/// The gateway that a person is invited to.
struct Invited {
    /// Its configuration.
    file: PathBuf,
    /// Where it serves clients, if it is known to run.
    url: Option<String>,
}

impl Invited {
    /// The gateway that was typed; without it, the running one of this user.
    async fn to(args: &Invite) -> Result<Self, Failure> {
        let typed = args.target.as_deref();
        let command = format!("invite {}", shell_word(args.key.name.as_str()));
        if let Some(file) = typed.filter(|typed| is_file(typed)) {
            return Ok(Self {
                file: file.into(),
                url: None,
            });
        }
        let address = GatewayAddress::find(typed, &command).await?;
        let description = address.about().unwrap_or_default();
        let member = |key: &str| description[key].as_str().map(str::to_owned);
        let file = member("file").ok_or_else(|| {
            Failure::command(match (typed, &running_gateways()[..]) {
                (Some(typed), known @ [_, ..]) => format!(
                    "no gateway of yours with a configuration answers at {typed}; your running gateways: {}",
                    known.join("; ")
                ),
                _ => format!(
                    "found no running gateway of yours with a configuration; name the configuration, as in `vary {command} \
                     vary.yaml`"
                ),
            })
        })?;
        Ok(Self {
            file: file.into(),
            url: member("url"),
        })
    }
}

/// Whether what was typed is meant as a file, and not as the address of a gateway.
fn is_file(typed: &str) -> bool {
    let is_address =
        typed.parse::<u16>().is_ok() || typed.contains(':') || typed.ends_with(".sock");
    !is_address || Path::new(typed).is_file()
}
