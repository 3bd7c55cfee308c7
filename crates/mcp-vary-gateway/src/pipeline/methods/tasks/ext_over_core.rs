//! Clients of the extension before servers of the core form.
//!
//! In the extension the server decides what becomes a task. For a server of the core form the gateway speaks: what it
//! can only do as a task becomes one, and everything else is called as ever.

use std::sync::{Arc, Weak};

use mcp_vary::json;
use mcp_vary::json::edit;
use mcp_vary_upstream::{CallerId, Request, SupervisedConnection};
use mcp_vary_wire::era::{self, UpstreamContext};
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Revision;

use crate::mrtr::{Bounds, read_responses};
use crate::pipeline::exchange::{Finish, Retelling};
use crate::pipeline::methods::tasks::{Found, Gone};
use crate::pipeline::methods::{Call, Forwarding};
use crate::pipeline::router::{Action, Outcome, TaskAction};
use crate::pool::InUse;
use crate::pool::dedicated::Held;
use crate::session::Session;
use crate::session::client::Client;
use crate::tasks::parted;
use crate::tasks::proxy::{Allowed, CROSSED, Maker, Road, Watched};
use crate::tasks::{Forms, TaskNames, Teller};

impl TaskNames {
    /// Whether a task that its server makes has to be watched for its client.
    fn is_watched(&self) -> bool {
        self.forms == CROSSED
    }

    /// Watches the task `own`, which `result` says was made; what its client is told.
    ///
    /// # Errors
    ///
    /// When it cannot be watched, or nobody could ask for it.
    pub(crate) fn watch(
        &self,
        result: &str,
        own: &str,
        client: &Client,
        retelling: impl FnOnce() -> Retelling,
        road: Road,
    ) -> Result<String, RpcError> {
        let sealed = self.sealed(own).ok_or_else(|| self.too_long(own))?;
        let teller = |sealed: &str| Teller {
            sealed: sealed.into(),
            retelling: retelling(),
            server: Arc::clone(&self.server),
            links: Arc::clone(&self.lasting.links),
            forms: Forms::both(CROSSED.client),
        };
        let session = client.session.as_ref();
        let session = session.map(|session| (Arc::downgrade(session), teller(&sealed)));
        let maker = Maker::of(client, session);
        let key = (Arc::clone(&self.server), self.inner(own).into());
        let task = edit::get(result, "task").unwrap_or("{}");
        let watched = Watched::begin((key, own), task, maker, road, &self.lasting)?;
        let made = watched.with_ttl(&self.forms.made(result)).into_owned();
        Ok(self.named(&made).into_owned())
    }
}

impl Maker {
    fn of(client: &Client, session: Option<(Weak<Session>, Teller)>) -> Self {
        Self {
            whose: (client.principal(), client.connection),
            client: client.id,
            askable: client.askable(),
            session,
        }
    }
}

impl Call<'_> {
    /// The way to the server of a task that may come of the request, where that has to be watched.
    pub(crate) fn road_of_task(
        &self,
        line: &Arc<SupervisedConnection>,
        finish: &Finish,
    ) -> Option<Box<Road>> {
        let names = finish.downward.task.as_ref()?;
        let is_watched = names.is_watched() && matches!(self.action, Action::Call);
        is_watched.then(|| {
            let road = Road::by(line, self.allowed());
            Box::new(road.with_progress(finish.progress.clone()))
        })
    }

    fn allowed(&self) -> Allowed {
        let limits = &self.gateway.config.limits;
        Allowed {
            bounds: Bounds::of(limits),
            lifetime: limits.task_lifetime,
            kept: limits.result_store,
        }
    }

    /// Answers a client of the extension about a task of the core form.
    pub(super) async fn crossed_task(mut self, found: Found) -> Result<Outcome, RpcError> {
        let lasting = Arc::clone(&self.gateway.lasting);
        let (_, own) = parted(&found.task.id);
        self.asked.params.members.set("taskId", json::string(own));
        let responses = self.asked.params.members.remove("inputResponses");
        let params = self.params_about(&found);
        let watched = self.watched(&found, &params).await?;
        match self.action {
            Action::Task(TaskAction::Update) => {
                let responses = read_responses(responses.as_deref())?;
                watched.answer(&responses, &lasting);
                Ok(self.answer("{}"))
            }
            Action::Task(TaskAction::Cancel) => {
                watched.cancel(Some(params), &lasting).await?;
                Ok(self.answer("{}"))
            }
            _ => {
                let stands = watched.stands(params, &lasting).await;
                let stands = stands.map_err(|failure| self.in_its_words(&found, failure))?;
                self.told_of(&found, &stands)
            }
        }
    }

    /// How a task stands, as the client is told it.
    fn told_of(&self, found: &Found, stands: &str) -> Result<Outcome, RpcError> {
        let mut downward = self.downward_of(found);
        downward.task = Some(Box::new(self.names_of(found)));
        let mut forwarding = Forwarding {
            server: found.place.server,
            downward,
            ..Forwarding::default()
        };
        let finish = self.finish(found.variant, &mut forwarding)?;
        Ok(Outcome::Done(finish.task(stands, &self.gateway.lasting)))
    }

    /// What the client calls a task that is said in its own form already.
    fn names_of(&self, found: &Found) -> TaskNames {
        let (mark, own) = parted(&found.task.id);
        let forms = Forms::both(CROSSED.client);
        let names = self.names(forms, found.variant, &found.place, Some(own.to_owned()));
        TaskNames {
            mark: mark.map(str::to_owned),
            ..names
        }
    }

    fn in_its_words(&self, found: &Found, mut failure: RpcError) -> RpcError {
        if let Some(message) = self.names_of(found).in_words(failure.message()) {
            failure.set_message(message);
        }
        failure
    }

    /// The parameters of the client's request, as the server of the task gets them.
    fn params_about(&mut self, found: &Found) -> String {
        let told = &self.catalog.snapshots[found.place.server];
        let revision = told.handshake.as_ref().map(|hello| hello.revision);
        let upward = UpstreamContext {
            revision: revision.unwrap_or(Revision::V2025_11_25),
            capabilities: "{}",
            progress_token: None,
            log_level: None,
        };
        era::to_upstream_params(&mut self.asked.params, &upward)
    }

    /// Whether a task is watched, from now on if its server still knows it.
    pub(crate) async fn is_watched(&self, id: &str) -> bool {
        let Some(found) = self.found_by(id) else {
            return false;
        };
        let (_, own) = parted(&found.task.id);
        let params = format!(r#"{{"taskId":{}}}"#, json::string(own));
        self.watched(&found, &params).await.is_ok()
    }

    /// The task, watched: since it was made, or from now on if its server still knows it.
    async fn watched(&self, found: &Found, params: &str) -> Result<Arc<Watched>, RpcError> {
        let lasting = &self.gateway.lasting;
        let server = self.server_name(found.place.server);
        let key = (server, Arc::from(found.task.id.as_str()));
        if let Some(watched) = lasting.watches.get(&key) {
            return Ok(watched);
        }
        let source = &self.class.sources()[found.place.server];
        let alone = self.alone(found.place.server).await?;
        let line = Arc::clone(alone.as_ref().map_or(&source.line, Held::line));
        let road = Road::by(&line, self.allowed()).again();
        let turn = line.acquire().await?;
        let mut request = Request::new("tasks/get", Some(params.to_owned()));
        request.caller = Some(CallerId(self.client.id));
        let exchange = line.ready().await?.request(request).await?;
        let answer = exchange.answer().await?;
        drop(turn);
        if let Some(alone) = &alone {
            alone.settle();
        }
        let task = answer.outcome().map_err(|error| {
            let said = self.in_its_words(found, RpcError::from_upstream_or_internal(error));
            Gone::lost(&found.task, said.message()).failure()
        })?;
        let road = road.held_by(alone, Some(InUse::new(&self.class)));
        let (_, own) = parted(&found.task.id);
        let session = None;
        Watched::begin(
            (key, own),
            task,
            Maker::of(self.client, session),
            road,
            lasting,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn has_parts(id: &str, mark: Option<&str>, own: &str) {
        assert_eq!(parted(id), (mark, own));
    }

    #[test]
    fn an_id_is_parted_where_the_gateway_joined_it() {
        has_parts("@7b1.0@job-1", Some("@7b1.0@"), "job-1");
        has_parts("@7b1.0@", Some("@7b1.0@"), "");
        has_parts("@7b1.0@@1.2@x", Some("@7b1.0@"), "@1.2@x");
        for own in [
            "job-1",
            "",
            "@",
            "@@x",
            "@a@b",
            "@a.@b",
            "@g.1@b",
            "ada@example.org@x",
        ] {
            has_parts(own, None, own);
        }
    }
}
