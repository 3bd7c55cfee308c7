//! Prints calls of every recorded tool, and whether Vary accepts their arguments.
//!
//! Other implementations of JSON Schema then judge the same arguments: `tests/interop/verdicts.py` and `verdicts.mjs`.
//! One line of JSON per tool: its name, its input schema, and its calls. The arguments are the same in each run.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use mcp_vary_testkit::generate::mutants::mutants;
use mcp_vary_testkit::generate::values::Values;
use mcp_vary_view::{ArgumentError, DIRECTORY, PreparedTool, ToolOverride};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tool-lists");
    let files: Result<Vec<_>, _> = fs::read_dir(folder)?.collect();
    let mut files: Vec<_> = files?.into_iter().map(|file| file.path()).collect();
    files.sort();
    let mut out = io::stdout().lock();
    for file in files {
        let list: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        for tool in list["tools"].as_array().into_iter().flatten() {
            writeln!(out, "{}", judged(&name, tool)?)?;
        }
    }
    Ok(())
}

/// The line of one tool.
fn judged(list: &str, tool: &Value) -> Result<Value, Box<dyn Error>> {
    let schema = &tool["inputSchema"];
    let (prepared, _) = PreparedTool::new(&tool.to_string(), &ToolOverride::default(), DIRECTORY)?;
    let mut calls = Vec::new();
    for text in arguments(schema) {
        let errors = prepared.arguments(&text).err().unwrap_or_default();
        let is_name =
            |error: &ArgumentError| matches!(error, ArgumentError::UnknownArgument { .. });
        calls.push(json!({
            "arguments": serde_json::from_str::<Value>(&text)?,
            "accepted": errors.is_empty(),
            // Vary alone refuses arguments that a schema does not name; see docs/internals/verdicts.md.
            "only_names": !errors.is_empty() && errors.iter().all(is_name),
            "errors": errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }));
    }
    let name = format!("{list} {}", tool["name"].as_str().unwrap_or_default());
    Ok(
        json!({"tool": name, "schema": schema, "unchecked": prepared.unchecked_reason(), "calls": calls}),
    )
}

/// Arguments that fit the schema, ones of which one constraint is broken, and others.
fn arguments(schema: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut values = Values::new(schema, 1);
    for round in 0..VALUES {
        values.optional = OPTIONAL[round % OPTIONAL.len()];
        let value = match round % 10 {
            9 => values.anything(0),
            _ => values.value(),
        };
        let broken = mutants(schema, &value)
            .into_iter()
            .map(|mutant| mutant.value);
        let broken: Vec<Value> = if round < MUTATED {
            broken.collect()
        } else {
            Vec::new()
        };
        let objects = broken.into_iter().chain([value]).filter(Value::is_object);
        all.extend(objects.map(|value| value.to_string()));
    }
    all
}

/// Values for each tool.
const VALUES: usize = 40;
/// Of the first of them, every constraint is broken once.
const MUTATED: usize = 8;
/// How likely an optional property is, in turn; over 100 also further down.
const OPTIONAL: [usize; 4] = [100, 50, 10, 400];
