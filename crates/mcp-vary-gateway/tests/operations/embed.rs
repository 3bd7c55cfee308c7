//! The example of a program that contains the gateway, `examples/embed.rs`.

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::*;

#[path = "../../examples/embed.rs"]
#[expect(dead_code, reason = "its `main` waits for Ctrl-C")]
mod example;

async fn tools(http: &mut RawHttp, variant: &str) -> Value {
    let list = modern(json!(variant), "tools/list", json!({}), &json!({}));
    let path = format!("POST /mcp/v/{variant} HTTP/1.1");
    http.ask(&HttpRequest::modern(&list).line(&path))
        .await
        .json()
}

#[tokio::test]
async fn the_embedded_gateway_serves_both_variants_until_it_is_stopped() {
    let server = places_server::start(Era::Modern).await;
    let config = example::configure(Target::http(server.url.clone())).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let clients = async {
        let mut http = RawHttp::connect(address).await;
        let everything = tools(&mut http, "everything").await;
        assert_eq!(names(&everything).len(), 10);
        let reviewer = tools(&mut http, "reviewer").await;
        assert_eq!(names(&reviewer), ["odd", "bound"]);
        stop.cancel();
    };
    let running = example::run(config, listener, stop.clone().cancelled_owned());
    let (ended, ()) = soon(async { tokio::join!(running, clients) }).await;
    assert!(ended.is_ok(), "{ended:?}");
}
