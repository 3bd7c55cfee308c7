//! A stand-in for a collector of traces, which takes spans over OTLP (http/protobuf).
//!
//! It reads the encoding itself, by the numbers of fields in opentelemetry-proto 1.10, so that it shares no mistake with what
//! it is sent.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::wait::until;

/// What the collector does with a request.
#[derive(Clone, Copy, Debug)]
pub enum CollectorBehavior {
    /// It takes the spans.
    Accepts,
    /// It answers with this status, and takes none.
    Refuses(u16),
    /// It takes the spans, but says that it rejected this many.
    Rejects(u8),
    /// It takes the spans and answers after this time.
    Delays(Duration),
    /// It never answers.
    Hangs,
}

/// A span as it arrived.
#[derive(Clone, Debug, Default)]
pub struct ReceivedSpan {
    /// The id of the trace, in hexadecimal digits.
    pub trace: String,
    /// The id of the span.
    pub id: String,
    /// The id of the parent; empty without one.
    pub parent: String,
    /// What vendors added.
    pub state: String,
    /// Its name.
    pub name: String,
    /// 2 is a server's, 3 a client's.
    pub kind: u64,
    /// When it began and ended, in nanoseconds since 1970-01-01 UTC.
    pub time: (u64, u64),
    /// Its attributes, numbers as text.
    pub attributes: BTreeMap<String, String>,
    /// The traces and spans that it links to.
    pub links: Vec<(String, String)>,
    /// Whether its status is an error.
    pub is_error: bool,
    /// The attributes of the program that sent it.
    pub resource: BTreeMap<String, String>,
}

impl ReceivedSpan {
    /// Its position as `traceparent`.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.trace, self.id)
    }

    /// Its attributes, a line each.
    pub fn lines(&self) -> Vec<String> {
        let attributes = self.attributes.iter();
        attributes
            .map(|(key, value)| format!("{key}={value}"))
            .collect()
    }
}

/// A collector on a free port.
#[derive(Debug)]
pub struct TraceCollector {
    address: SocketAddr,
    behavior: Arc<Mutex<CollectorBehavior>>,
    received: Arc<Mutex<Received>>,
    serving: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Received {
    spans: Vec<ReceivedSpan>,
    heads: Vec<(String, HeaderMap)>,
    connections: usize,
}

impl TraceCollector {
    /// Starts a collector that behaves like this.
    pub async fn start(behavior: CollectorBehavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let behavior = Arc::new(Mutex::new(behavior));
        let received = Arc::<Mutex<Received>>::default();
        let (shared, record) = (Arc::clone(&behavior), Arc::clone(&received));
        let serving = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (shared, record) = (Arc::clone(&shared), Arc::clone(&record));
                record.lock().unwrap().connections += 1;
                let service = service_fn(move |request| {
                    serve(request, Arc::clone(&shared), Arc::clone(&record))
                });
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(socket), service));
            }
        });
        Self {
            address,
            behavior,
            received,
            serving,
        }
    }

    /// Its address, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Behaves like this from now on.
    pub fn set(&self, behavior: CollectorBehavior) {
        *self.behavior.lock().unwrap() = behavior;
    }

    /// The spans that arrived so far.
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        self.received.lock().unwrap().spans.clone()
    }

    /// The paths and headers of the requests that arrived so far.
    pub fn heads(&self) -> Vec<(String, HeaderMap)> {
        self.received.lock().unwrap().heads.clone()
    }

    /// How often it was connected to.
    pub fn connections(&self) -> usize {
        self.received.lock().unwrap().connections
    }

    /// Waits until `count` spans arrived, and returns them and forgets them.
    pub async fn take(&self, count: usize) -> Vec<ReceivedSpan> {
        until(async || self.received.lock().unwrap().spans.len() >= count).await;
        std::mem::take(&mut self.received.lock().unwrap().spans)
    }
}

impl Drop for TraceCollector {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    request: Request<Incoming>,
    behavior: Arc<Mutex<CollectorBehavior>>,
    record: Arc<Mutex<Received>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let head = (request.uri().path().to_owned(), request.headers().clone());
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let behavior = *behavior.lock().unwrap();
    record.lock().unwrap().heads.push(head);
    let mut answer = Bytes::new();
    let status = match behavior {
        CollectorBehavior::Refuses(status) => status,
        CollectorBehavior::Hangs => std::future::pending().await,
        CollectorBehavior::Rejects(count) => {
            // `partial_success` with `rejected_spans`.
            answer = vec![0x0a, 2, 8, count].into();
            200
        }
        CollectorBehavior::Delays(time) => {
            tokio::time::sleep(time).await;
            200
        }
        CollectorBehavior::Accepts => 200,
    };
    if status == 200 {
        record.lock().unwrap().spans.extend(read_request(&body));
    }
    let mut response = Response::new(Full::new(answer));
    *response.status_mut() = status.try_into().unwrap();
    Ok(response)
}

/// A field of a message: its number, and its value.
struct Field<'a>(u64, Value<'a>);

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    fn number(&self) -> u64 {
        match self.1 {
            Value::Number(number) => number,
            Value::Bytes(_) => panic!("the field {} is a number", self.0),
        }
    }

    fn bytes(&self) -> &'a [u8] {
        match self.1 {
            Value::Bytes(bytes) => bytes,
            Value::Number(_) => panic!("the field {} has a length", self.0),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }

    fn hex(&self) -> String {
        let bytes = self.bytes().iter();
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The fields of a message.
///
/// Source: Protocol Buffers, "Encoding".
fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => Value::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
            2 => {
                let length = varint(&mut bytes);
                Value::Bytes(take(&mut bytes, usize::try_from(length).unwrap()))
            }
            5 => Value::Number(u32::from_le_bytes(take(&mut bytes, 4).try_into().unwrap()).into()),
            other => panic!("there is no wire type {other}"),
        };
        fields.push(Field(tag >> 3, value));
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let byte = take(bytes, 1)[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (first, remaining) = bytes.split_at(count);
    *bytes = remaining;
    first
}

/// The fields with this number of all `messages`, as messages.
fn inner(message: &[u8], number: u64) -> impl Iterator<Item = &[u8]> {
    let fields = fields(message).into_iter();
    let found = fields.filter(move |field| field.0 == number);
    found.map(|field| field.bytes())
}

/// `ExportTraceServiceRequest`.
fn read_request(body: &[u8]) -> Vec<ReceivedSpan> {
    let mut spans = Vec::new();
    for resource_spans in inner(body, 1) {
        let resources = inner(resource_spans, 1);
        let resource: BTreeMap<_, _> = resources
            .flat_map(|resource| inner(resource, 1).map(attribute).collect::<Vec<_>>())
            .collect();
        for scope_spans in inner(resource_spans, 2) {
            for span in inner(scope_spans, 2) {
                spans.push(ReceivedSpan {
                    resource: resource.clone(),
                    ..read_span(span)
                });
            }
        }
    }
    spans
}

/// `Span`.
fn read_span(message: &[u8]) -> ReceivedSpan {
    let mut span = ReceivedSpan::default();
    for field in fields(message) {
        match field.0 {
            1 => span.trace = field.hex(),
            2 => span.id = field.hex(),
            3 => span.state = field.text(),
            4 => span.parent = field.hex(),
            5 => span.name = field.text(),
            6 => span.kind = field.number(),
            7 => span.time.0 = field.number(),
            8 => span.time.1 = field.number(),
            9 => {
                let (key, value) = attribute(field.bytes());
                let before = span.attributes.insert(key.clone(), value);
                assert_eq!(before, None, "{key} twice");
            }
            13 => {
                let ids: Vec<_> = fields(field.bytes()).iter().map(Field::hex).collect();
                span.links.push((ids[0].clone(), ids[1].clone()));
            }
            15 => {
                let status = fields(field.bytes());
                span.is_error = status.iter().any(|it| it.0 == 3 && it.number() == 2);
            }
            16 => assert_eq!(field.number(), 1, "only sampled spans are sent"),
            other => panic!("a span has no field {other} here"),
        }
    }
    span
}

/// `KeyValue`.
fn attribute(message: &[u8]) -> (String, String) {
    let mut pair = (String::new(), String::new());
    for field in fields(message) {
        match field.0 {
            1 => pair.0 = field.text(),
            _ => {
                for value in fields(field.bytes()) {
                    pair.1 = match value.0 {
                        1 => value.text(),
                        _ => value.number().to_string(),
                    };
                }
            }
        }
    }
    pair
}
