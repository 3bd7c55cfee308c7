//! The tokens of each principal for each server.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use mcp_vary_base::environment::Environment;
use mcp_vary_base::{io_error, private_files};
use mcp_vary_http_client::credential_source::CredentialStatus;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::keyring::{Keyring, KeyringLocked, PATIENCE};
use crate::scope::Scopes;
use crate::seal::{SealKey, is_sealed};
use crate::token::Tokens;

/// Tokens by principal and server, in a directory with one file for each.
///
/// # Properties
///
/// A file has mode 0600 and is replaced whole, so that a process that is killed leaves the old login or the new one, and
/// those of other servers as they are. Whoever reads tokens to replace them locks the login first; the system releases
/// the lock of a process that ends.
#[derive(Clone, Debug)]
pub struct TokenStore {
    directory: PathBuf,
    /// Seals what is written; the others open what was sealed before. Without a key, files are not sealed.
    keys: Vec<SealKey>,
    /// Has the key, if there are no `keys`.
    keyring: Option<Arc<Keyring>>,
    environment: Environment,
}

/// The form of the files. It grows when an older Vary could not read them.
pub(crate) const VERSION: u32 = 1;

/// What is read of a file in any form.
#[derive(Deserialize)]
struct Form {
    #[serde(default)]
    version: u32,
}

/// Whose tokens for which server.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LoginKey {
    /// Who is logged in: [`OPERATOR`](Self::OPERATOR), or a caller.
    pub principal: String,
    /// The canonical URI of the server.
    pub server: String,
}

impl LoginKey {
    /// The principal of logins by the operator, which all callers share.
    pub const OPERATOR: &str = "operator";

    /// The login of the operator at `server`, a canonical URI.
    pub fn operator(server: impl Into<String>) -> Self {
        Self {
            principal: Self::OPERATOR.to_owned(),
            server: server.into(),
        }
    }

    /// The name of its file: nothing of an address can leave the directory.
    fn file_name(&self) -> String {
        let text = format!("{}\0{}", self.principal, self.server);
        let hash = digest(&SHA256, text.as_bytes());
        let start = hash.as_ref().iter().take(16);
        start.map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A login: the client at one authorization server, and the tokens that it got.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Login {
    /// The form of its file.
    #[serde(default)]
    pub(crate) version: u32,
    pub(crate) principal: String,
    pub(crate) server: String,
    pub(crate) issuer: String,
    /// Whether the operator wrote the issuer, so that it may be in a private network.
    #[serde(default)]
    pub(crate) is_issuer_written: bool,
    pub(crate) token_endpoint: String,
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) client: Client,
    pub(crate) resource: String,
    /// The scopes that were requested.
    pub(crate) scope: Scopes,
    /// The scopes that the server asked for since then.
    #[serde(default)]
    pub(crate) missing_scope: Scopes,
    /// Absent once they are no longer valid.
    pub(crate) tokens: Option<Tokens>,
}

/// A login as it is listed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LoginSummary {
    /// Whose login for which server.
    pub key: LoginKey,
    /// Who issued the tokens.
    pub issuer: String,
    /// The scopes that were granted or, if the authorization server did not say, requested.
    pub scope: Scopes,
    /// Until when it is valid. It has ended when its access token has, and cannot be refreshed.
    pub status: CredentialStatus,
}

/// Why the store cannot be used. It contains nothing secret.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file cannot be read or written.
    #[error("{path}: {reason}")]
    File {
        /// Its path.
        path: String,
        /// Why not.
        reason: String,
    },
    /// The file is sealed with a key that is not known.
    #[error("{0} is sealed with a key that is neither in the keyring nor in `keys`")]
    Sealed(String),
    /// There are keys, and the file is not sealed. Anybody who can write to its directory may have made it.
    #[error("{0} is not sealed, and the configuration has `keys`; remove it, and log in again")]
    Unsealed(String),
    /// The keyring waits for a person, or hangs.
    #[error(
        "the system's keyring did not answer within {} s; unlock it, or write `keys` into the configuration, which seal logins \
         without it",
        PATIENCE.as_secs()
    )]
    KeyringLocked,
    /// The file is not a login.
    #[error("{0} is damaged; remove it, and log in again")]
    Damaged(String),
    /// The file has a form that this program does not know.
    #[error("{0} was written by a newer Vary; use that one, or remove the file, and log in again")]
    Newer(String),
    /// Something ended early.
    #[error("the store of logins cannot be used: {0}")]
    Failed(String),
}

/// Which version of a login a process has read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Version {
    modified: Option<SystemTime>,
    length: u64,
}

/// A locked login. The lock ends with this value.
#[derive(Debug)]
pub(crate) struct LockedLogin {
    store: TokenStore,
    key: LoginKey,
    _lock: File,
}

impl TokenStore {
    /// A store in `directory`, which is created when something is written. The first of `keys` seals; the others open what was
    /// sealed before.
    #[must_use]
    pub const fn new(directory: PathBuf, keys: Vec<SealKey>, environment: Environment) -> Self {
        Self {
            directory,
            keys,
            keyring: None,
            environment,
        }
    }

    /// The same store, which seals with a key of the system's keyring if there are no other keys. Without a keyring, files
    /// are not sealed.
    #[must_use]
    pub fn with_keyring(mut self) -> Self {
        self.keyring = Some(Arc::default());
        self
    }

    fn path(&self, key: &LoginKey, extension: &str) -> PathBuf {
        self.directory
            .join(key.file_name())
            .with_extension(extension)
    }

    /// The version of the login that is stored now; `None` if there is none.
    pub(crate) fn version(&self, key: &LoginKey) -> Option<Version> {
        let metadata = fs::metadata(self.path(key, LOGIN)).ok()?;
        Some(Version {
            modified: metadata.modified().ok(),
            length: metadata.len(),
        })
    }

    /// The login; `None` if there is none.
    pub(crate) fn read(&self, key: &LoginKey) -> Result<Option<Login>, StoreError> {
        let login = self.read_file(&self.path(key, LOGIN))?;
        Ok(login.filter(|login| login.principal == key.principal && login.server == key.server))
    }

    fn read_file(&self, path: &Path) -> Result<Option<Login>, StoreError> {
        let mut text = String::new();
        let file = private_files::check_regular(path).and_then(|()| File::open(path));
        let read = file.and_then(|file| file.take(MAX_FILE).read_to_string(&mut text));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(failed(path))?,
        };
        if is_sealed(&text) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let opened = self.keys.iter().find_map(|key| key.open(&text, &name));
            let opened = match (opened, &self.keyring) {
                (None, Some(keyring)) => keyring.find()?.and_then(|key| key.open(&text, &name)),
                (opened, _) => opened,
            };
            text = opened.ok_or_else(|| StoreError::Sealed(path.display().to_string()))?;
        } else if !self.keys.is_empty() {
            return Err(StoreError::Unsealed(path.display().to_string()));
        }
        let form = serde_json::from_str::<Form>(&text);
        if form.is_ok_and(|form| form.version > VERSION) {
            return Err(StoreError::Newer(path.display().to_string()));
        }
        let parsed = serde_json::from_str(&text);
        let login = parsed.map_err(|_| StoreError::Damaged(path.display().to_string()))?;
        Ok(Some(login))
    }

    /// Waits until no other process has locked the login, and locks it.
    pub(crate) fn lock(&self, key: &LoginKey) -> Result<LockedLogin, StoreError> {
        let created = private_files::create_directory(&self.directory);
        created.map_err(failed(&self.directory))?;
        let path = self.path(key, "lock");
        let lock = private_files::open(&path).map_err(failed(&path))?;
        lock.lock().map_err(failed(&path))?;
        Ok(LockedLogin {
            store: self.clone(),
            key: key.clone(),
            _lock: lock,
        })
    }

    /// All logins, by server. Those that cannot be read are errors.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read.
    pub fn list(&self) -> Result<Vec<Result<LoginSummary, StoreError>>, StoreError> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed(&self.directory))?,
        };
        let now = (self.environment.now)();
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut logins: Vec<_> = paths
            .filter(|path| path.extension().is_some_and(|extension| extension == LOGIN))
            .filter_map(|path| self.read_file(&path).transpose())
            .map(|login| login.map(|login| login.summary(now)))
            .collect();
        logins.sort_by_key(|login| login.as_ref().ok().map(|login| login.key.server.clone()));
        Ok(logins)
    }
}

impl LockedLogin {
    /// The login; `None` if there is none.
    pub(crate) fn read(&self) -> Result<Option<Login>, StoreError> {
        self.store.read(&self.key)
    }

    /// Replaces the login.
    pub(crate) fn write(&self, login: &Login) -> Result<(), StoreError> {
        let path = self.store.path(&self.key, LOGIN);
        let mut text =
            serde_json::to_string(login).map_err(|error| StoreError::Failed(error.to_string()))?;
        let environment = self.store.environment;
        let key = match (self.store.keys.first(), &self.store.keyring) {
            (None, Some(keyring)) => keyring.find_or_create(environment)?,
            (key, _) => key,
        };
        if let Some(key) = key {
            let sealed = key.seal(&text, &self.key.file_name(), environment);
            text = sealed.ok_or_else(|| StoreError::Failed("it cannot be sealed".to_owned()))?;
        }
        // Only the process that has the lock writes here.
        let draft = self.store.path(&self.key, "draft");
        let write = || {
            let mut file = private_files::replace(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, &path)
        };
        write().map_err(failed(&path))
    }

    /// Removes the login.
    pub(crate) fn remove(&self) -> Result<(), StoreError> {
        let path = self.store.path(&self.key, LOGIN);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(failed(&path)),
        }
    }
}

impl Login {
    pub(crate) fn key(&self) -> LoginKey {
        LoginKey {
            principal: self.principal.clone(),
            server: self.server.clone(),
        }
    }

    pub(crate) fn summary(&self, now: u64) -> LoginSummary {
        let tokens = self.tokens.as_ref();
        let is_refreshed = tokens.is_some_and(|tokens| tokens.refresh_token.is_some());
        let has_token = tokens.is_some_and(|tokens| !tokens.is_expired(now));
        let granted = tokens.and_then(|tokens| tokens.scope.as_ref());
        LoginSummary {
            key: self.key(),
            issuer: self.issuer.clone(),
            scope: granted.unwrap_or(&self.scope).clone(),
            status: CredentialStatus {
                expires_at: tokens.and_then(|tokens| tokens.expires_at),
                is_refreshed,
                has_ended: !has_token && !is_refreshed,
            },
        }
    }
}

impl From<KeyringLocked> for StoreError {
    fn from(KeyringLocked: KeyringLocked) -> Self {
        Self::KeyringLocked
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> StoreError {
    move |error| StoreError::File {
        path: path.display().to_string(),
        reason: io_error::describe(&error),
    }
}

/// The extension of the file of a login.
const LOGIN: &str = "login";
/// The most bytes of a file that are read.
const MAX_FILE: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use crate::client::ClientAuthentication;
    use crate::secret::Secret;

    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let directory = format!("vary-login-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(directory))
        }

        fn store(&self, keys: &[u8]) -> TokenStore {
            let keys = keys.iter().filter_map(|byte| SealKey::new(&[*byte; 32]));
            let environment = Environment::new(|| 1000, |bytes| bytes.fill(3));
            TokenStore::new(self.0.join("deep"), keys.collect(), environment)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn login(server: &str) -> Login {
        Login {
            version: VERSION,
            principal: LoginKey::OPERATOR.to_owned(),
            server: server.to_owned(),
            issuer: "https://idp.example".to_owned(),
            is_issuer_written: false,
            token_endpoint: "https://idp.example/token".to_owned(),
            revocation_endpoint: None,
            client: Client {
                id: "vary".to_owned(),
                authentication: ClientAuthentication::Post(Secret::new("TOPSECRET-client")),
            },
            resource: server.to_owned(),
            scope: Scopes::parse("a b"),
            missing_scope: Scopes::default(),
            tokens: Some(Tokens {
                access_token: Secret::new("TOPSECRET-access"),
                refresh_token: Some(Secret::new("TOPSECRET-refresh")),
                issued_at: 900,
                expires_at: Some(1900),
                scope: Some(Scopes::parse("a")),
            }),
        }
    }

    fn write(store: &TokenStore, server: &str) -> LoginKey {
        let login = login(server);
        store.lock(&login.key()).unwrap().write(&login).unwrap();
        login.key()
    }

    #[test]
    fn a_login_is_stored_by_principal_and_server() {
        let scratch = Scratch::new("keys");
        let store = scratch.store(&[]);
        assert_eq!(store.list().unwrap(), []);
        let (a, b) = (write(&store, "https://a"), write(&store, "https://b"));
        let other = LoginKey {
            principal: "ann".to_owned(),
            server: "https://a".to_owned(),
        };
        assert!(store.read(&other).unwrap().is_none() && store.version(&other).is_none());
        assert_eq!(store.read(&a).unwrap().unwrap().server, "https://a");
        store.lock(&a).unwrap().remove().unwrap();
        store.lock(&a).unwrap().remove().unwrap();
        assert!(store.read(&a).unwrap().is_none());
        let listed: Vec<_> = store
            .list()
            .unwrap()
            .into_iter()
            .map(Result::unwrap)
            .collect();
        assert_eq!(listed.len(), 1);
        assert_eq!(
            (&listed[0].key, listed[0].scope.to_string()),
            (&b, "a".to_owned())
        );
        let status = listed[0].status;
        assert!(status.is_refreshed && !status.has_ended);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_files() {
        use std::os::unix::fs::PermissionsExt as _;
        let scratch = Scratch::new("mode");
        let store = scratch.store(&[]);
        write(&store, "https://a");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&store.directory), 0o700);
        let entries = fs::read_dir(&store.directory).unwrap();
        let modes: Vec<u32> = entries.map(|entry| mode(&entry.unwrap().path())).collect();
        assert_eq!(modes, [0o600, 0o600]);
    }

    /// Who could once write the directory may have left anything there.
    #[cfg(unix)]
    #[test]
    fn what_was_there_before_is_neither_followed_nor_waited_for() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let scratch = Scratch::new("planted");
        let store = scratch.store(&[]);
        let key = login("https://a").key();
        let outside = scratch.0.join("outside");
        fs::create_dir_all(&store.directory).unwrap();
        fs::write(&outside, "").unwrap();
        let open = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        open(&store.directory, 0o777);
        symlink(&outside, store.path(&key, "draft")).unwrap();
        write(&store, "https://a");
        assert_eq!(fs::read_to_string(&outside).unwrap(), "");
        assert_eq!(mode(&store.directory), 0o700);
        fs::write(store.path(&key, "draft"), "").unwrap();
        open(&store.path(&key, "draft"), 0o666);
        write(&store, "https://a");
        assert_eq!(mode(&store.path(&key, LOGIN)), 0o600);
        fs::hard_link(&outside, store.path(&key, "draft")).unwrap();
        write(&store, "https://a");
        assert_eq!(fs::read_to_string(&outside).unwrap(), "");
        for extension in [LOGIN, "lock"] {
            let path = store.path(&key, extension);
            fs::remove_file(&path).unwrap();
            symlink(&outside, &path).unwrap();
        }
        let refused = store.read(&key).unwrap_err().to_string();
        assert!(refused.contains("not a regular file"), "{refused}");
        let refused = store.lock(&key).unwrap_err().to_string();
        assert!(refused.contains("not a regular file"), "{refused}");
    }

    #[cfg(unix)]
    #[test]
    fn nothing_waits_for_a_pipe_that_was_there_before() {
        let (sender, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let scratch = Scratch::new("pipes");
            let store = scratch.store(&[]);
            let key = write(&store, "https://a");
            let plant = |extension: &str| {
                let path = store.path(&key, extension);
                let _ = fs::remove_file(&path);
                let made = std::process::Command::new("mkfifo").arg(path).status();
                assert!(made.unwrap().success());
            };
            plant("draft");
            write(&store, "https://a");
            plant(LOGIN);
            let read = store.read(&key).unwrap_err().to_string();
            plant("lock");
            let locked = store.lock(&key).unwrap_err().to_string();
            sender.send([read, locked]).unwrap();
        });
        let limit = std::time::Duration::from_secs(60);
        for refused in ended.recv_timeout(limit).unwrap() {
            assert!(refused.contains("not a regular file"), "{refused}");
        }
    }

    #[test]
    fn an_unsealed_file_is_not_used_where_there_are_keys() {
        let scratch = Scratch::new("unsealed");
        let key = write(&scratch.store(&[]), "https://a");
        let error = scratch.store(&[1]).read(&key).unwrap_err();
        assert!(matches!(error, StoreError::Unsealed(_)), "{error}");
        write(&scratch.store(&[1]), "https://a");
        assert!(scratch.store(&[1]).read(&key).unwrap().is_some());
    }

    #[test]
    fn sealed_files_need_their_key_and_old_keys_still_open() {
        let scratch = Scratch::new("seal");
        let key = write(&scratch.store(&[1]), "https://a");
        let path = scratch.store(&[]).path(&key, LOGIN);
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains("TOPSECRET") && !text.contains("https://a"),
            "{text}"
        );
        assert!(scratch.store(&[2, 1]).read(&key).unwrap().is_some());
        let error = scratch.store(&[2]).read(&key).unwrap_err();
        assert!(matches!(error, StoreError::Sealed(_)), "{error}");
        assert!(scratch.store(&[]).list().unwrap()[0].is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_login_is_sealed_with_the_key_of_the_keyring() {
        use crate::keyring::tests::{WITH_KEYRING, runs_in_session};
        let name = "store::tests::a_login_is_sealed_with_the_key_of_the_keyring";
        if runs_in_session(name, WITH_KEYRING) {
            return;
        }
        let scratch = Scratch::new("keyring");
        let key = write(&scratch.store(&[]).with_keyring(), "https://a");
        let path = scratch.store(&[]).path(&key, LOGIN);
        let text = fs::read_to_string(path).unwrap();
        assert!(is_sealed(&text) && !text.contains("TOPSECRET"), "{text}");
        // As the next process.
        let next = scratch.store(&[]).with_keyring();
        assert!(next.read(&key).unwrap().is_some());
        let without = scratch.store(&[]).read(&key).unwrap_err();
        assert!(matches!(without, StoreError::Sealed(_)), "{without}");
    }

    #[test]
    fn a_login_of_a_newer_program_is_not_taken_for_damage() {
        let scratch = Scratch::new("newer");
        let store = scratch.store(&[]);
        let key = write(&store, "https://a");
        let path = store.path(&key, LOGIN);
        fs::write(&path, r#"{"version":2,"principals":[]}"#).unwrap();
        let expected = format!(
            "{} was written by a newer Vary; use that one, or remove the file, and log in again",
            path.display()
        );
        assert_eq!(store.read(&key).unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_draft_or_damage_of_one_login_leaves_the_others() {
        let scratch = Scratch::new("damage");
        let store = scratch.store(&[]);
        let (a, b) = (write(&store, "https://a"), write(&store, "https://b"));
        // Killed while it wrote.
        fs::write(store.path(&a, "draft"), "{\"princ").unwrap();
        assert!(store.read(&a).unwrap().is_some());
        write(&store, "https://a");
        assert!(!store.path(&a, "draft").exists());
        fs::write(store.path(&a, LOGIN), "{\"princ").unwrap();
        assert!(matches!(store.read(&a), Err(StoreError::Damaged(_))));
        assert!(store.read(&b).unwrap().is_some());
        assert_eq!(
            store
                .list()
                .unwrap()
                .iter()
                .filter(|login| login.is_ok())
                .count(),
            1
        );
    }

    #[test]
    fn a_lock_excludes_others_until_it_is_dropped() {
        let scratch = Scratch::new("lock");
        let store = scratch.store(&[]);
        let key = LoginKey::operator("https://a");
        let lock = store.lock(&key).unwrap();
        let waiting = std::thread::spawn({
            let (store, key) = (store.clone(), key.clone());
            move || store.lock(&key).unwrap()
        });
        let path = store.path(&key, "lock");
        assert!(private_files::open(&path).unwrap().try_lock().is_err());
        store.lock(&LoginKey::operator("https://b")).unwrap();
        drop(lock);
        drop(waiting.join().unwrap());
        // A process that another test starts has the file open until it runs its program.
        let is_free = (0..250).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            private_files::open(&path).unwrap().try_lock().is_ok()
        });
        assert!(is_free);
    }

    #[test]
    fn nothing_shows_a_secret() {
        let shown = format!("{:?}", login("https://a"));
        assert!(!shown.contains("TOPSECRET"), "{shown}");
    }
}
