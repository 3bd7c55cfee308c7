//! `vary call`: one tool, called as one or several clients.

use mcp_vary::json::Members;

use crate::args::Call;
use crate::client::ClientIdentity;
use crate::failure::{Failure, Verdict};
use crate::lint::{self, Linted};
use crate::print::result;
use crate::print::side_by_side::{Block, side_by_side};
use crate::print::{self, sanitize_json};
use crate::stop::Stop;
use crate::target_session::TargetSession;
use crate::tokens::percent;

/// Calls the tool once per client, and prints the results. Always closes the server.
pub(crate) async fn run(args: Call, mut stop: Stop) -> Result<Verdict, Failure> {
    let called = CallRequest::from_args(&args)?;
    let url = called.url.as_deref();
    let front = TargetSession::from_args(
        &args.client,
        url,
        &args.command,
        Some(&called.tool),
        &mut stop,
    )
    .await?;
    let mut answers = Vec::new();
    let calls = call_all(
        &front,
        &called,
        args.client.variant.as_deref(),
        args.lint,
        &mut answers,
    );
    let ended = stop.unless_requested(calls).await;
    // If a later client fails, the answers to the clients before it are still shown.
    let shown = if answers.is_empty() {
        Ok(())
    } else if args.client.json {
        print::data(&sanitize_json(&lines(&answers)))
    } else {
        let shown = columns(&called.titles(), &answers, print::width());
        print::data(&(shown + &lint::report(&called.titles(), &answers)))
    };
    let closed = front.close(&mut stop).await;
    ended.and(shown).and(closed)?;
    let fine = answers.iter().all(|called| {
        let went_well = |result: &String| !result::is_error(result);
        called.answer.as_ref().is_ok_and(went_well) && !lint::contradicts(called)
    });
    Ok(if fine { Verdict::Fine } else { Verdict::Failed })
}

async fn call_all(
    front: &TargetSession,
    called: &CallRequest,
    variant: Option<&str>,
    is_linted: bool,
    answers: &mut Vec<Linted>,
) -> Result<(), Failure> {
    for persona in &called.identities {
        let client = front.client(persona).await?;
        client.check_selectable(variant)?;
        let answer = client.call(&called.tool, &called.arguments, variant);
        let answer = answer.await?;
        let findings = match &answer {
            Ok(result) if is_linted => {
                let listed = client.listed(&called.tool, variant).await?;
                Some(lint::findings(result, listed.as_deref())?)
            }
            _ => None,
        };
        answers.push(Linted { answer, findings });
    }
    Ok(())
}

/// The call, and the clients that make it.
#[derive(Debug)]
struct CallRequest {
    tool: String,
    /// The JSON text of an object.
    arguments: String,
    url: Option<String>,
    identities: Vec<ClientIdentity>,
}

impl CallRequest {
    fn from_args(args: &Call) -> Result<Self, Failure> {
        // `call TOOL URL` omits the arguments.
        let (arguments, url) = match (&args.arguments, &args.url) {
            (Some(word), None) if args.command.is_empty() && is_url(word) => (None, Some(word)),
            (arguments, url) => (arguments.as_deref(), url.as_ref()),
        };
        let arguments = arguments.unwrap_or("{}").trim();
        check_arguments(arguments)?;
        if url.is_none() && args.command.is_empty() && args.client.config.is_none() {
            return Err(Failure::command(
                "a server is missing; give its URL, --config and a file, or `--` and its command",
            ));
        }
        let personas: Result<Vec<ClientIdentity>, Failure> = match args.features.as_slice() {
            [] => Ok(vec![ClientIdentity::default()]),
            several => several
                .iter()
                .map(|features| ClientIdentity::from_args(Some(features), &[]))
                .collect(),
        };
        Ok(Self {
            tool: args.tool.clone(),
            arguments: arguments.to_owned(),
            url: url.cloned(),
            identities: personas?,
        })
    }
}

impl CallRequest {
    /// Describes the declarations of each client.
    fn titles(&self) -> Vec<String> {
        let title = |persona: &ClientIdentity| match persona.features.as_deref() {
            Some(tags) => tags.replace(',', ", "),
            None => "declares nothing".to_owned(),
        };
        self.identities.iter().map(title).collect()
    }
}

fn is_url(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
}

fn check_arguments(arguments: &str) -> Result<(), Failure> {
    match Members::parse(arguments) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::command(format!(
            "the arguments are not a JSON object: {error}; write them like '{{\"location\":\"Bern\"}}'"
        ))),
    }
}

/// A line for each answer: the received JSON text, with the findings.
fn lines(answers: &[Linted]) -> String {
    let line = |called: &Linted| match (&called.answer, &called.findings) {
        (Ok(result), Some(findings)) => lint::json(result, findings),
        (Ok(result), None) => result.clone(),
        (Err(error), _) => format!("{{\"error\":{error}}}"),
    };
    // Between tokens of JSON, a line break is as good as a space; strings cannot contain one.
    answers
        .iter()
        .map(|answer| line(answer).replace(['\n', '\r'], " ") + "\n")
        .collect()
}

fn columns(titles: &[String], answers: &[Linted], width: usize) -> String {
    let read = |called: &Linted| result::read_tokens(called.answer.as_ref().ok()?);
    let first = answers.first().and_then(read).filter(|_| answers.len() > 1);
    let blocks: Vec<Block> = titles
        .iter()
        .zip(answers)
        .map(|(title, called)| {
            let mut block = result::block(title, &called.answer);
            if let (Some(first), Some(tokens)) = (first, read(called)) {
                let part = percent(tokens, first);
                block.note += &format!("\na model reads {tokens} tokens ({part} %)");
            }
            block
        })
        .collect();
    side_by_side(&blocks, width)
}
