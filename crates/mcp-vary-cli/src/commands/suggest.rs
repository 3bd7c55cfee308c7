//! `vary suggest`: a variant with the tools that were used.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use http::{Method, StatusCode};
use hyper::body::Bytes;
use mcp_vary_page::{ToolKey, Usage, UsedCall};
use mcp_vary_upstream::command_line::shell_word;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use crate::audit_log::LogFile;
use crate::commands::operate::{written_token, wrong_token};
use crate::environment::variable;
use crate::failure::{Failure, Verdict};
use crate::operator::client::{GatewayAddress, not_the_operators, page_fix};
use crate::print::servers::{first_names, plural};
use crate::print::{self, notice, sanitize, sanitize_json};
use crate::similar::nearest;
use crate::stop::Stop;
use crate::tokens;

pub(crate) mod args;

use args::Suggest;

/// Prints the variant.
pub(crate) async fn run(args: Suggest, mut stop: Stop) -> Result<Verdict, Failure> {
    let (proposal, usage) = stop.unless_requested(propose(&args)).await?;
    if args.json {
        print::data(&sanitize_json(&format!("{proposal:#}\n")))?;
        return Ok(Verdict::Fine);
    }
    print::data(&to_text(&proposal))?;
    if usage.without_arguments > 0 {
        notice(
            "to have arguments fixed, too, log them: set `arguments: full` under `audit`, which can log secrets, and after \
             some calls type: vary suggest --audit FILE",
        );
    }
    Ok(Verdict::Fine)
}

async fn propose(args: &Suggest) -> Result<(Value, Usage), Failure> {
    let page = PageData::find(args).await?;
    let (logs, empty) = (args.audit.clone(), Usage::of(args.client.as_deref()));
    let reading = tokio::task::spawn_blocking(move || read_logs(&logs, empty));
    let read = reading.await;
    let mut usage = read.map_err(|error| Failure::command(error.to_string()))??;
    if args.audit.is_empty() {
        let recorded = page.get("/api/last-calls").await?;
        let calls = recorded["calls"].as_array().into_iter().flatten();
        calls.filter_map(UsedCall::of_history).for_each(|call| {
            usage.add(call);
        });
    }
    if usage.calls == 0 {
        return Err(no_calls(&usage, args));
    }
    let catalog = page.get("/api/catalog").await?;
    let fixed = fixed(&page, &usage).await;
    let value = usage.variant(&catalog, &fixed);
    let body = json!({"id": usage.id(), "value": value}).to_string();
    let drafted = page.send(Method::POST, "/api/draft", body.into()).await?;
    Ok((usage.proposal(&value, &catalog, &drafted), usage))
}

/// The calls in audit logs.
fn read_logs(logs: &[PathBuf], mut usage: Usage) -> Result<Usage, Failure> {
    for path in logs {
        LogFile::open(path)?.read(|record| {
            if let Some(call) = UsedCall::of_record(record) {
                usage.add(call);
            }
            Ok(())
        })?;
    }
    Ok(usage)
}

/// Why no variant can be proposed without a call.
fn no_calls(usage: &Usage, args: &Suggest) -> Failure {
    let others = || usage.others.iter().map(String::as_str);
    let why = match &args.client {
        Some(client) if !usage.others.is_empty() => {
            let near = nearest(client, others()).map(|near| format!("did you mean `{near}`? "));
            let quoted: Vec<_> = others().map(|other| format!("`{other}`")).collect();
            format!(
                "no calls of a client `{client}`; {}there are calls of {}",
                near.unwrap_or_default(),
                first_names(&quoted)
            )
        }
        _ if args.audit.is_empty() => NO_HISTORY.to_owned(),
        _ => "no calls of tools in the audit log".to_owned(),
    };
    Failure::command(sanitize(&why))
}

/// The arguments of tools to fix, as far as the schemas of servers list them.
async fn fixed(page: &PageData, usage: &Usage) -> BTreeMap<ToolKey, Map<String, Value>> {
    let mut fixed = BTreeMap::new();
    for (tool, used) in &usage.tools {
        let mut arguments = used.fixable();
        if arguments.is_empty() {
            continue;
        }
        let [server, name] =
            [&tool.server, &tool.name].map(|text| utf8_percent_encode(text, NON_ALPHANUMERIC));
        let path = format!("/api/tool?server={server}&name={name}");
        let listed = page.get(&path).await.unwrap_or_default();
        let properties = &listed["original"]["inputSchema"]["properties"];
        arguments.retain(|argument, _| properties[argument].is_object());
        if !arguments.is_empty() {
            fixed.insert(tool.clone(), arguments);
        }
    }
    fixed
}

/// The entry of the variant, below what it saves, as comments.
fn to_text(proposal: &Value) -> String {
    let number = |key: &str| usize::try_from(proposal[key].as_u64().unwrap_or(0)).unwrap_or(0);
    let (tokens, all) = (number("tokens"), number("allTokens"));
    let saved = 100_usize.saturating_sub(tokens::percent(tokens, all));
    let was = if number("tools") == 1 { "was" } else { "were" };
    let comments = format!(
        "# {} of {} tools {was} called, in {}. They cost {tokens} tokens in place of {all}: {saved} % less.\n\
         # Put this under `variants` of the file. Its address is /mcp/v/{}; or name it in a rule of `clients`.\n",
        number("tools"),
        number("allTools"),
        plural(number("calls"), "call"),
        proposal["id"].as_str().unwrap_or_default(),
    );
    sanitize(&(comments + proposal["yaml"].as_str().unwrap_or_default()))
}

/// What was typed, before the address of a gateway.
fn command(args: &Suggest) -> String {
    let mut command = "suggest".to_owned();
    if let Some(client) = &args.client {
        command.push_str(&format!(" {}", shell_word(client)));
    }
    for path in &args.audit {
        command.push_str(&format!(
            " --audit {}",
            shell_word(&path.display().to_string())
        ));
    }
    sanitize(&(command + " --admin"))
}

/// The data of the page of a running gateway.
struct PageData {
    address: GatewayAddress,
    token: Option<String>,
}

impl PageData {
    /// That of the gateway at the address that was typed; without one, of the running gateway of this user.
    async fn find(args: &Suggest) -> Result<Self, Failure> {
        let address = GatewayAddress::find(args.admin.as_deref(), &command(args)).await?;
        let token = variable("VARY_ADMIN_TOKEN").or_else(|| written_token(&address));
        Ok(Self { address, token })
    }

    async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.send(Method::GET, path, Bytes::new()).await
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Value, Failure> {
        let address = &self.address;
        let token = self.token.as_deref();
        let answered = address.send(method, path, token, body, TIMEOUT).await;
        let (status, text) = answered.map_err(|why| {
            let failure = Failure::command(format!("no answer from {address}: {why}"));
            match address {
                GatewayAddress::Default => failure.with_line(
                    "`vary suggest` needs the running gateway for its tools, also with --audit",
                ),
                _ => failure,
            }
        })?;
        let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
        match (status, answer["error"].as_str()) {
            (StatusCode::OK, _) if answer.is_object() => Ok(answer),
            (StatusCode::UNAUTHORIZED, _) => Err(wrong_token(address)),
            (StatusCode::NOT_FOUND, error)
                if error.is_some() || matches!(address, GatewayAddress::Socket(_)) =>
            {
                let fix = page_fix(&address.about().unwrap_or_default());
                Err(Failure::command(sanitize(&format!(
                    "the gateway at {address} has no page, which records calls; {fix}"
                ))))
            }
            (_, Some(why)) => Err(Failure::command(sanitize(why))),
            _ => {
                let why = not_the_operators(status, "suggest --admin");
                Err(Failure::command(format!("no answer from {address}: {why}")))
            }
        }
    }
}

/// Counting the tokens of thousands of tools takes a while.
const TIMEOUT: Duration = Duration::from_secs(60);
const NO_HISTORY: &str = "no calls of tools yet since the start of the gateway; call some with your client, or read the calls of an audit \
                          log: `vary suggest --audit FILE`";
