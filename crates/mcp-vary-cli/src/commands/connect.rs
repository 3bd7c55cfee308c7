//! `vary connect`: puts Vary into the file of an MCP client, and takes it out again.

pub(crate) mod args;
pub(crate) mod client;
mod duplicates;
pub(crate) mod endpoint;
pub(crate) mod entry;
pub(crate) mod file;
mod moving;
mod other_files;
pub(crate) mod places;
mod probe;
pub(crate) mod record;
mod waiting;
pub(crate) mod write;

use std::path::PathBuf;

use http::Uri;
use mcp_vary_config::ClientText;
use tokio::net::TcpStream;

use self::args::Connect;
use self::client::Client;
use self::duplicates::Served;
use self::endpoint::{Endpoint, Start, Target};
use self::file::ClientFile;
use self::other_files::OtherPlace;
use self::places::System;

use crate::environment::{program_path, variable};
use crate::failure::{Failure, Verdict, refused_variant};
use crate::operator;
use crate::print::{self, notice, sanitize};
use crate::stop::Stop;

/// Prints the client's entry, or writes it, or takes it out.
pub(crate) async fn run(args: Connect, mut stop: Stop) -> Result<Verdict, Failure> {
    let client = args.client.client();
    let file = ClientFile::read(path(&args)?)?;
    if args.remove {
        let other = write::taken_out_of(&file).ok().flatten();
        let removed = write::remove(client, &file, args.name.as_deref());
        if !args.project {
            other_files::report_taken_out(client, other);
        }
        removed?;
        return Ok(Verdict::Fine);
    }
    let plan = Plan::new(&args, file)?;
    let snippet = plan.snippet()?;
    let tried = plan.try_variant(&snippet, args.write, &mut stop).await?;
    if !args.write {
        print::data(&snippet)?;
        notice(&sanitize(&plan.advice(args.project)));
        if let Some(why) = plan.unanswered().await {
            notice(&sanitize(&format!("note: {why}")));
        }
        return Ok(Verdict::Fine);
    }
    let written = write::write(&plan, args.move_servers).await?;
    let mut undo = format!("to undo it: {}", remove_command(client, args.project));
    if written.has_others {
        undo.push_str(&format!(" --name {}", plan.name));
    }
    if let Some(other) = written.other {
        let command = remove_command(client, true);
        let other = std::path::absolute(&other).unwrap_or(other);
        undo.push_str(&format!(
            "; what was taken out of {}: {command}",
            other.display()
        ));
    }
    plan.check_variables()?;
    let seen = match tried {
        Some(seen) => seen,
        None => probe::probe(&plan, &snippet, &mut stop).await,
    };
    let seen = match seen {
        Ok(seen) => seen,
        Err(failure) => {
            let unanswered = plan.unanswered().await;
            let failure = plan.not_connected(&failure, unanswered.as_deref());
            return Err(failure.with_line(&undo));
        }
    };
    notice(&sanitize(&seen));
    if let Some(note) = plan.inherited_variables() {
        notice(&sanitize(&note));
    }
    let entry = format!("`{}`", plan.name);
    let see = plan.client.see.replace("`vary`", &entry);
    notice(&format!("in {}: {see}", plan.client.title));
    notice(&undo);
    Ok(Verdict::Fine)
}

/// The command that takes Vary out of a file of `client`.
pub(crate) fn remove_command(client: &Client, is_project: bool) -> String {
    let project = if is_project { " --project" } else { "" };
    format!("vary connect {}{project} --remove", client.name)
}

/// What is to be written, and where.
#[derive(Debug)]
struct Plan {
    client: &'static Client,
    /// The name of Vary in the client's file.
    name: String,
    endpoint: Endpoint,
    file: ClientFile,
    /// Whether it is the file of the project.
    is_project: bool,
    /// Where else the client has servers.
    others: Vec<OtherPlace>,
    /// The address of the gateway; `None` if the client starts Vary for a file or a command.
    address: Option<String>,
    /// The servers that Vary serves; `None` if that is not known.
    served: Option<Served>,
    /// The file that the gateway serves, if the client reads that file as well.
    shared_file: Option<PathBuf>,
    /// The variant that the client is to get.
    variant: Option<String>,
    /// The command that says which server of the configuration does not answer.
    check_command: Option<String>,
    /// The command that writes the same entry, and takes out what Vary serves.
    moving_command: String,
    /// The same for the user's file.
    user_moving_command: String,
}

impl Plan {
    fn new(args: &Connect, file: ClientFile) -> Result<Self, Failure> {
        let name = args.name.as_deref().unwrap_or("vary");
        check_name(name)?;
        let client = args.client.client();
        endpoint::check_secrets(args)?;
        let target = Target::read(args)?;
        let launch = start(args, &target)?;
        let endpoint = match &target {
            Target::Address(address) if client.url.is_some() => endpoint::http(address, args)?,
            _ => endpoint::stdio(&target, args, &launch)?,
        };
        let others = if args.write {
            other_files::find(client, &file, args.project)
        } else {
            Vec::new()
        };
        let address = target.address();
        let running = match &args.config {
            None => address.as_deref().and_then(operator::client::served_file),
            Some(_) => None,
        };
        let places = others.iter().filter_map(|place| place.file.as_ref());
        let shared_file = running.clone().filter(|served| {
            let mut files = places.chain([&file]);
            files.any(|file| std::fs::canonicalize(&file.path).is_ok_and(|path| path == *served))
        });
        let served = match (&target, &args.config) {
            (Target::Address(_), Some(path)) => Some(Served::of_file(path, &file.path, None)?),
            // A file that cannot be read any more says nothing of what is served.
            (Target::Address(_), None) if shared_file.is_some() => None,
            (Target::Address(_), None) => {
                running.and_then(|path| Served::of_file(&path, &file.path, None).ok())
            }
            (_, Some(_)) => {
                let why = "--config is for an address; here the configuration is TARGET";
                return Err(Failure::command(why));
            }
            (Target::File(path), None) => {
                let variant = args.variant.as_deref();
                Some(Served::of_file(path, &file.path, variant)?)
            }
            (Target::Command(command), None) => Some(Served::of_command(command)),
        };
        let is_known = served.is_some() || shared_file.is_some();
        let placeholder = (!is_known).then_some("VARY.YAML");
        Ok(Self {
            client,
            name: name.to_owned(),
            endpoint,
            file,
            is_project: args.project,
            others,
            address,
            served,
            shared_file,
            variant: args.variant.clone(),
            check_command: target.check_command(),
            moving_command: args.moving_command(placeholder, args.project),
            user_moving_command: args.moving_command(placeholder, false),
        })
    }

    /// A file of the client that has Vary alone.
    fn snippet(&self) -> Result<String, Failure> {
        let entry = entry::entry(self.client, &self.endpoint, false)?;
        let file = ClientText::new(self.client.syntax, "");
        let snippet = file.insert(self.client.container, &self.name, &entry);
        snippet.map_err(|diagnostic| Failure::command(diagnostic.to_string()))
    }

    /// What to do with the snippet.
    fn advice(&self, is_project: bool) -> String {
        let path = self.file.path.display();
        let mut out = format!("add it to {path}, or repeat the command with --write");
        let command = entry::command(self.client, &self.name, &self.endpoint, is_project);
        if let Some(command) = command {
            out.push_str(&format!("\nor run: {command}"));
        }
        let missing = self.missing_variables();
        if !missing.is_empty() {
            let names = missing.join(", ");
            let title = self.client.title;
            out.push_str(&format!(
                "\nnot set here: {names}; set it where {title} is started"
            ));
        }
        if let Some(note) = self.inherited_variables() {
            out.push('\n');
            out.push_str(&note);
        }
        out
    }

    /// Names the variables of the configuration that the client has to pass on to the Vary that it starts.
    fn inherited_variables(&self) -> Option<String> {
        let Endpoint::Stdio { .. } = self.endpoint else {
            return None;
        };
        let variables = self.served.as_ref()?.variables.iter();
        let names: Vec<_> = variables.map(|name| format!("`{name}`")).collect();
        let title = self.client.title;
        let it = if names.len() == 1 { "it" } else { "them" };
        (!names.is_empty()).then(|| {
            format!(
                "the configuration uses {}, set here: {title} needs {it} in its environment too; if it is started from a \
                 desktop, write {it} into `env` of this entry",
                names.join(", ")
            )
        })
    }

    /// Connects to the address as the client will, and fails if the variant is refused: then nothing is written or
    /// printed. Another failure is an outcome: the gateway may be started later. `None` if nothing was tried.
    async fn try_variant(
        &self,
        snippet: &str,
        is_writing: bool,
        stop: &mut Stop,
    ) -> Result<Option<Result<String, Failure>>, Failure> {
        let is_address = matches!(self.endpoint, Endpoint::Http { .. });
        if self.variant.is_none() || !is_address || !self.missing_variables().is_empty() {
            return Ok(None);
        }
        let seen = match probe::probe(self, snippet, stop).await {
            // A signal, for one.
            Err(failure) if failure.is_of_command() => return Err(failure),
            seen => seen,
        };
        let failure = seen.as_ref().err();
        let Some(why) = failure.and_then(|failure| self.refused_variant(failure)) else {
            return Ok(Some(seen));
        };
        let outcome = if is_writing {
            "nothing was written: "
        } else {
            ""
        };
        Err(Failure::looked_at(sanitize(&format!(
            "{outcome}{why}\nrepeat the command with another --variant"
        ))))
    }

    /// What to do if nothing listens at the address of a gateway on this machine; `None` if something does.
    async fn unanswered(&self) -> Option<String> {
        let address = self.address.as_ref()?;
        let uri = address.parse::<Uri>().ok()?;
        let host = uri.host()?;
        let is_local = matches!(host, "127.0.0.1" | "localhost" | "[::1]");
        let connecting = TcpStream::connect(format!("{host}:{}", uri.port_u16().unwrap_or(80)));
        let is_unanswered = is_local && connecting.await.is_err();
        let client = self.client.name;
        let project = if self.is_project { " --project" } else { "" };
        let command = |url: &str| format!("vary connect {client} {url}{project} --write");
        is_unanswered.then(|| operator::client::unanswered(address, command))
    }

    /// The variables of headers, or of the configuration that the client's own Vary reads, that are not set here.
    fn missing_variables(&self) -> Vec<String> {
        let Endpoint::Http { headers, .. } = &self.endpoint else {
            let served = self.served.as_ref();
            return served.map_or_else(Vec::new, |served| served.missing_variables.clone());
        };
        let values = headers
            .iter()
            .flat_map(|(_, value)| value.split("${").skip(1));
        let written = values.filter_map(|after| after.split_once('}').map(|(name, _)| name));
        let required = written.filter(|name| !name.contains(":-"));
        let names = required.map(|name| name.strip_prefix("env:").unwrap_or(name));
        let missing = names.filter(|name| variable(name).is_none());
        missing.map(|name| format!("`{name}`")).collect()
    }

    /// Fails if a variable is missing without which the connection cannot be tried.
    fn check_variables(&self) -> Result<(), Failure> {
        let missing = self.missing_variables();
        if missing.is_empty() {
            return Ok(());
        }
        let title = self.client.title;
        Err(Failure::looked_at(sanitize(&format!(
            "{} is written, but {} not set here, so the connection was not tried; set it where {title} is started, and \
             repeat the command to try it",
            self.file.path.display(),
            match &missing[..] {
                [one] => format!("the variable {one} is"),
                several => format!("the variables {} are", several.join(", ")),
            }
        ))))
    }

    /// Why the variant is refused, if that is why the connection failed.
    fn refused_variant(&self, failure: &Failure) -> Option<String> {
        refused_variant::unknown_variant(failure.refusal()?, self.variant.as_deref()?)
    }

    /// The error after a connection that failed, although the file is written.
    fn not_connected(&self, failure: &Failure, unanswered: Option<&str>) -> Failure {
        let path = self.file.path.display();
        let title = self.client.title;
        if let Some(why) = unanswered {
            return Failure::looked_at(sanitize(&format!("{path} is written, but {why}")));
        }
        if failure.is_of_command() {
            let next = match &self.check_command {
                Some(check) => {
                    format!(
                        "to see what each server answers, after its `start-timeout` (a minute by default) at most: {check}"
                    )
                }
                None => "repeat the command to try it".to_owned(),
            };
            return Failure::looked_at(sanitize(&format!(
                "{failure}; {path} is written, and whether the connection works is not known; {next}"
            )));
        }
        if let (true, Endpoint::Http { headers, .. }) = (failure.is_unauthorized(), &self.endpoint)
        {
            let advice = if headers.is_empty() {
                format!(
                    "wants a key or a login: repeat the command with `--header 'Authorization: Bearer ${{VARY_API_KEY}}'`, or \
                     let {title} log in by itself"
                )
            } else {
                "does not know the key or token of --header: check that it is complete and has not expired; `vary key new` \
                 makes a key"
                    .to_owned()
            };
            return Failure::looked_at(format!(
                "{path} is written, but the gateway {advice} (HTTP 401 Unauthorized)"
            ));
        }
        if let Some(why) = self.refused_variant(failure) {
            return Failure::looked_at(sanitize(&format!(
                "{path} is written, but {why}\nrepeat the command with another --variant"
            )));
        }
        let advice = match &self.endpoint {
            Endpoint::Http { url, .. } => format!("to try it again: vary inspect {url}"),
            Endpoint::Stdio { program, args } => match &self.check_command {
                Some(check) => format!("to see what each server answers: {check}"),
                None => format!("to see what is wrong, run: {program} {}", args.join(" ")),
            },
        };
        Failure::looked_at(format!(
            "{path} is written, but {title} could not connect: {failure}\n{advice}"
        ))
    }
}

/// The client's file that the arguments mean.
fn path(args: &Connect) -> Result<PathBuf, Failure> {
    let client = args.client.client();
    if args.project {
        let file = places::project_file(client, std::path::Path::new(""))?;
        places::check_inside(&file, std::path::Path::new("."))?;
        return Ok(file);
    }
    let file = places::user_file(client, System::current(), &variable)?;
    places::check_home(client, &file, &variable)?;
    Ok(file)
}

/// How the client starts this program.
fn start(args: &Connect, target: &Target) -> Result<Start, Failure> {
    if args.project {
        let directory = args.client.client().project_directory;
        return Ok(Start {
            program: "vary".to_owned(),
            project_directory: Some(directory),
            directory: directory.map(str::to_owned),
        });
    }
    let text = program_path()?.into_os_string().into_string();
    let program = text.map_err(|_| Failure::command("this program's path is not Unicode"))?;
    Ok(Start {
        program,
        project_directory: None,
        directory: endpoint::directory(target)?,
    })
}

/// Names that every client accepts, and that are keys in TOML.
fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=64).contains(&name.len()) && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(Failure::command(format!(
        "--name: `{name}` cannot be the name of a server; write 1 to 64 ASCII letters, digits, `-` or `_`"
    )))
}
