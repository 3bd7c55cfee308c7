//! The operator's page: any body for each of its paths that has one.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{Request, StatusCode};
use mcp_vary_config::{FileVariants, Source, VariantEdit};
use mcp_vary_gateway::{Environment, Gateway};
use mcp_vary_operator::{Page as _, PageAccess};
use mcp_vary_page::{
    DraftedVariant, GatewayPage, SetupProblem, VariantSource, WrittenRule, WrittenVariant,
};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::http_front::serve_mcp;

/// A page, and the gateway that it is of.
struct Shown {
    runtime: Runtime,
    _gateway: Arc<Gateway>,
    page: GatewayPage,
}

/// Whatever a page sends, it is answered, and reading it never panics.
pub fn page(data: &[u8]) {
    static SHOWN: OnceLock<Shown> = OnceLock::new();
    let Shown { runtime, page, .. } = SHOWN.get_or_init(Shown::open);
    for path in [
        "/api/explain",
        "/api/callers",
        "/api/call",
        "/api/draft",
        "/api/save",
    ] {
        let request = Request::post(path).body(Bytes::copy_from_slice(data));
        let request = request.expect("a request");
        let status = runtime
            .block_on(page.respond(request, PageAccess::Full))
            .status();
        // A panic where the page reads a gateway is answered so.
        assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{path}");
    }
}

impl Shown {
    fn open() -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime");
        let environment = Environment::new(|| 1_000_000, |bytes| bytes.fill(7));
        let text = FILE.replace("HOST", &serve_mcp().0.to_string());
        let file = Source::new("vary.yaml", &text).read(&|_| None);
        let config = file.expect("a file").into_config(environment);
        let gateway = runtime.block_on(Gateway::start(config));
        let gateway = gateway.expect("the server answers");
        let page = GatewayPage::new(&gateway, || 1)
            .with_calls(true)
            .with_writes(true);
        Self {
            runtime,
            page: page.with_variants(Arc::new(Written)),
            _gateway: gateway,
        }
    }
}

/// The variants of the file.
#[derive(Debug)]
struct Written;

impl VariantSource for Written {
    fn written(&self, _: &str) -> Result<Option<WrittenVariant>, String> {
        Ok(None)
    }

    fn save(
        &self,
        id: &str,
        value: &Value,
        clients: Option<&[String]>,
        _: &str,
    ) -> Result<(), String> {
        VariantEdit::new("vary.yaml", FILE, id, value, clients).map(drop)
    }

    fn undo(&self) -> Result<(), String> {
        Err("nothing was written".to_owned())
    }

    fn rules(&self) -> Result<Vec<WrittenRule>, String> {
        Ok(Vec::new())
    }

    fn directory(&self) -> Option<String> {
        None
    }

    fn problems(&self, _: &Gateway) -> Vec<SetupProblem> {
        Vec::new()
    }

    fn draft(
        &self,
        id: &str,
        value: Value,
        _: Option<&[String]>,
    ) -> Result<DraftedVariant, String> {
        let variants = FileVariants::read("vary.yaml", FILE).expect("a file");
        let draft = variants.draft(id, value)?;
        Ok(DraftedVariant {
            config: draft.config,
            yaml: draft.yaml,
            file: Err("this is not a file".to_owned()),
        })
    }
}

const FILE: &str = "servers: {places: {url: 'http://HOST/mcp'}}\nvariants: {few: {tools: ['*a*']}, standard: {}}\n";
