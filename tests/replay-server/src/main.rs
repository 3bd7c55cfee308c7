//! The replay server's command line.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::process::ExitCode;

use replay_server::{Era, Recording, Replay, serve_http, serve_stdio};

const USAGE: &str = "\
An MCP server made of a recorded list: it lists what FILE holds, and answers each call with the result
that is recorded for it or with the name and arguments that arrived.

Usage: replay-server FILE [--http ADDRESS] [--era legacy|modern|both]

  FILE              JSON: {\"tools\": [...], \"prompts\": [...], \"resources\": [...], \"templates\": [...],
                    \"results\": {\"tools\": {NAME: RESULT}, \"prompts\": {...}, \"resources\": {URI: RESULT}}}
  --http ADDRESS    serve streamable HTTP there, and print its URL; port 0 is any free one
  --era ERA         which revisions are spoken [default: both]
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help") {
        return ended(print(USAGE));
    }
    ended(CommandLine::parse(&arguments).and_then(|line| serve(&line)))
}

fn ended(result: Result<(), String>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    // Who reads none of it learns from the code.
    let _ = writeln!(io::stderr(), "replay-server: {error}");
    ExitCode::from(2)
}

/// What was typed.
#[derive(Debug, Default)]
struct CommandLine {
    file: String,
    http: Option<String>,
    era: Era,
}

impl CommandLine {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut line = Self::default();
        let mut remaining = arguments.iter();
        while let Some(argument) = remaining.next() {
            let mut value = || {
                let value = remaining.next().cloned();
                value.ok_or_else(|| format!("`{argument}` needs a value; see --help"))
            };
            match argument.as_str() {
                "--http" => line.http = Some(value()?),
                "--era" => line.era = value()?.parse()?,
                file if line.file.is_empty() && !file.starts_with('-') => {
                    file.clone_into(&mut line.file)
                }
                other => return Err(format!("`{other}` is not understood; see --help")),
            }
        }
        if line.file.is_empty() {
            return Err("name the file with the recorded list; see --help".to_owned());
        }
        Ok(line)
    }
}

fn serve(line: &CommandLine) -> Result<(), String> {
    let file = &line.file;
    let text =
        fs::read_to_string(file).map_err(|error| format!("{file} cannot be read: {error}"))?;
    let recording = Recording::parse(&text)
        .map_err(|mistakes| format!("{file} is no recording\n{mistakes}"))?;
    let replay = Replay::new(recording, line.era);
    let Some(address) = &line.http else {
        let served = serve_stdio(&replay, io::stdin().lock(), io::stdout().lock());
        return served.map_err(|error| error.to_string());
    };
    let listener = TcpListener::bind(address)
        .map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    print(&format!("http://{address}/mcp\n"))?;
    serve_http(replay, &listener).map_err(|error| error.to_string())
}

fn print(text: &str) -> Result<(), String> {
    let mut output = io::stdout().lock();
    let written = output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush());
    written.map_err(|error| error.to_string())
}
