//! A gateway with one of the example configurations, and a client that asks it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcp_vary_config::Source;
use mcp_vary_gateway::{Environment, Gateway};
use mcp_vary_testkit::message::{modern, under};
use mcp_vary_testkit::stdio_pipe::StdioPipe;
use serde_json::{Value, json};
use tokio::io::BufReader;

pub(crate) const REPLAY_SERVER: &str = env!("CARGO_BIN_EXE_replay-server");

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of all example configurations, in order.
pub(crate) fn examples() -> Vec<String> {
    let directory = fs::read_dir(root().join("examples/configurations")).unwrap();
    let names = directory.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut examples: Vec<String> = names
        .filter_map(|name| name.strip_suffix(".yaml").map(str::to_owned))
        .collect();
    examples.sort();
    examples
}

/// The text of an example, with the servers that are built already in place of the commands that build them.
fn text(example: &str) -> String {
    let path = root().join(format!("examples/configurations/{example}.yaml"));
    let text = fs::read_to_string(path).unwrap();
    let root = root();
    let root = root.to_str().unwrap();
    // The file server is the one program that the workspace does not have; its recorded list stands in for it.
    text.replace(
        "command: cargo\n    args: [run, --quiet, --package, replay-server, --, examples/",
        &format!("command: {REPLAY_SERVER}\n    args: [{root}/examples/"),
    )
    .replace(
        "command: npx, args: [-y, \"@modelcontextprotocol/server-filesystem\", .]",
        &format!(
            "command: {REPLAY_SERVER}, args: [{root}/crates/mcp-vary-view/tests/fixtures/tool-lists/filesystem.json]"
        ),
    )
}

/// A client of the modern era before a gateway.
pub(crate) struct Front {
    pub(crate) gateway: Arc<Gateway>,
    pipe: StdioPipe,
    next: u64,
}

impl Front {
    /// Before the servers of an example.
    pub(crate) async fn of(example: &str) -> Self {
        let text = text(example);
        assert!(text.contains(REPLAY_SERVER), "{example}: {text}");
        assert!(!text.contains("command: cargo"), "{example}: {text}");
        Self::with(&format!("{example}.yaml"), &text).await
    }

    /// Before the servers of a configuration without mistakes.
    pub(crate) async fn with(name: &str, text: &str) -> Self {
        let file = Source::new(name, text).read(&|_| None);
        let file = file.unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert_eq!(file.notes, [], "{name}");
        let outside = Environment::new(|| 1_800_000_000, |bytes| getrandom::fill(bytes).unwrap());
        let mut config = file.into_config(outside);
        config.start_wait = Duration::from_secs(60);
        let gateway = Gateway::start(config).await.unwrap();
        let serving = Arc::clone(&gateway);
        let serve = |input, output, stop| async move {
            serving
                .serve_stdio(BufReader::new(input), output, stop)
                .await
        };
        let pipe = StdioPipe::connect(serve);
        Self {
            gateway,
            pipe,
            next: 0,
        }
    }

    /// The result of a request under a variant, or under the default one; else the error.
    pub(crate) async fn ask_under(
        &mut self,
        variant: Option<&str>,
        method: &str,
        mut params: Value,
    ) -> Result<Value, Value> {
        if let Some(variant) = variant {
            params = under(variant, params);
        }
        self.ask_declaring(json!({}), method, params).await
    }

    /// The result of a request of a client with these capabilities; else the error.
    pub(crate) async fn ask_declaring(
        &mut self,
        capabilities: Value,
        method: &str,
        params: Value,
    ) -> Result<Value, Value> {
        let id = self.send(capabilities, method, params).await;
        let mut answer = self.pipe.receive().await;
        assert_eq!(answer["id"], id, "{answer}");
        match answer["error"].take() {
            Value::Null => Ok(answer["result"].take()),
            error => Err(error),
        }
    }

    /// The answers to requests that are sent before the first answer is read, in their order.
    pub(crate) async fn ask_at_once(&mut self, requested: Vec<(Value, &str, Value)>) -> Vec<Value> {
        let mut answers = BTreeMap::new();
        let count = requested.len();
        for (capabilities, method, params) in requested {
            self.send(capabilities, method, params).await;
        }
        for _ in 0..count {
            let answer = self.pipe.receive().await;
            answers.insert(answer["id"].as_u64().unwrap(), answer);
        }
        answers.into_values().collect()
    }

    async fn send(&mut self, capabilities: Value, method: &str, params: Value) -> u64 {
        self.next += 1;
        let request = modern(json!(self.next), method, params, &capabilities);
        self.pipe.send(request.to_string()).await;
        self.next
    }

    /// All items of a list of a variant, from all its pages.
    pub(crate) async fn list(&mut self, variant: &str, list: &str) -> Vec<Value> {
        let (method, key) = match list {
            "templates" => ("resources/templates/list", "resourceTemplates"),
            list => (&*format!("{list}/list"), list),
        };
        let mut all = Vec::new();
        let mut params = json!({});
        loop {
            // A server without such a list answers so.
            let Ok(mut page) = self.ask_under(Some(variant), method, params).await else {
                return all;
            };
            all.append(page[key].as_array_mut().unwrap());
            match page["nextCursor"].take() {
                Value::Null => return all,
                cursor => params = json!({"cursor": cursor}),
            }
        }
    }
}

/// The capabilities of a client that declares these tags; none declares nothing.
pub(crate) fn features(tags: Option<&[&str]>) -> Value {
    tags.map_or(json!({}), mcp_vary_testkit::message::features)
}

/// The ids of the variants of an example, in the order of its file; those that there are without any.
pub(crate) fn variants(example: &str) -> Vec<String> {
    let text = text(example);
    let Some((_, remaining)) = text.split_once("\nvariants:\n") else {
        return ["standard", "compact", "directory", "read-only"]
            .map(str::to_owned)
            .into();
    };
    let section = remaining.lines().take_while(|line| line.starts_with(' '));
    let ids = section.filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
    let ids = ids.filter(|id| !id.starts_with(' '));
    ids.map(str::to_owned).collect()
}
