//! The matrix of shaped results: the recording `tests/interop/shaped.json` for every set of feature tags.

use std::fs;
use std::path::{Path, PathBuf};

use mcp_vary::feature::REGISTRY;
use serde_json::{Value, json};

use crate::server::{Server, serve};
use crate::workspace::Workspace;
use crate::{cargo, npm};

const RECORDING: &str = "tests/interop/shaped.json";
const CONFIGURATION: &str = "tests/interop/shaped.yaml";
const ROWS: &str = "crates/mcp-vary/tests/fixtures/rows";

/// The tools that answer with the first [`FEW`] rows of [`SET`]. They differ in their definitions in the list.
const OF_FEW_ROWS: [&str; 3] = ["rows", "rows_bound", "rows_strict"];
const SET: &str = "issues";
const FEW: usize = 20;

/// The possible declarations of an audience, each a list of tags.
const AUDIENCES: &[&[&str]] = &[
    &[],
    &["agent"],
    &["human"],
    &["agent", "human"],
    &["agent", "sampling"],
];

/// A gateway in front of the recorded server, and the argument of the scripts.
pub(crate) fn start(workspace: &Workspace, vary: &Path) -> Result<(Value, Server), String> {
    let rows = rows(workspace)?;
    let recording = workspace.scratch("interop/shaped.json")?;
    write(&recording, &recorded(workspace, &rows)?.to_string())?;
    let configuration = workspace.scratch("interop/shaped.yaml")?;
    let replay_server = cargo::binary(workspace, "replay-server")?;
    let text = workspace.read(CONFIGURATION)?;
    let text = text.replace("${REPLAY_SERVER}", &quoted(&replay_server));
    write(
        &configuration,
        &text.replace("\"${RECORDING}\"", &quoted(&recording)),
    )?;
    let log = workspace.scratch("interop/shaped-vary.log")?;
    let mut command = serve(vary);
    npm::with_packages(workspace, command.arg(&configuration))?;
    let server = Server::start(&mut command, &log)?;
    let rows: Vec<Value> = rows.iter().map(Rows::to_json).collect();
    let argument = json!({
        "recording": recording,
        "url": server.url,
        "command": [vary, "serve", "--stdio", configuration],
        "rows": rows,
    });
    Ok((argument, server))
}

/// The sets of tags that clients declare over a transport; `null` is a client that declares nothing.
///
/// Over HTTP these are all combinations. On stdio, each set needs a process, so that each tag is declared once.
pub(crate) fn sets(transport: &str) -> Vec<Value> {
    let keys = REGISTRY.iter().filter(|row| row.has_values());
    let options = keys.map(|row| std::iter::once(&[][..]).chain(row.tags.chunks(1)));
    let options: Vec<Vec<&[&str]>> = options.map(Iterator::collect).collect();
    let audiences = AUDIENCES.iter().map(|tags| tags.to_vec());
    let sets: Vec<Vec<&str>> = if transport == "http" {
        options.iter().fold(audiences.collect(), |sets, options| {
            let of_set = |set: &Vec<_>| options.iter().map(|tags| [set, *tags].concat()).collect();
            sets.iter()
                .flat_map(|set| -> Vec<_> { of_set(set) })
                .collect()
        })
    } else {
        let most = options.iter().map(Vec::len).max().unwrap_or_default();
        let sets = audiences.take(most).enumerate().map(|(at, audience)| {
            let keys = options.iter().enumerate();
            let tags = keys.flat_map(|(key, options)| options[(at + key) % options.len()]);
            audience.into_iter().chain(tags.copied()).collect()
        });
        sets.collect()
    };
    std::iter::once(Value::Null)
        .chain(sets.into_iter().map(Value::from))
        .collect()
}

/// A set of rows of the fixtures.
struct Rows {
    name: String,
    key: String,
    list: String,
    value: Value,
}

impl Rows {
    fn tool(&self) -> String {
        format!("rows_of_{}", self.name)
    }

    fn to_json(&self) -> Value {
        json!({"tool": self.tool(), "key": self.key, "list": self.list})
    }

    /// The value with its first `count` rows.
    fn first(&self, count: usize) -> Value {
        let mut value = self.value.clone();
        if let Some(rows) = value[&self.list].as_array_mut() {
            rows.truncate(count);
        }
        value
    }
}

/// The result of a tool that returns `value`.
fn result(value: &Value) -> Value {
    let text = value.to_string();
    json!({"content": [{"type": "text", "text": text}], "structuredContent": value})
}

fn rows(workspace: &Workspace) -> Result<Vec<Rows>, String> {
    let mut all = Vec::new();
    for file in workspace.files(ROWS)? {
        let name = Path::new(&file).file_stem().unwrap_or_default();
        let mut set: Value = serde_json::from_str(&workspace.read(&file)?)
            .map_err(|error| format!("{file}: {error}"))?;
        let text = |key: &str| set[key].as_str().map(str::to_owned);
        let (Some(key), Some(list)) = (text("key"), text("rows")) else {
            return Err(format!("{file}: names no `key`, or no list of `rows`"));
        };
        all.push(Rows {
            name: name.display().to_string(),
            key,
            list,
            value: set["structuredContent"].take(),
        });
    }
    Ok(all)
}

/// The recording with the rows in it.
fn recorded(workspace: &Workspace, rows: &[Rows]) -> Result<Value, String> {
    let mut recording: Value = serde_json::from_str(&workspace.read(RECORDING)?)
        .map_err(|error| format!("{RECORDING}: {error}"))?;
    let mut results = recording["results"]["tools"].take();
    for set in rows {
        if set.name == SET {
            let few = result(&set.first(FEW));
            for tool in OF_FEW_ROWS {
                results[tool] = few.clone();
            }
        }
        results[set.tool()] = result(&set.value);
        let tool = json!({"name": set.tool(), "inputSchema": {"type": "object"}});
        if let Some(tools) = recording["tools"].as_array_mut() {
            tools.push(tool);
        }
    }
    recording["results"]["tools"] = results;
    Ok(recording)
}

fn write(path: &PathBuf, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// A path as YAML and JSON write it.
fn quoted(path: &Path) -> String {
    json!(path).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_has_the_rows() {
        let workspace = Workspace::here();
        let rows = rows(&workspace).unwrap();
        let recording = recorded(&workspace, &rows).unwrap();
        assert_eq!(rows.len(), 5);
        for tool in recording["tools"].as_array().unwrap() {
            let name = tool["name"].as_str().unwrap();
            let result = &recording["results"]["tools"][name];
            assert!(result["content"].is_array(), "{name}");
        }
    }
}
