//! The page of one gateway: what is at which path.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::header::IF_NONE_MATCH;
use http::{Method, Request, StatusCode};
use mcp_vary_gateway::Gateway;
use mcp_vary_operator::{Command, Page, PageAccess, PageResponse};

use crate::assets;
use crate::call::{self, Calls};
use crate::catalog::{self, CountedCatalog};
use crate::draft::{self, VariantSource};
use crate::events::{self, Clock};
use crate::explain::{self, callers};
use crate::history::Histories;
use crate::query::parameter;
use crate::response::{PageAnswer, failure, json, not_allowed, protected, typed, unauthorized};
use crate::{experiments, recorded, review, suggest};

/// The page of a gateway.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use mcp_vary_gateway::Gateway;
/// use mcp_vary_operator::Operator;
/// use mcp_vary_page::GatewayPage;
///
/// fn show(gateway: &Arc<Gateway>, operator: &Operator, clock: fn() -> u64) {
///     operator.set_page(Arc::new(GatewayPage::new(gateway, clock)));
/// }
/// ```
#[derive(Debug)]
pub struct GatewayPage {
    /// The gateway owns the page.
    gateway: Weak<Gateway>,
    catalog: Arc<CountedCatalog>,
    histories: Arc<Histories>,
    clock: Clock,
    calls: Calls,
    may_write: bool,
    variants: Option<Arc<dyn VariantSource>>,
}

impl GatewayPage {
    /// The page of `gateway`, which records its last calls from now on. `clock` returns the microseconds since 1970-01-01 UTC.
    pub fn new(gateway: &Arc<Gateway>, clock: fn() -> u64) -> Self {
        gateway.record_calls();
        Self {
            gateway: Arc::downgrade(gateway),
            catalog: Arc::default(),
            histories: Arc::default(),
            clock,
            calls: Calls::new(false),
            may_write: false,
            variants: None,
        }
    }

    /// Whether the page may call tools. It cannot without this.
    #[must_use]
    pub const fn with_calls(mut self, are_allowed: bool) -> Self {
        self.calls = Calls::new(are_allowed);
        self
    }

    /// Whether the page may write variants into the configuration. It cannot without this.
    #[must_use]
    pub const fn with_writes(mut self, are_allowed: bool) -> Self {
        self.may_write = are_allowed;
        self
    }

    /// Shows the variants and rules as they are written, and drafts of them. There are none without this.
    #[must_use]
    pub fn with_variants(mut self, variants: Arc<dyn VariantSource>) -> Self {
        self.variants = Some(variants);
        self
    }

    /// Records the histories of experiments until the gateway is gone. Without this, they have points only of the times at which the page was open.
    pub fn record_experiments(&self) -> impl Future<Output = ()> + Send + 'static {
        experiments::record(
            Weak::clone(&self.gateway),
            Arc::clone(&self.histories),
            self.clock,
        )
    }

    async fn answer(&self, request: Request<Bytes>, access: PageAccess) -> PageAnswer {
        let path = request.uri().path();
        if let Some(asset) = assets::find(path) {
            return match *request.method() {
                Method::GET => typed(StatusCode::OK, asset.media_type, asset.text),
                _ => not_allowed(&Method::GET),
            };
        }
        if !path.starts_with(DATA) {
            let why = "there is nothing here; the page is at /, the status at /status";
            return failure(StatusCode::NOT_FOUND, why);
        }
        if access == PageAccess::None {
            return unauthorized();
        }
        let Some(data) = Data::at(path) else {
            return failure(StatusCode::NOT_FOUND, "the page has no such data");
        };
        let is_of_operator = matches!(
            data,
            Data::Call | Data::Retry | Data::Save | Data::Undo | Data::Recorded
        );
        if is_of_operator && access != PageAccess::Full {
            return failure(StatusCode::FORBIDDEN, ONLY_READS);
        }
        if *request.method() != data.method() {
            return not_allowed(&data.method());
        }
        if request.body().len() > MAX_BODY {
            let why = format!("the request is larger than {MAX_BODY} bytes");
            return failure(StatusCode::PAYLOAD_TOO_LARGE, &why);
        }
        match self.gateway.upgrade() {
            Some(gateway) => self.data(data, &gateway, &request, access).await,
            None => failure(StatusCode::SERVICE_UNAVAILABLE, "the gateway is closed"),
        }
    }

    /// The status, what the page may do (have servers tried, call tools, write variants), the names of API keys, and what failed since the start and lately.
    fn status(&self, gateway: &Gateway, access: PageAccess) -> PageAnswer {
        let mut status = serde_json::to_value(gateway.status()).unwrap_or_default();
        let may_call = self.calls.are_allowed() && access == PageAccess::Full;
        status["calls"] = may_call.into();
        let may_write = self.may_write && access == PageAccess::Full;
        status["writes"] = may_write.into();
        status["retries"] = (access == PageAccess::Full).into();
        status["keys"] = gateway.key_names().into();
        let failures = events::failures(gateway, self.clock);
        status["failures"] = serde_json::to_value(failures).unwrap_or_default();
        status["recent"] = serde_json::to_value(events::recent(gateway)).unwrap_or_default();
        json(&status)
    }

    /// What is about variants as they are written. `name` is the id of one, for a suggestion the name of a client.
    async fn variants(
        &self,
        data: Data,
        gateway: &Arc<Gateway>,
        name: String,
        body: Bytes,
        access: PageAccess,
    ) -> PageAnswer {
        let Some(variants) = self.variants.clone() else {
            return failure(StatusCode::NOT_FOUND, NO_VARIANTS);
        };
        let is_write = matches!(data, Data::Save | Data::Undo);
        if is_write && !self.may_write {
            return failure(StatusCode::FORBIDDEN, WRITES_ARE_OFF);
        }
        let (catalog, clock) = (Arc::clone(&self.catalog), self.clock);
        let answered = apart(gateway, move |gateway| match data {
            Data::Variant => draft::variant(&*variants, &name),
            Data::Suggest => {
                let reads_log = access == PageAccess::Full;
                suggest::respond(&*variants, gateway, &catalog, &name, clock, reads_log)
            }
            Data::Rules => draft::rules(&*variants),
            Data::Save => draft::save(&*variants, &body),
            Data::Undo => draft::answer_to_write(variants.undo()),
            _ => draft::respond(&*variants, gateway, &catalog, &body, clock),
        });
        let answer = answered.await;
        let Some(operator) = gateway.operator() else {
            return answer;
        };
        if !is_write || answer.status() != StatusCode::OK {
            return answer;
        }
        let reloaded = operator.run(Command::Reload).await;
        let is_used = reloaded.is_ok();
        let outcome = reloaded.unwrap_or_else(|error| error.to_string());
        json(&serde_json::json!({"isUsed": is_used, "outcome": outcome}))
    }

    async fn data(
        &self,
        data: Data,
        gateway: &Arc<Gateway>,
        request: &Request<Bytes>,
        access: PageAccess,
    ) -> PageAnswer {
        let query = request.uri().query().unwrap_or_default();
        let body = request.body().clone();
        match data {
            Data::Status => self.status(gateway, access),
            Data::Retry => retry(gateway, &parameter(query, "server")),
            Data::Catalog => {
                let known = request.headers().get(IF_NONE_MATCH).cloned();
                let catalog = Arc::clone(&self.catalog);
                apart(gateway, move |gateway| {
                    catalog.respond(gateway, known.as_ref())
                })
                .await
            }
            Data::Events => {
                let viewer = match access {
                    PageAccess::Read(reader) => Some(reader),
                    PageAccess::None | PageAccess::Full => None,
                };
                events::stream(gateway, viewer, self.clock)
            }
            Data::LastCalls => {
                let clock = self.clock;
                let read = move |gateway: &Gateway| events::last_calls(gateway, clock, access);
                apart(gateway, read).await
            }
            Data::Recorded => {
                let query = query.to_owned();
                apart(gateway, move |gateway| recorded::respond(gateway, &query)).await
            }
            Data::Review => {
                let source = self.variants.clone();
                let read = move |gateway: &Gateway| review::respond(gateway, source.as_deref());
                apart(gateway, read).await
            }
            Data::Experiments => experiments::respond(gateway, &self.histories, self.clock),
            Data::Explain => apart(gateway, move |gateway| explain::respond(gateway, &body)).await,
            Data::Callers => apart(gateway, move |gateway| callers::respond(gateway, &body)).await,
            Data::Tool => {
                let server = parameter(query, "server");
                let name = parameter(query, "name");
                apart(gateway, move |gateway| {
                    catalog::tool(gateway, &server, &name)
                })
                .await
            }
            Data::Call => match self.calls.call(gateway, &body).await {
                Ok(called) => apart(gateway, move |_| call::respond(&called)).await,
                Err((status, why)) => failure(status, &why),
            },
            Data::Suggest => {
                let client = parameter(query, "client");
                self.variants(data, gateway, client, body, access).await
            }
            Data::Variant | Data::Draft | Data::Rules | Data::Save | Data::Undo => {
                let id = parameter(query, "id");
                self.variants(data, gateway, id, body, access).await
            }
        }
    }
}

impl Page for GatewayPage {
    fn respond(&self, request: Request<Bytes>, access: PageAccess) -> PageResponse<'_> {
        Box::pin(async move { protected(self.answer(request, access).await) })
    }
}

/// What the scripts of the page ask for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Data {
    /// The status of the gateway.
    Status,
    /// Trying to reach a server.
    Retry,
    /// What each variant lists and costs.
    Catalog,
    /// The definitions of one tool.
    Tool,
    /// The calls of clients as they end.
    Events,
    /// The calls of clients that ended before.
    LastCalls,
    /// Earlier ones, which the audit log has.
    Recorded,
    /// What a client would get.
    Explain,
    /// Who may call a tool.
    Callers,
    /// What should go.
    Review,
    /// What clients get of a call.
    Call,
    /// How the arms of experiments compare.
    Experiments,
    /// A variant as it is written.
    Variant,
    /// What a change of a variant would list.
    Draft,
    /// A variant with the tools that a client called.
    Suggest,
    /// Writing a change of a variant.
    Save,
    /// Undoing the last of them.
    Undo,
    /// The rules as they are written.
    Rules,
}

impl Data {
    fn at(path: &str) -> Option<Self> {
        Some(match path.strip_prefix(DATA)? {
            "status" => Self::Status,
            "retry" => Self::Retry,
            "catalog" => Self::Catalog,
            "tool" => Self::Tool,
            "events" => Self::Events,
            "last-calls" => Self::LastCalls,
            "recorded" => Self::Recorded,
            "explain" => Self::Explain,
            "callers" => Self::Callers,
            "review" => Self::Review,
            "call" => Self::Call,
            "experiments" => Self::Experiments,
            "variant" => Self::Variant,
            "draft" => Self::Draft,
            "suggest" => Self::Suggest,
            "save" => Self::Save,
            "undo" => Self::Undo,
            "rules" => Self::Rules,
            _ => return None,
        })
    }

    const fn method(self) -> Method {
        match self {
            Self::Retry
            | Self::Explain
            | Self::Callers
            | Self::Call
            | Self::Draft
            | Self::Save
            | Self::Undo => Method::POST,
            _ => Method::GET,
        }
    }
}

/// The response to `POST /api/retry`, before the outcome is known.
fn retry(gateway: &Gateway, server: &str) -> PageAnswer {
    if gateway.retry_server(server) {
        return json(&serde_json::json!({}));
    }
    let why = format!("the configuration has no server `{server}` that can be tried");
    failure(StatusCode::NOT_FOUND, &why)
}

/// Reads much of a gateway where no request of a client waits for it.
async fn apart(
    gateway: &Arc<Gateway>,
    read: impl FnOnce(&Gateway) -> PageAnswer + Send + 'static,
) -> PageAnswer {
    let gateway = Arc::clone(gateway);
    let answer = tokio::task::spawn_blocking(move || read(&gateway)).await;
    answer.unwrap_or_else(|_| {
        failure(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the data could not be read",
        )
    })
}

/// Where the data is.
const DATA: &str = "/api/";
/// The most bytes of a request.
const MAX_BODY: usize = 1 << 20;
const ONLY_READS: &str = "an access token of `admin-readers` only reads; open the page with `vary open` to \
     try servers, call tools, save drafts and read the audit log";
const WRITES_ARE_OFF: &str = "saving from this page is off; write `admin-writes: on` into the configuration, and start Vary \
     again";
const NO_VARIANTS: &str = "the page of this gateway does not know how its variants are written";
