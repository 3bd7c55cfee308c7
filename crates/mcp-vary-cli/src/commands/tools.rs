//! `vary tools`: the tools of one variant as a client reads them, and how they differ from the server's own.

pub(crate) mod args;

use std::fmt::Write as _;
use std::io;

use mcp_vary::json::{Json, Members, to_value};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use crate::client::{Client, ClientIdentity};
use crate::credentials::LoginMode;
use crate::failure::{Failure, Verdict};
use crate::print::indent::indented;
use crate::print::servers::plural;
use crate::print::terminal::has_color;
use crate::print::word_diff::changed_lines;
use crate::print::wrap::wrap;
use crate::print::{self, sanitize, sanitize_json};
use crate::server_target::args::{ClientArgs, ServerTarget};
use crate::server_target::session::{Needed, TargetSession};
use crate::server_target::unknown_tool;
use crate::stop::Stop;
use crate::{operator, tokens};

use self::args::Tools;

/// Reads the tools and prints them. Always closes the server.
pub(crate) async fn run(mut args: Tools, mut stop: Stop) -> Result<Verdict, Failure> {
    let given = &args.client.target;
    let resolved = given.resolve(args.named.as_deref(), "vary tools").await?;
    let target = match &resolved {
        ServerTarget::Url { url, .. } if args.diff => {
            served_file(url, &mut args.client)?.unwrap_or(resolved)
        }
        _ => resolved,
    };
    let mode = LoginMode::from_flag(args.client.login);
    let session = TargetSession::open(&target, None, mode, &mut stop).await?;
    let identity = ClientIdentity::default().named(args.client.client());
    session.note_selection(&identity, args.client.variant.as_deref());
    let read = stop.unless_requested(ToolList::read(&args, &session)).await;
    let shown = read.and_then(|list| {
        print::data(&if args.client.json {
            sanitize_json(&list.to_json())
        } else {
            list.to_text(&args)
        })
    });
    session.summary.note_missing_servers();
    session.warn_unmatched();
    let closed = session.close(&mut stop).await;
    shown.and(closed).map(|()| Verdict::Fine)
}

/// The file that the gateway at `url` serves: it has the servers' own tools. A variant in the address becomes that of `args`.
fn served_file(url: &str, args: &mut ClientArgs) -> Result<Option<ServerTarget>, Failure> {
    let Some(path) = operator::client::served_file(url) else {
        return Ok(None);
    };
    let encoded = url
        .split_once("/mcp/v/")
        .map(|(_, id)| percent_decode_str(id));
    let variant = encoded.map(|id| id.decode_utf8_lossy().into_owned());
    args.variant = args.variant.take().or(variant);
    print::notice(&sanitize(&format!(
        "comparing by {}, which is served there",
        path.display()
    )));
    args.target.resolve_file(path).map(Some)
}

/// The tools of one variant.
#[derive(Debug)]
struct ToolList {
    variant: Option<String>,
    /// What a model gets.
    tokens: usize,
    /// With what clients do not forward.
    whole: usize,
    tools: Vec<ListedTool>,
    /// The names of the server's tools that the variant does not list, if they were compared.
    hidden: Vec<String>,
}

/// One tool of the list.
#[derive(Debug)]
struct ListedTool {
    name: String,
    /// The definition as the client receives it, JSON text.
    json: String,
    /// Its server and its name there, if they are known.
    origin: Option<(String, String)>,
    /// The definition as the server lists it, if it was requested.
    upstream_json: Option<String>,
}

impl ToolList {
    async fn read(args: &Tools, session: &TargetSession) -> Result<Self, Failure> {
        let variant = args.client.variant.as_deref();
        let named = ClientIdentity::default().named(args.client.client());
        let identity = named.selecting_variants(variant.is_some());
        let client = session.client(&identity).await?;
        client.check_selectable(variant)?;
        let listed = client.tools(variant).await?;
        let reports = if session.knows_servers() {
            "vary inspect"
        } else {
            "vary status"
        };
        client.note_missing(reports);
        let mut tools: Vec<_> = listed
            .into_iter()
            .filter_map(|json| tool(session, json))
            .collect();
        let hidden = if args.diff {
            compare(session, &mut tools)?
        } else {
            Vec::new()
        };
        for name in &args.tools {
            if tools.iter().all(|tool| tool.name != *name) {
                let needed = Needed {
                    tool: name,
                    variant,
                };
                let meant = unknown_tool::suggestion(session, &client, &identity, needed).await?;
                let why = meant.unwrap_or_else(|| format!("there is no tool `{name}`"));
                return Err(Failure::looked_at(sanitize(&why)));
            }
        }
        if !args.tools.is_empty() {
            tools.retain(|tool| args.tools.contains(&tool.name));
        }
        let texts: Vec<_> = tools.iter().map(|tool| tool.json.as_str()).collect();
        let tokens = tokens::count_tools(&texts);
        let whole = tokens::count_whole(&texts);
        Ok(Self {
            variant: variant
                .map(str::to_owned)
                .or_else(|| first_variant(&client)),
            tokens,
            whole,
            tools,
            hidden: if args.tools.is_empty() {
                hidden
            } else {
                Vec::new()
            },
        })
    }

    fn to_json(&self) -> String {
        let tools = self.tools.iter().map(|tool| {
            let value = |text: &str| to_value(text).unwrap_or_default();
            let mut all = Map::new();
            all.insert("name".to_owned(), json!(tool.name));
            if let Some((server, name)) = &tool.origin {
                all.insert("server".to_owned(), json!(server));
                all.insert("upstreamName".to_owned(), json!(name));
            }
            all.insert("tokens".to_owned(), json!(tokens::count_tool(&tool.json)));
            all.insert("tool".to_owned(), value(&tool.json));
            if let Some(upstream) = &tool.upstream_json {
                all.insert("upstreamTool".to_owned(), value(upstream));
            }
            Value::Object(all)
        });
        let listed: Vec<_> = tools.collect();
        let list = json!({"variant": self.variant, "tokens": self.tokens, "wholeTokens": self.whole, "tools": listed, "hidden": self.hidden});
        format!("{list:#}\n")
    }

    fn to_text(&self, args: &Tools) -> String {
        let variant = self
            .variant
            .as_ref()
            .map_or_else(String::new, |id| format!("variant {id}: "));
        let count = plural(self.tools.len(), "tool");
        let mut out = sanitize(&format!(
            "{variant}{count}, {} tokens that a model reads, {} sent to the client\n",
            self.tokens, self.whole
        ));
        for tool in &self.tools {
            out.push('\n');
            out.push_str(&tool.heading());
            out.push_str(&match (args.diff, args.schema) {
                (true, _) => tool.difference(has_color(&io::stdout())),
                (false, true) => tool.schemas(),
                (false, false) => tool.description(print::width()),
            });
        }
        if !self.hidden.is_empty() {
            let _ = write!(out, "\nnot listed: {}\n", sanitize(&self.hidden.join(", ")));
        }
        out
    }
}

/// The tool with the definition `json`; `None` without a name.
fn tool(session: &TargetSession, json: String) -> Option<ListedTool> {
    let name = Members::parse(&json).ok()?.get_str("name")?;
    let mut served = session.summary.served.iter();
    let item = served.find(|item| item.list == "tools/list" && item.id == name);
    let origin = item.map(|item| (item.server.clone(), item.upstream_name.clone()));
    Some(ListedTool {
        name,
        json,
        origin,
        upstream_json: None,
    })
}

/// Adds the servers' definitions to `tools`. Returns the servers' tools that are not in the list.
fn compare(session: &TargetSession, tools: &mut [ListedTool]) -> Result<Vec<String>, Failure> {
    let upstream = session.server_tools().ok_or_else(|| {
        Failure::command(
            "--diff compares with the server's own tools, which a gateway does not show, and no gateway of yours serves a file \
             there; name the file, `vary tools --diff FILE`, or the command, `vary tools --diff -- COMMAND`",
        )
    })?;
    let mut hidden = Vec::new();
    for (server, name, json) in upstream {
        let mut listed = tools.iter_mut();
        let origin = Some((server, name));
        match listed.find(|tool| tool.origin == origin) {
            Some(tool) => tool.upstream_json = Some(json),
            None => hidden.extend(origin.map(|(server, name)| format!("{server}: {name}"))),
        }
    }
    Ok(hidden)
}

/// The variant that the client gets without choosing one.
fn first_variant(client: &Client) -> Option<String> {
    let variants = client.variants();
    variants.first().map(|variant| variant.id.to_string())
}

impl ListedTool {
    /// The name, where the tool is from, and its cost.
    fn heading(&self) -> String {
        let tokens = plural(tokens::count_tool(&self.json), "token");
        sanitize(&match &self.origin {
            Some((server, name)) => format!("{} ({server}: {name}, {tokens})\n", self.name),
            None => format!("{} ({tokens})\n", self.name),
        })
    }

    /// The description, and a line for each argument.
    fn description(&self, width: usize) -> String {
        let tool = to_value(&self.json).unwrap_or_default();
        let mut out = String::new();
        let mut add = |text: &str| {
            for line in wrap(&sanitize(text), width.saturating_sub(2)) {
                let _ = writeln!(out, "{}", format!("  {line}").trim_end());
            }
        };
        add(tool["description"].as_str().unwrap_or_default());
        let schema = &tool["inputSchema"];
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = required.iter().any(|known| known == name.as_str());
            add(&argument(name, property, is_required));
        }
        out
    }

    /// Both schemas as indented JSON.
    fn schemas(&self) -> String {
        let members = Members::parse(&self.json).unwrap_or_default();
        let mut out = String::new();
        for key in ["inputSchema", "outputSchema"] {
            if let Some(schema) = members.get(key) {
                let _ = writeln!(out, "{key}: {}", sanitize(&readable(schema)));
            }
        }
        out
    }

    /// The definition with what the variant changes in the server's definition.
    fn difference(&self, has_color: bool) -> String {
        let Some(upstream) = &self.upstream_json else {
            return "not a tool of a server\n".to_owned();
        };
        let before = definition(upstream);
        let after = definition(&self.json);
        if before == after {
            "as the server lists it\n".to_owned()
        } else {
            changed_lines(&before, &after, has_color)
        }
    }
}

/// An argument in a sentence: name, type, whether it is required, its default and its description.
fn argument(name: &str, property: &Value, is_required: bool) -> String {
    let mut facts = Vec::new();
    match &property["type"] {
        Value::String(known) => facts.push(known.clone()),
        Value::Array(several) => {
            let types: Vec<_> = several.iter().filter_map(Value::as_str).collect();
            facts.push(types.join(" or "));
        }
        _ => {}
    }
    if let Some(values) = property["enum"].as_array() {
        let written: Vec<_> = values
            .iter()
            .take(MOST_VALUES)
            .map(Value::to_string)
            .collect();
        facts.push(format!("one of {}", written.join(", ")));
    }
    if is_required {
        facts.push("required".to_owned());
    }
    if let Some(default) = property.get("default") {
        facts.push(format!("default {default}"));
    }
    let facts = if facts.is_empty() {
        String::new()
    } else {
        format!(" ({})", facts.join(", "))
    };
    match property["description"].as_str() {
        Some(text) => format!("- {name}{facts}: {}", text.replace('\n', " ")),
        None => format!("- {name}{facts}"),
    }
}

/// The members of a tool, one after the other.
fn definition(tool: &str) -> String {
    let members = Members::parse(tool).unwrap_or_default();
    let mut out = String::new();
    for (key, value) in members.iter() {
        let _ = writeln!(out, "{key}: {}", readable(value));
    }
    out
}

/// Text without quotes, and other JSON with indentation.
fn readable(json: &str) -> String {
    match Json::parse(json) {
        Ok(value) => match to_value(json) {
            Ok(Value::String(text)) => text,
            _ => indented(&value),
        },
        Err(_) => json.to_owned(),
    }
}

/// The most values of an enumeration that are shown.
const MOST_VALUES: usize = 12;
