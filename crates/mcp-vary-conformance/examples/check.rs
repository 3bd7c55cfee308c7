//! Checks a server: `cargo run -p mcp-vary-conformance --example check -- URL [--only ID]... [--format plain|json|junit]
//! [--header 'NAME: VALUE']... [--tool NAME=ARGUMENTS]... [--expect variants|negotiation]... [-- COMMAND ARGUMENT...]`, with the command instead of a URL. The exit code is 0 if no MUST
//! is violated, 1 if one is, and 2 if nothing could be checked. `vary check` has more options.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a command")]

use std::process::ExitCode;

use mcp_vary_conformance::{Extension, Format, Options, Target, run};

const USAGE: &str = "usage: check [URL] [--only ID]... [--format plain|json|junit] [--header 'NAME: VALUE']... [--tool NAME=ARGUMENTS]... [--expect variants|negotiation]... [-- COMMAND...]";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match check(&arguments).await {
        Ok((text, passes)) => {
            print!("{text}");
            if passes {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

async fn check(arguments: &[String]) -> Result<(String, bool), Box<dyn std::error::Error>> {
    let end = arguments.iter().position(|argument| argument == "--");
    let (options, command) = arguments.split_at(end.unwrap_or(arguments.len()));
    let (mut target, options) = match command {
        [_, command @ ..] => (Target::command(command)?, options),
        [] => {
            let (url, options) = options.split_first().ok_or(USAGE)?;
            (Target::http(url)?, options)
        }
    };
    let mut only = Vec::new();
    let mut checked = Options::default();
    let mut format = Format::Plain;
    for option in options.chunks(2) {
        match option {
            [name, id] if name == "--only" => only.push(id.clone()),
            [name, header] if name == "--header" => {
                let (name, value) = header.split_once(':').ok_or(USAGE)?;
                target = target.with_header(name, value.trim())?;
            }
            [name, tool] if name == "--tool" => {
                let (name, arguments) = tool.split_once('=').ok_or(USAGE)?;
                checked = checked.tool(name, Some(arguments))?;
            }
            [name, extension] if name == "--expect" => {
                checked = checked.expect(parse_extension(extension)?);
            }
            [name, value] if name == "--format" => format = parse_format(value)?,
            _ => return Err(USAGE.into()),
        }
    }
    let report = run(&target, &checked.only(only)?).await?;
    Ok((report.render(format), report.passes()))
}

fn parse_extension(name: &str) -> Result<Extension, &'static str> {
    match name {
        "variants" => Ok(Extension::Variants),
        "negotiation" => Ok(Extension::Negotiation),
        _ => Err(USAGE),
    }
}

fn parse_format(name: &str) -> Result<Format, &'static str> {
    match name {
        "plain" => Ok(Format::Plain),
        "json" => Ok(Format::Json),
        "junit" => Ok(Format::Junit),
        _ => Err(USAGE),
    }
}
