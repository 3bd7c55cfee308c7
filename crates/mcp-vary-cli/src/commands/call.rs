//! `vary call`: one tool, called as one or several clients.

pub(crate) mod args;
pub(crate) mod arguments;
mod schema;
mod waiting;

use mcp_vary::json;
use mcp_vary_upstream::command_line::shell_word;
use mcp_vary_view::INVALID_ARGUMENTS;

use crate::client::{Answer, ClientIdentity, result};
use crate::credentials::LoginMode;
use crate::failure::{Failure, Verdict, refused_variant};
use crate::print::side_by_side::{Block, side_by_side};
use crate::print::{self, sanitize, sanitize_json};
use crate::server_target::args::{ServerTarget, is_target};
use crate::server_target::session::{Needed, TargetSession};
use crate::server_target::unknown_tool;
use crate::stop::Stop;
use crate::tokens::percent;

use self::args::Call;
use self::arguments::Arguments;

/// Calls the tool once per client, and prints the results. Always closes the server.
pub(crate) async fn run(args: Call, mut stop: Stop) -> Result<Verdict, Failure> {
    let called = CallRequest::from_args(&args).await?;
    let variant = args.client.variant.as_deref();
    let tool = &called.tool;
    let needed = Some(Needed { tool, variant });
    let mode = LoginMode::from_flag(args.client.login);
    let session = TargetSession::open(&called.target, needed, mode, &mut stop).await?;
    if let Some(identity) = called.identities.first() {
        session.note_selection(identity, variant);
    }
    let mut answers = Vec::new();
    let calls = call_all(&session, &called, variant, &mut answers);
    let ended = stop.unless_requested(calls).await;
    // If a later client fails, the answers to the clients before it are still shown.
    let shown = if answers.is_empty() {
        Ok(())
    } else if args.client.json {
        print::data(&sanitize_json(&lines(&answers)))
    } else {
        print::data(&columns(&called.titles(), &answers, print::width()))
    };
    if answers.iter().any(Result::is_err) {
        // Nobody has waited for other servers than the one that has the tool.
        if !session.summary.has_tool(tool) {
            session.summary.note_missing_servers();
        }
        session.note_ended_servers();
    }
    session.warn_unmatched();
    let closed = session.close(&mut stop).await;
    let advice = ended?;
    shown.and(closed)?;
    if let Some(sentence) = advice {
        print::notice(&sanitize(&sentence));
    }
    let went_well = |result: &String| !result::is_error(result);
    let fine = answers
        .iter()
        .all(|answer| answer.as_ref().is_ok_and(went_well));
    Ok(Verdict::fine_if(fine))
}

async fn call_all(
    session: &TargetSession,
    called: &CallRequest,
    variant: Option<&str>,
    answers: &mut Vec<Answer>,
) -> Result<Option<String>, Failure> {
    let mut advice = None;
    let needed = Needed {
        tool: &called.tool,
        variant,
    };
    for identity in &called.identities {
        let client = session.client(identity).await?;
        client.check_selectable(variant)?;
        let listed = match client.listed_tool(&called.tool, variant).await {
            // Without types, hints alone are missing.
            Err(_) if !called.arguments.need_schema() => None,
            listed => listed?,
        };
        let tool = listed.and_then(|listed| json::to_value(&listed).ok());
        let schema = tool.as_ref().and_then(|tool| tool.get("inputSchema"));
        let arguments = called.arguments.to_json(schema)?;
        let call = client.call(&called.tool, &arguments, variant);
        let answer = waiting::with_reminders(call, &called.tool, session).await?;
        if let Err(error) = &answer
            && advice.is_none()
        {
            let refused = variant.and_then(|id| refused_variant::unknown_variant(error, id));
            if let Some(why) = refused {
                return Err(Failure::command(sanitize(&why)));
            }
            // The refusal of the call is reported in any case: if the tools cannot be listed, only the advice is missing.
            let meant = match called.missing_tool() {
                Some(meant) => Some(meant),
                None => unknown_tool::suggestion(session, &client, identity, needed)
                    .await
                    .unwrap_or_default(),
            };
            advice = meant.map(|meant| format!("tip: {meant}"));
        }
        // A result that says so names them.
        let is_said = matches!(&answer, Ok(result) if result.contains(INVALID_ARGUMENTS));
        if let (None, Some(schema), false) = (&advice, schema, is_said) {
            let hint = schema::hint(schema, &arguments);
            advice = hint.map(|hint| {
                format!("warning: sent, although the arguments do not fit the tool: {hint}")
            });
        }
        answers.push(answer);
    }
    Ok(advice)
}

/// The call, and the clients that make it.
#[derive(Debug)]
struct CallRequest {
    tool: String,
    arguments: Arguments,
    target: ServerTarget,
    identities: Vec<ClientIdentity>,
}

impl CallRequest {
    /// What to write, if the first word is an argument and not a tool.
    fn missing_tool(&self) -> Option<String> {
        let tool = &self.tool;
        arguments::is_argument(tool).then(|| {
            format!("`{tool}` is an argument; write the tool before it: `vary call TOOL {tool}`")
        })
    }

    async fn from_args(args: &Call) -> Result<Self, Failure> {
        let mut arguments = Arguments::default();
        let mut targets = Vec::new();
        for word in &args.arguments_and_target {
            if arguments::is_argument(word) {
                arguments.add(word)?
            } else {
                targets.push(word.as_str())
            }
        }
        if let [first, second, ..] = targets[..] {
            return Err(Failure::command(format!(
                "`{first}` and `{second}` are two targets; write an argument as NAME=VALUE, and a server's command after `--`"
            )));
        }
        if let Some(why) = swapped(args, &targets) {
            return Err(Failure::command(why));
        }
        let given = &args.client.target;
        let target = given
            .resolve(targets.first().copied(), "vary call TOOL")
            .await?;
        let personas: Result<Vec<ClientIdentity>, Failure> = match args.features.as_slice() {
            [] => Ok(vec![ClientIdentity::default()]),
            several => several
                .iter()
                .map(|features| ClientIdentity::from_args(Some(features), &[]))
                .collect(),
        };
        Ok(Self {
            tool: args.tool.clone(),
            arguments,
            target,
            identities: personas?
                .into_iter()
                .map(|identity| identity.named(args.client.client()))
                .map(|identity| identity.selecting_variants(args.client.variant.is_some()))
                .collect(),
        })
    }
}

impl CallRequest {
    /// Describes the declarations of each client.
    fn titles(&self) -> Vec<String> {
        let title = |identity: &ClientIdentity| match identity.features.as_deref() {
            Some(tags) => tags.replace(',', ", "),
            None => "default result".to_owned(),
        };
        self.identities.iter().map(title).collect()
    }
}

/// What to write if the first word is the target and not the tool. A tool can be called like a port: then the next word is the target.
fn swapped(args: &Call, targets: &[&str]) -> Option<String> {
    let first = &*args.tool;
    let next = targets.first();
    if !is_target(first)
        || next.is_some_and(|target| is_target(target))
        || !args.client.target.command.is_empty()
    {
        return None;
    }
    let Some(tool) = next else {
        return Some(format!(
            "`{first}` is a target, and the tool is missing: `vary call TOOL {first}`; `vary tools {first}` lists the tools"
        ));
    };
    let others = args.arguments_and_target.iter().filter(|word| word != tool);
    let arguments: String = others.map(|word| shell_word(word) + " ").collect();
    Some(format!(
        "the tool comes first: vary call {tool} {arguments}{first}"
    ))
}

/// A line for each answer: the received JSON text.
fn lines(answers: &[Answer]) -> String {
    let line = |answer: &Answer| match answer {
        Ok(result) => result.clone(),
        Err(error) => json::edit::set("{}", "error", error).into_owned(),
    };
    // Between tokens of JSON, a line break is as good as a space; strings cannot contain one.
    answers
        .iter()
        .map(|answer| line(answer).replace(['\n', '\r'], " ") + "\n")
        .collect()
}

fn columns(titles: &[String], answers: &[Answer], width: usize) -> String {
    let read = |answer: &Answer| result::read_tokens(answer.as_ref().ok()?);
    let first = answers.first().and_then(read).filter(|_| answers.len() > 1);
    let blocks: Vec<Block> = titles
        .iter()
        .zip(answers)
        .map(|(title, answer)| {
            let mut block = result::block(title, answer);
            if let Some((first, tokens)) = first.zip(read(answer)) {
                let part = percent(tokens, first);
                block.note += &format!("\na model reads {tokens} tokens ({part} %)");
            }
            block
        })
        .collect();
    side_by_side(&blocks, width)
}
