//! Compressed responses, byte order marks and charsets.

use bytes::Bytes;
use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::deflate::stream::deflate;
use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};
use miniz_oxide::{MZFlush, StreamResult};

use super::*;

/// Compresses a text.
type Compress = fn(&[u8]) -> Vec<u8>;

fn gzip(text: &[u8]) -> Vec<u8> {
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    [&head[..], &compress_to_vec(text, 6), &[0; 8]].concat()
}

/// With everything that a header of gzip can have.
fn gzip_with_long_header(text: &[u8]) -> Vec<u8> {
    let head = [0x1f, 0x8b, 8, 0b0001_1111, 0, 0, 0, 0, 0, 255];
    let fields = b"\x03\x00abcname\0comment\0\x01\x02";
    [&head[..], fields, &compress_to_vec(text, 6), &[0; 8]].concat()
}

fn gzip_in_members(text: &[u8]) -> Vec<u8> {
    let (start, end) = text.split_at(text.len() / 2);
    [gzip(start), gzip(end), vec![0; 5]].concat()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    compress_to_vec_zlib(text, 6)
}

fn raw(text: &[u8]) -> Vec<u8> {
    compress_to_vec(text, 6)
}

const CODINGS: [(&str, Compress); 6] = [
    ("gzip", gzip),
    ("X-GZIP", gzip),
    ("gzip", gzip_with_long_header),
    ("gzip", gzip_in_members),
    ("deflate", zlib),
    ("deflate", raw),
];

/// A text with 20,000 characters that do not repeat.
fn long() -> String {
    (0..4_000).map(|number| format!("{number:05}")).collect()
}

/// The reply with `text` in this coding, in pieces of one byte or in one.
fn coded(
    kind: &'static str,
    text: &str,
    (coding, compress): (&str, Compress),
    piece: usize,
) -> Reply {
    let (sender, reply) = Reply::stream();
    for piece in compress(text.as_bytes()).chunks(piece) {
        sender.send(Bytes::copy_from_slice(piece)).unwrap();
    }
    reply
        .with_header("content-type", kind)
        .with_header("content-encoding", coding)
}

#[tokio::test]
async fn compressed_answers_are_read_whole_and_in_pieces() {
    for (coding, piece) in CODINGS
        .into_iter()
        .flat_map(|it| [(it, 1), (it, usize::MAX)])
    {
        for kind in ["application/json", "text/event-stream"] {
            let peer = legacy(move |seen| {
                let message = seen.message(&json!({"text": long()}));
                let text = match kind {
                    "application/json" => message.to_string(),
                    _ => event(&message),
                };
                coded(kind, &text, coding, piece)
            })
            .await;
            let answer = result(&connect(&peer).await, "x").await;
            assert_eq!(
                answer,
                Ok(json!({"text": long()})),
                "{} {kind} {piece}",
                coding.0
            );
        }
    }
}

/// The first part of a compressed stream, whose end is still to come.
fn flushed(compressor: &mut CompressorOxide, text: &str) -> Bytes {
    let mut output = vec![0; 4096];
    let StreamResult { bytes_written, .. } =
        deflate(compressor, text.as_bytes(), &mut output, MZFlush::Sync);
    output.truncate(bytes_written);
    output.into()
}

#[tokio::test]
async fn events_of_a_compressed_stream_arrive_before_its_end() {
    let streams = Arc::<Mutex<Vec<mpsc::UnboundedSender<Bytes>>>>::default();
    let opened = Arc::clone(&streams);
    let peer = legacy(move |_| {
        let (sender, reply) = Reply::stream();
        opened.lock().unwrap().push(sender);
        reply.with_header("content-encoding", "deflate")
    })
    .await;
    let upstream = connect(&peer).await;
    let mut exchange = upstream.request(call("x")).await.unwrap();
    let flags = create_comp_flags_from_zip_params(6, -15, 0);
    let mut compressor = CompressorOxide::new(flags);
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
    let feeding = async {
        let id = peer.wait_for("tools/call", 1).await[0].id().clone();
        let sender = streams.lock().unwrap().pop().unwrap();
        sender
            .send(flushed(&mut compressor, &event(&progress)))
            .unwrap();
        (sender, id)
    };
    let (first, (sender, id)) = tokio::join!(soon(exchange.next()), feeding);
    assert!(matches!(first, Ok(Message::Notification(_))), "{first:?}");
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"n": 1}});
    sender
        .send(flushed(&mut compressor, &event(&answer)))
        .unwrap();
    assert_eq!(all(exchange).await.1, Ok(json!({"n": 1})));
}

#[tokio::test]
async fn what_expands_beyond_the_bound_is_refused() {
    let bomb = || "y".repeat(20_000_000);
    let body =
        legacy(move |_| coded("application/json", &bomb(), ("gzip", gzip), usize::MAX)).await;
    let stream = legacy(move |_| {
        let data = format!("data: {}", bomb());
        coded("text/event-stream", &data, ("deflate", zlib), usize::MAX)
    })
    .await;
    for (peer, what) in [(body, "a reply"), (stream, "an event")] {
        let error = result(&connect(&peer).await, "x").await.unwrap_err();
        let expected = format!("sent {what} of more than 1 MiB");
        says(&error, &["`remote`", &expected]);
    }
}

#[tokio::test]
async fn what_cannot_be_decoded_is_an_error_that_says_so() {
    let cut = |text: &[u8]| gzip(text)[..40].to_vec();
    let garbage = |_: &[u8]| vec![0xff; 40];
    let plain = |text: &[u8]| text.to_vec();
    let corrupt = "it is compressed otherwise than its `Content-Encoding` says, or incomplete";
    let unknown = "though Vary accepts no compression";
    let cases: [(&str, Compress, [&str; 2]); 7] = [
        ("br", plain, ["`br`", unknown]),
        ("zstd", plain, ["`zstd`", unknown]),
        ("gzip, br", plain, ["`gzip, br`", unknown]),
        ("gzip", plain, [corrupt; 2]),
        ("gzip", cut, [corrupt; 2]),
        ("deflate", garbage, [corrupt; 2]),
        ("deflate", cut, [corrupt; 2]),
    ];
    for (coding, compress, expected) in cases {
        for kind in ["application/json", "text/event-stream"] {
            let peer = legacy(move |seen| {
                let text = event(&seen.message(&json!({"text": long()})));
                coded(kind, &text, (coding, compress), 7)
            })
            .await;
            let error = result(&connect(&peer).await, "x").await.unwrap_err();
            says(&error, &["`remote`"]);
            says(&error, &expected);
        }
    }
}

#[tokio::test]
async fn byte_order_marks_names_that_are_no_codings_and_other_charsets_of_utf_8_are_ignored() {
    let replies: [fn(&ReceivedRequest, &str) -> Reply; 6] = [
        |_, text| Reply::new(200, "application/json", format!("\u{feff}{text}")),
        |_, text| Reply::events(format!("\u{feff}data: {text}\n\n")),
        |_, text| Reply::events(format!(": hi\n\ndata: \u{feff}{text}\n\n")),
        |_, text| Reply::new(200, "application/json; charset=iso-8859-1", text.to_owned()),
        |_, text| {
            let reply = Reply::new(200, "application/json", text.to_owned());
            reply.with_header("content-encoding", "utf-8")
        },
        |_, text| {
            let text = gzip(format!("\u{feff}{text}").as_bytes());
            Reply::new(200, "application/json", text).with_header("content-encoding", "gzip")
        },
    ];
    for (number, reply) in replies.into_iter().enumerate() {
        let peer = legacy(move |seen| {
            let text = seen.message(&json!({"text": "é"})).to_string();
            reply(seen, &text)
        })
        .await;
        let answer = result(&connect(&peer).await, "x").await;
        assert_eq!(answer, Ok(json!({"text": "é"})), "{number}");
    }
}

#[tokio::test]
async fn an_error_with_a_byte_order_mark_is_the_error_of_the_server() {
    let peer = legacy(|seen| {
        let error = json!({"code": -32602, "message": "no such item"});
        let text = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error});
        Reply::new(400, "application/json", format!("\u{feff}{text}"))
    })
    .await;
    let error = result(&connect(&peer).await, "x").await.unwrap_err();
    says(&error, &["-32602", "no such item"]);
}

#[tokio::test]
async fn an_answer_in_utf_16_is_an_error_that_names_it() {
    let peer = legacy(|seen| {
        let text = seen.message(&json!({})).to_string();
        let text: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        Reply::new(200, "application/json; charset=utf-16le", text)
    })
    .await;
    let error = result(&connect(&peer).await, "x").await.unwrap_err();
    says(&error, &["`remote`", "it is in the charset `utf-16le`"]);
}

#[tokio::test]
async fn an_answer_in_another_charset_is_an_error_that_names_it() {
    for kind in ["application/json", "text/event-stream"] {
        for charset in ["; charset=iso-8859-1", ";Charset=\"iso-8859-1\""] {
            let peer = legacy(move |seen| {
                let text = seen.message(&json!({"text": "caf?"})).to_string();
                let text = match kind {
                    "application/json" => text,
                    _ => format!("data: {text}\n\n"),
                };
                let mut text = text.into_bytes();
                let at = text.iter().position(|byte| *byte == b'?').unwrap();
                text[at] = 0xe9;
                Reply::new(200, "text/plain", text)
                    .with_header("content-type", format!("{kind}{charset}"))
            })
            .await;
            let error = result(&connect(&peer).await, "x").await.unwrap_err();
            let expected =
                "it is in the charset `iso-8859-1`, as its `Content-Type` says, and not in UTF-8";
            says(&error, &["`remote`", expected]);
        }
    }
}
