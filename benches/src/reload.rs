//! The duration of a start, and of a reload until the new configuration is served.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::configurations::server_name;
use crate::machine::Usage;
use crate::report::Moment;
use crate::subject::{Programs, Running, Subject};
use crate::upstream_spec::UpstreamSpec;

/// The names of these rows.
pub(crate) const NAMES: [&str; 3] = [
    "start-up with 5 servers, 200 tools and 20 variants",
    "reload of variants only",
    "reload of one server",
];

/// The servers with their tools, and the variants.
const BEHIND: UpstreamSpec = UpstreamSpec {
    tools: 40,
    servers: 5,
    variants: 20,
    ..UpstreamSpec::ONE
};

/// The time limit until the program serves a configuration.
const LONGEST: Duration = Duration::from_secs(20);

/// Starts and reloads `rounds` times.
pub(crate) fn measure(programs: &Programs, rounds: usize) -> io::Result<Vec<Moment>> {
    let upstream = programs.upstream(BEHIND)?;
    let mut moments = NAMES.map(Moment::new);
    for round in 0..rounds {
        let began = Instant::now();
        let running = programs.proxy(Subject::Vary, &upstream)?;
        let took = began.elapsed();
        moments[0].add(took, Usage::of(running.process())?.cpu);
        let file = programs.variants_file();
        let before: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
        let mut variants = before.clone();
        for at in 3..BEHIND.variants {
            let description = format!("The face of client {at}, round {round}.");
            variants["variants"][format!("face-{at}")]["description"] = json!(description);
        }
        moments[1].add_reload(&running, &file, &variants, "servers: 5 as before;")?;
        let name = server_name(2);
        variants["servers"][&name]["ready-timeout"] = json!("9s");
        let reported = format!("servers: 1 connected anew ({name}), 4 as before;");
        moments[2].add_reload(&running, &file, &variants, &reported)?;
    }
    Ok(moments.into())
}

impl Moment {
    /// Makes the program load `config`, and waits for its message.
    fn add_reload(
        &mut self,
        running: &Running,
        file: &Path,
        config: &Value,
        reported: &str,
    ) -> io::Result<()> {
        let draft = draft(file);
        fs::write(&draft, config.to_string())?;
        let before = Usage::of(running.process())?.cpu;
        // A changed file is read after a short delay, which must not be measured. The signal does not wait for it.
        fs::rename(draft, file)?;
        let began = Instant::now();
        running.hang_up()?;
        let line = running.wait_for_line(" reloaded: ", LONGEST)?;
        let took = began.elapsed();
        if !line.contains(reported) {
            return Err(io::Error::other(format!("not `{reported}`: {line}")));
        }
        self.add(took, Usage::of(running.process())?.cpu - before);
        Ok(())
    }
}

fn draft(file: &Path) -> PathBuf {
    file.with_extension("draft")
}
