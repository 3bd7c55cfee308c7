//! Whole results behind shortened ones, stored for a while so that their clients can read the parts that were left out.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::json::{Json, Members, string};
use mcp_vary::render::{Index, Part, PartError};
use mcp_vary_access::PrincipalId;
use mcp_vary_base::copies::Copies;
use mcp_vary_base::environment::Environment;
use mcp_vary_base::expiring_store::{Entry, ExpiringStore, StoreLimits};
use mcp_vary_base::lock::Lock;
use mcp_vary_wire::client_id::ClientId;

/// The prefix of the URIs of stored results.
const PREFIX: &str = "vary://result/";
/// The number of bytes in an id: those of its replica, and random ones, so that ids cannot be guessed.
const ID: usize = 16;

/// The stored results.
///
/// # Properties
///
/// The client that received an id can read the whole value, part by part, until it expires or newer results need the
/// space. All results together, with the indices of their parts, take at most the capacity of the store, and one result
/// takes at most a quarter of it. If there is no room, the oldest result of the owner with the most bytes is removed. A
/// client that reads all parts of an array, object or text in order has it indexed once.
pub struct ResultStore {
    capacity: usize,
    ttl: Duration,
    environment: Environment,
    /// The tag of this replica, which ids end with.
    replica: u32,
    copies: Copies,
    results: Lock<ExpiringStore<Arc<str>, StoredResult>>,
}

struct StoredResult {
    json: Arc<str>,
    /// The positions of the parts of the value that was read last.
    index: Option<Arc<Index>>,
    owner: ResultOwner,
}

/// The client and the tool that a result belongs to.
#[derive(Clone, Debug)]
pub struct ResultOwner {
    /// The only client that may read it; `None` if any client of the principal that knows the URI may.
    pub client: Option<ClientId>,
    /// The only principal that may read it; `None` where clients are not authenticated.
    pub principal: Option<PrincipalId>,
    /// The tool that returned it.
    pub tool: ToolRef,
}

impl ResultOwner {
    /// Whose room it takes: that of its principal, or of its client.
    fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match self.principal {
            Some(principal) => principal.hash(&mut hasher),
            None => self.client.hash(&mut hasher),
        }
        hasher.finish()
    }
}

/// Who reads a result.
#[derive(Clone, Copy, Debug)]
pub struct ResultReader {
    /// The client.
    pub client: ClientId,
    /// Its principal; `None` where clients are not authenticated.
    pub principal: Option<PrincipalId>,
}

/// A tool, identified by the name of its server and its name there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ToolRef {
    /// The name of the server.
    pub server: Arc<str>,
    /// The name that the server gives the tool.
    pub upstream_name: Arc<str>,
}

/// A part of a result.
#[derive(Debug)]
pub struct ResultPage {
    uri: String,
    media_type: &'static str,
    /// The part as JSON, or as plain text if the result is a text.
    pub text: String,
    /// The URI of the part after it, and the text that describes that part.
    pub next_page: Option<(String, String)>,
}

impl ResultPage {
    /// The result of `resources/read`: the part and, where there is more, the URI of the next one.
    pub fn contents(&self) -> String {
        let mut contents = vec![text_content(&self.uri, self.media_type, &self.text)];
        if let Some((next, text)) = &self.next_page {
            contents.push(text_content(next, "text/plain", text));
        }
        let list = format!("[{}]", contents.join(","));
        Members::from_iter([("contents", list)]).to_json()
    }
}

/// Why no part could be read.
#[derive(Debug)]
pub enum ReadError {
    /// There is no such result, or it belongs to another client.
    NotFound,
    /// The part that the URI asks for does not exist.
    Part(PartError),
}

// Omits the results.
mcp_vary_base::debug_by_name!(ResultStore);

impl ResultStore {
    /// An empty store of at most `capacity` bytes in which each result stays for `ttl`.
    pub fn new(capacity: usize, ttl: Duration, environment: Environment, replica: u32) -> Self {
        Self {
            capacity,
            ttl,
            environment,
            replica,
            copies: Copies::default(),
            results: Lock::new(ExpiringStore::new(StoreLimits {
                bytes: capacity,
                ..StoreLimits::UNBOUNDED
            })),
        }
    }

    /// The same store, which copies each result so that another replica can [`insert`](Self::insert_copy) it.
    #[must_use]
    pub fn with_copies(self, copies: Copies) -> Self {
        Self { copies, ..self }
    }

    /// Whether `uri` has the form of the URI of a stored result.
    pub fn is_uri(uri: &str) -> bool {
        uri.starts_with(PREFIX)
    }

    /// A URI for a result of `bytes`; `None` if it is too large for the store.
    pub fn new_uri(&self, bytes: usize) -> Option<String> {
        if bytes > self.capacity / 4 {
            return None;
        }
        let mut random = [0; ID];
        (self.environment.random)(&mut random);
        random[ID - 4..].copy_from_slice(&self.replica.to_be_bytes());
        let mut uri = String::with_capacity(PREFIX.len() + 2 * ID);
        uri.push_str(PREFIX);
        let digits = random.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        uri.extend(digits.map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])));
        Some(uri)
    }

    /// The replica that has stored the result, if this is the URI of one.
    pub fn replica_of(uri: &str) -> Option<u32> {
        let id = uri.strip_prefix(PREFIX)?.get(..2 * ID)?;
        u32::from_str_radix(id.get(2 * ID - 8..)?, 16).ok()
    }

    /// The URI of a result, from its id or from one of its URIs.
    pub fn uri_of(id: &str) -> String {
        let trimmed = id.trim();
        if Self::is_uri(trimmed) {
            trimmed.to_owned()
        } else {
            format!("{PREFIX}{trimmed}")
        }
    }

    /// Stores `json` as `uri`.
    pub fn insert(&self, uri: &str, json: String, owner: ResultOwner) {
        let Some(id) = uri.strip_prefix(PREFIX) else {
            return;
        };
        let expires_at = (self.environment.now)().saturating_add(self.ttl.as_secs());
        let encode = || encode(&json, &owner, expires_at);
        self.copies.add(id, self.ttl, json.len(), encode);
        self.insert_until(id, json.into(), owner, expires_at);
    }

    fn insert_until(&self, id: &str, json: Arc<str>, owner: ResultOwner, expires_at: u64) {
        let bytes = json.len();
        let result = StoredResult {
            json,
            index: None,
            owner,
        };
        let entry = Entry {
            owner: result.owner.number(),
            bytes,
            expires_at,
            ..Entry::new(result)
        };
        let now = (self.environment.now)();
        self.results.lock().insert(id.into(), entry, now);
    }

    /// Stores the result that another replica stored as `uri`, from its copy. Bytes that are not a copy are ignored.
    pub fn insert_copy(&self, uri: &str, copy: &[u8]) {
        if let Some((json, owner, expires_at)) = decode(copy)
            && json.len() <= self.capacity / 4
        {
            self.insert_until(Self::id_of(uri), json.into(), owner, expires_at);
        }
    }

    /// Whether the result of this URI is stored, for any client.
    pub fn has(&self, uri: &str) -> bool {
        let now = (self.environment.now)();
        self.results.lock().get(Self::id_of(uri), now).is_some()
    }

    /// The id of the result that `uri` reads, which its copies have.
    pub fn id_of(uri: &str) -> &str {
        split(uri).0
    }

    /// The tool that returned the result that `reader` reads as `uri`.
    pub fn tool(&self, uri: &str, reader: ResultReader) -> Option<ToolRef> {
        let (id, _) = split(uri);
        self.find(id, reader, |result| result.owner.tool.clone())
    }

    /// The part that `uri` names, read by `reader`.
    pub fn read(&self, uri: &str, reader: ResultReader) -> Result<ResultPage, ReadError> {
        let (id, query) = split(uri);
        let known = |result: &StoredResult| (Arc::clone(&result.json), result.index.clone());
        let (json, index) = self.find(id, reader, known).ok_or(ReadError::NotFound)?;
        let part = Part::parse(query).map_err(ReadError::Part)?;
        let known = index.filter(|index| index.pointer() == part.pointer);
        let index = match known {
            Some(index) => index,
            None => {
                let index = Arc::new(Index::of(&json, &part.pointer).map_err(ReadError::Part)?);
                self.store_index(id, &json, Arc::clone(&index));
                index
            }
        };
        let page = index.page(&json, &part).map_err(ReadError::Part)?;
        let (media_type, text) = match page.value {
            Json::String(text) => ("text/plain", text.into_owned()),
            value => ("application/json", value.to_json()),
        };
        let next = page.next.map(|next| {
            let mut following = part.clone().with_offset(next);
            following.limit = part.limit;
            let uri = format!("{PREFIX}{id}?{}", following.to_query());
            let from = page.offset;
            let total = page.total;
            let text = format!("{from} to {next} of {total}; the next part: {uri}");
            (uri, text)
        });
        Ok(ResultPage {
            uri: uri.to_owned(),
            media_type,
            text,
            next_page: next,
        })
    }

    /// Removes expired results.
    pub fn sweep(&self) {
        let now = (self.environment.now)();
        self.results.lock().sweep(now);
    }

    /// The bytes of the stored results and of the indices of their parts.
    pub fn bytes(&self) -> usize {
        self.results.lock().bytes()
    }

    /// Stores the index of the parts of `json`, which is stored as `id`.
    fn store_index(&self, id: &str, json: &Arc<str>, index: Arc<Index>) {
        let now = (self.environment.now)();
        let mut results = self.results.lock();
        results.sweep(now);
        let is_same = |result: &&StoredResult| Arc::ptr_eq(&result.json, json);
        let is_stored = results.get(id, now).filter(is_same).is_some();
        // An index that is larger than the whole store is built again each time.
        if is_stored
            && results.set_bytes(id, json.len() + index.bytes())
            && let Some(result) = results.get_mut(id, now)
        {
            result.index = Some(index);
        }
    }

    /// Applies `read` to the result with this id, if `reader` may read it.
    fn find<T>(
        &self,
        id: &str,
        reader: ResultReader,
        read: impl Fn(&StoredResult) -> T,
    ) -> Option<T> {
        let now = (self.environment.now)();
        let results = self.results.lock();
        let result = results.get(id, now)?;
        let owner = &result.owner;
        let may_read = owner.principal == reader.principal
            && owner.client.is_none_or(|owner| owner == reader.client);
        may_read.then(|| read(result))
    }
}

/// The text of a result with its owner: a line about it, and then the result as it is.
fn encode(json: &str, owner: &ResultOwner, expires_at: u64) -> Vec<u8> {
    let head = serde_json::json!({
        "client": owner.client,
        "principal": owner.principal.map(|principal| principal.to_string()),
        "server": &*owner.tool.server,
        "tool": &*owner.tool.upstream_name,
        "expires": expires_at,
    });
    format!("{head}\n{json}").into_bytes()
}

/// The result of such a text, its owner, and when it expires.
fn decode(copy: &[u8]) -> Option<(&str, ResultOwner, u64)> {
    let (head, json) = std::str::from_utf8(copy).ok()?.split_once('\n')?;
    let head: serde_json::Value = serde_json::from_str(head).ok()?;
    let text = |name: &str| head.get(name)?.as_str();
    let owner = ResultOwner {
        client: match head.get("client")? {
            serde_json::Value::Null => None,
            client => Some(client.as_u64()?),
        },
        principal: match head.get("principal")? {
            serde_json::Value::Null => None,
            _ => Some(text("principal")?.parse().ok()?),
        },
        tool: ToolRef {
            server: text("server")?.into(),
            upstream_name: text("tool")?.into(),
        },
    };
    Some((json, owner, head.get("expires")?.as_u64()?))
}

/// The id and the query of a URI.
fn split(uri: &str) -> (&str, &str) {
    let remaining = uri.strip_prefix(PREFIX).unwrap_or_default();
    remaining.split_once('?').unwrap_or((remaining, ""))
}

fn text_content(uri: &str, media_type: &str, text: &str) -> String {
    let mut content = Members::default();
    content.set("uri", string(uri));
    content.set("mimeType", string(media_type));
    content.set("text", string(text));
    content.to_json()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use mcp_vary_access::{Claims, Principal};

    use super::*;
    use mcp_vary_base::copies::CopyPlace;

    static NOW: AtomicU64 = AtomicU64::new(1_000);

    type CopiedValue = (String, Vec<u8>, Duration);

    /// Takes everything.
    #[derive(Clone, Default)]
    struct CopiedValues(Arc<Lock<Vec<CopiedValue>>>);

    impl CopyPlace for CopiedValues {
        fn wants(&self, _bytes: usize) -> bool {
            true
        }

        fn put(&self, id: &str, value: Vec<u8>, lifetime: Duration) {
            self.0.lock().push((id.to_owned(), value, lifetime));
        }
    }

    fn kept(room: usize, now: fn() -> u64) -> ResultStore {
        let random = |bytes: &mut [u8]| getrandom::fill(bytes).unwrap();
        ResultStore::new(
            room,
            Duration::from_secs(60),
            Environment::new(now, random),
            7,
        )
    }

    fn keep(kept: &ResultStore, json: &str, client: Option<ClientId>) -> String {
        let uri = kept.new_uri(json.len()).unwrap();
        let tool = ToolRef {
            server: "a".into(),
            upstream_name: "b".into(),
        };
        let principal = None;
        kept.insert(
            &uri,
            json.to_owned(),
            ResultOwner {
                client,
                principal,
                tool,
            },
        );
        uri
    }

    fn reader(client: ClientId) -> ResultReader {
        ResultReader {
            client,
            principal: None,
        }
    }

    fn contents(kept: &ResultStore, uri: &str) -> String {
        kept.read(uri, reader(1)).unwrap().contents()
    }

    #[test]
    fn the_results_of_one_take_nothing_of_another() {
        let kept = kept(64 << 10, || 0);
        let large = format!("[{}]", "1".repeat(16_000));
        let of_another = keep(&kept, "[2]", Some(1));
        let of_one: Vec<_> = (0..16).map(|_| keep(&kept, &large, Some(2))).collect();
        assert!(kept.has(&of_another));
        let left = of_one.iter().map(|uri| kept.has(uri));
        assert_eq!(left.filter(|is_there| *is_there).count(), 4);
    }

    #[test]
    fn an_index_takes_room() {
        let kept = kept(1 << 20, || 0);
        let rows = format!("[{}]", vec!["1"; 50_000].join(","));
        let uri = keep(&kept, &rows, None);
        assert_eq!(kept.results.lock().bytes(), rows.len());
        for query in ["", "?offset=100", "?offset=0&limit=5"] {
            contents(&kept, &format!("{uri}{query}"));
        }
        let index = Index::of(&rows, "").unwrap().bytes();
        assert_eq!(kept.results.lock().bytes(), rows.len() + index);
        contents(&kept, &format!("{uri}?pointer=/7"));
        let index = Index::of(&rows, "/7").unwrap().bytes();
        assert_eq!(
            kept.results.lock().bytes(),
            rows.len() + index,
            "one at a time"
        );
        kept.results.lock().sweep(u64::MAX);
        assert_eq!(kept.results.lock().bytes(), 0);
    }

    #[test]
    fn a_result_is_read_in_parts_that_lead_to_each_other() {
        let kept = kept(1 << 20, || 0);
        let uri = keep(&kept, r#"{"rows":[{"n":1.0},{"n":2},{"n":3}]}"#, None);
        let first = contents(&kept, &format!("{uri}?pointer=/rows&limit=2"));
        assert_eq!(
            first,
            format!(
                "{{\"contents\":[{{\"uri\":\"{uri}?pointer=/rows&limit=2\",\"mimeType\":\"application/json\",\
                 \"text\":\"[{{\\\"n\\\":1.0}},{{\\\"n\\\":2}}]\"}},\
                 {{\"uri\":\"{uri}?pointer=/rows&offset=2&limit=2\",\"mimeType\":\"text/plain\",\
                 \"text\":\"0 to 2 of 3; the next part: {uri}?pointer=/rows&offset=2&limit=2\"}}]}}"
            )
        );
        let last = contents(&kept, &format!("{uri}?pointer=/rows&offset=2&limit=2"));
        assert!(last.contains(r#"[{\"n\":3}]"#), "{last}");
        assert!(!last.contains("next part"), "{last}");
    }

    #[test]
    fn a_text_is_read_as_text() {
        let kept = kept(1 << 20, || 0);
        let uri = keep(&kept, r#""two words""#, None);
        let read = contents(&kept, &uri);
        let expected = r#""mimeType":"text/plain","text":"two words""#;
        assert!(read.contains(expected), "{read}");
    }

    #[test]
    fn nobody_else_reads_what_belongs_to_a_client() {
        let kept = kept(1 << 20, || 0);
        let uri = keep(&kept, "[1]", Some(7));
        assert!(kept.read(&uri, reader(7)).is_ok());
        let part = format!("{uri}?limit=x");
        let bad = kept.read(&part, reader(7));
        assert!(matches!(bad, Err(ReadError::Part(_))));
        // Others do not learn whether a part is well-formed.
        for (uri, client) in [(&*uri, 8), ("vary://result/0", 7), (&*part, 8)] {
            let read = kept.read(uri, reader(client));
            assert!(matches!(read, Err(ReadError::NotFound)), "{uri}");
        }
    }

    #[test]
    fn only_the_principal_reads_what_belongs_to_it_whichever_client_it_uses() {
        let kept = kept(1 << 20, || 0);
        let [ann, eve] = ["ann", "eve"].map(|name| {
            let principal = Principal::key(name, Claims::default()).unwrap();
            Some(principal.id())
        });
        let uri = keep(&kept, "[1]", None);
        let key = &uri[PREFIX.len()..];
        kept.results.lock().get_mut(key, 0).unwrap().owner.principal = ann;
        let read = |client, principal| kept.read(&uri, ResultReader { client, principal }).is_ok();
        assert!(read(7, ann) && read(8, ann));
        assert!(!read(7, eve) && !read(7, None));
        let (client, principal) = (7, eve);
        assert_eq!(kept.tool(&uri, ResultReader { client, principal }), None);
    }

    #[test]
    fn a_copy_is_read_at_another_replica_by_its_owner_until_it_expires() {
        static NOW: AtomicU64 = AtomicU64::new(1_000);
        let now = || NOW.load(Ordering::Relaxed);
        let copied = CopiedValues::default();
        let first = kept(1 << 20, now).with_copies(Copies::to(copied.clone()));
        let ann = Principal::key("ann", Claims::default()).unwrap().id();
        let uri = first.new_uri(9).unwrap();
        let tool = ToolRef {
            server: "a".into(),
            upstream_name: "b\n".into(),
        };
        let owner = ResultOwner {
            client: Some(7),
            principal: Some(ann),
            tool: tool.clone(),
        };
        first.insert(&uri, "\"é\\n\"".to_owned(), owner);
        let (id, copy, lifetime) = copied.0.lock().pop().unwrap();
        assert_eq!((&*id, lifetime.as_secs()), (ResultStore::id_of(&uri), 60));
        let second = kept(1 << 20, now);
        let part = format!("{uri}?limit=9");
        for cut in 0..copy.len() {
            second.insert_copy(&part, &copy[..cut.min(copy.len() - 8)]);
        }
        assert!(!second.has(&part), "a part of a copy is none");
        second.insert_copy(&part, &copy);
        let reader = |client, principal| ResultReader { client, principal };
        assert_eq!(second.tool(&uri, reader(7, Some(ann))), Some(tool));
        let read = second.read(&uri, reader(7, Some(ann))).unwrap();
        assert_eq!(read.text, "é\n");
        for other in [reader(8, Some(ann)), reader(7, None)] {
            let read = second.read(&uri, other);
            assert!(matches!(read, Err(ReadError::NotFound)), "{other:?}");
        }
        NOW.fetch_add(60, Ordering::Relaxed);
        assert!(!second.has(&uri));
        let small = kept(20, now);
        small.insert_copy(&uri, &copy);
        assert!(!small.has(&uri), "it takes no more than a quarter");
    }

    #[test]
    fn the_oldest_goes_when_there_is_no_room() {
        let kept = kept(40, || 0);
        assert_eq!(kept.new_uri(11), None, "one takes no more than a quarter");
        let all: Vec<_> = (0..5).map(|_| keep(&kept, "[11111111]", None)).collect();
        assert!(kept.read(&all[0], reader(1)).is_err());
        assert!(all[1..].iter().all(|uri| kept.read(uri, reader(1)).is_ok()));
    }

    #[test]
    fn its_time_is_over_some_day() {
        let kept = kept(1 << 20, || NOW.load(Ordering::Relaxed));
        let uri = keep(&kept, "[1]", None);
        NOW.fetch_add(59, Ordering::Relaxed);
        assert!(kept.read(&uri, reader(1)).is_ok());
        NOW.fetch_add(1, Ordering::Relaxed);
        assert!(kept.read(&uri, reader(1)).is_err());
        assert!(kept.bytes() > 0, "it takes space until it is swept");
        kept.sweep();
        assert_eq!(kept.bytes(), 0);
    }
}
