//! `vary call`: one tool, called as this or that client.

use mcp_vary::json::Members;

use crate::args::Call;
use crate::client::{Answered, Persona};
use crate::failure::{Failure, Verdict};
use crate::front::Front;
use crate::print::result;
use crate::print::side_by_side::{Block, side_by_side};
use crate::print::{self, harmless_json};
use crate::stop::Stop;

/// Calls the tool once per client, prints what each gets; whatever comes of it, the server is closed.
pub(crate) async fn run(args: Call, mut stop: Stop) -> Result<Verdict, Failure> {
    let called = Called::typed(&args)?;
    let url = called.url.as_deref();
    let front = Front::typed(&args.client, url, &args.command, &mut stop).await?;
    let mut answers = Vec::new();
    let calls = call_all(
        &front,
        &called,
        args.client.variant.as_deref(),
        &mut answers,
    );
    let ended = stop.unless_asked(calls).await;
    // A later client that fails takes nothing from those before it.
    let shown = if answers.is_empty() {
        Ok(())
    } else if args.client.json {
        print::data(&harmless_json(&lines(&answers)))
    } else {
        print::data(&columns(&called.personas, &answers, print::width()))
    };
    let closed = front.close(&mut stop).await;
    ended.and(shown).and(closed)?;
    let fine = answers.iter().all(|answer| {
        answer
            .as_ref()
            .is_ok_and(|result| !result::is_error(result))
    });
    Ok(if fine { Verdict::Fine } else { Verdict::Failed })
}

async fn call_all(
    front: &Front,
    called: &Called,
    variant: Option<&str>,
    answers: &mut Vec<Answered>,
) -> Result<(), Failure> {
    for persona in &called.personas {
        let client = front.client(persona).await?;
        client.check_selectable(variant)?;
        let answer = client.call(&called.tool, &called.arguments, variant);
        answers.push(answer.await?);
    }
    Ok(())
}

/// What is to be called, and by whom.
#[derive(Debug)]
struct Called {
    tool: String,
    /// The JSON text of an object.
    arguments: String,
    url: Option<String>,
    personas: Vec<Persona>,
}

impl Called {
    fn typed(args: &Call) -> Result<Self, Failure> {
        // `call TOOL URL` leaves the arguments out.
        let (arguments, url) = match (&args.arguments, &args.url) {
            (Some(word), None) if args.command.is_empty() && is_url(word) => (None, Some(word)),
            (arguments, url) => (arguments.as_deref(), url.as_ref()),
        };
        let arguments = arguments.unwrap_or("{}").trim();
        check(arguments)?;
        if url.is_none() && args.command.is_empty() && args.client.config.is_none() {
            return Err(Failure::command(
                "a server is missing; give its URL, --config and a file, or `--` and its command",
            ));
        }
        let personas: Result<Vec<Persona>, Failure> = match args.features.as_slice() {
            [] => Ok(vec![Persona::default()]),
            several => several
                .iter()
                .map(|features| Persona::typed(Some(features), &[]))
                .collect(),
        };
        Ok(Self {
            tool: args.tool.clone(),
            arguments: arguments.to_owned(),
            url: url.cloned(),
            personas: personas?,
        })
    }
}

fn is_url(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
}

fn check(arguments: &str) -> Result<(), Failure> {
    match Members::parse(arguments) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::command(format!(
            "the arguments are no JSON object: {error}; write them like '{{\"location\":\"Bern\"}}'"
        ))),
    }
}

/// Each answer as the JSON text that came, on a line of its own.
fn lines(answers: &[Answered]) -> String {
    let line = |answer: &Answered| match answer {
        Ok(result) => result.clone(),
        Err(error) => format!("{{\"error\":{error}}}"),
    };
    // Between the tokens of JSON a line break is a space; inside a string it cannot stand.
    answers
        .iter()
        .map(|answer| line(answer).replace(['\n', '\r'], " ") + "\n")
        .collect()
}

fn columns(personas: &[Persona], answers: &[Answered], width: usize) -> String {
    let blocks: Vec<Block> = personas
        .iter()
        .zip(answers)
        .map(|(persona, answer)| {
            let title = persona
                .features
                .as_deref()
                .map(|tags| tags.replace(',', ", "));
            result::block(title.as_deref().unwrap_or("declares nothing"), answer)
        })
        .collect();
    side_by_side(&blocks, width)
}
