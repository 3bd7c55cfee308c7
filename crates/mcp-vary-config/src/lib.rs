//! Configuration files.
//!
//! [`Source`] reads the text of a file (YAML, JSON or TOML, or the file in which a client configures its servers) into
//! a [`File`], which becomes the [`Config`](mcp_vary_settings::config::Config) of a gateway.
//!
//! # Examples
//!
//! ```
//! use mcp_vary_config::{Diagnostics, Source};
//! use mcp_vary_base::environment::Environment;
//! use mcp_vary_settings::config::Config;
//!
//! fn configure(text: &str, environment: Environment) -> Result<Config, Diagnostics> {
//!     // Nothing but the text is read: the closure decides what `${VARIABLE}` is.
//!     let file = Source::new("vary.yaml", text).read(&|_variable| None)?;
//!     Ok(file.into_config(environment))
//! }
//!
//! let environment = Environment::new(|| 0, |bytes| bytes.fill(7));
//! let config = configure("servers: {files: {command: file-server}}", environment)?;
//! assert_eq!(config.servers.len(), 1);
//! # Ok::<(), Diagnostics>(())
//! ```

mod access;
mod admin_readers;
mod audit;
mod authentication;
mod clients;
mod diagnostic;
mod document;
mod effects;
mod experiments;
mod extensions;
mod file;
mod file_rules;
mod file_variants;
mod import;
mod json_value;
mod key_spec;
mod limits;
mod located;
mod log;
mod mcp_json;
mod ranking;
mod rates;
mod reader;
mod require;
mod rules;
mod schema_builder;
mod sealing_keys;
mod secret_files;
mod server;
mod store;
mod traces;
mod units;
mod variables;
mod variant_edit;
mod variants;
mod vary_entries;
mod watch;
mod yaml_text;

pub use self::audit::digest;
pub use self::effects::{Effect, effects};
pub use self::file::{File, ProgramSettings, Source};
pub use self::file_rules::{FileRule, clients_of_variant, file_rules};
pub use self::file_variants::{DraftVariant, FileVariants};

pub use self::import::{
    ClientNeed, Format, ImportSource, Imported, ImportedFile, Note, NoteKind, UnknownFormat, import,
};

pub use self::document::edit::{ClientText, Removed, Syntax};
pub use self::file::schema::{reference, schema};
pub use self::log::{LogFormat, LogLevel, LogLevelError, LogSettings};
pub use self::secret_files::{MAX_SECRET_FILE, MAX_SECRET_FILES, SecretFiles, SecretVersions};
pub use self::server::{AuthMethod, LeftOut, ServerAuth};
pub use self::variant_edit::VariantEdit;
pub use self::variants::VariantSpans;
pub use self::vary_entries::VaryEntries;
pub use self::watch::{Watch, text};
pub use crate::diagnostic::{Diagnostic, Diagnostics, Position};
pub use crate::rules::prompts::read_prompts;
pub use crate::rules::resources::read_resources;
pub use crate::rules::results::read_results;
