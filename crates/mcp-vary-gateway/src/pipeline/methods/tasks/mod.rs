//! Requests about tasks.

pub(crate) mod core_over_ext;
pub(crate) mod ext_over_core;
mod list;
mod subscriptions;

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::error_code::{METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY};
use mcp_vary::json;
use mcp_vary::json::edit;
use mcp_vary::task::Task;
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_catalog::item::ItemRef;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::shown::Tool;
use mcp_vary_results::link_index::LinkSource;
use mcp_vary_wire::era::Caching;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::task_dialect::{
    RELATED_TASK_META, TASKS_EXTENSION, TaskDialect, has_extension, translates_to_core,
};

use crate::pipeline::exchange::ResponsePlan;
use crate::pipeline::method_action::{MethodAction, TaskAction, method_not_found};
use crate::pipeline::methods::Dispatch;
use crate::pipeline::methods::{ForwardRequest, RequestContext};
use crate::tasks::proxy::EXT_OVER_CORE;
use crate::tasks::task_text::string;
use crate::tasks::{DialectPair, TaskIdCodec, TaskNotifier, split_prefix, upstream_id};
use mcp_vary_results::result_rewriter::ResultRewriter;

/// The task that a client's request names.
pub(super) struct FoundTask {
    pub(super) forms: DialectPair,
    /// The view under which it was created.
    pub(super) view: ViewIndex,
    pub(super) place: ItemRef,
    pub(super) task: Task,
    /// The tool whose call created it, if the view still has it.
    tool: Option<Arc<Tool>>,
}

/// Why a task was not found.
pub(super) struct TaskNotFound {
    why: Cow<'static, str>,
    /// Whether the id is valid, so that the task existed once.
    is_known: bool,
}

impl TaskNotFound {
    fn unknown() -> Self {
        Self {
            why: "it was not made here, or is gone".into(),
            is_known: false,
        }
    }

    /// The server of the task cannot be used; `is` gives the reason.
    fn from(task: &Task, is: &str) -> Self {
        Self {
            why: format!("server `{}`, which made it, {is}", task.server).into(),
            is_known: true,
        }
    }

    /// The gateway does not watch the task, and its server answered with the error `said`.
    pub(super) fn connection_lost(task: &Task, said: &str) -> Self {
        let why = "it was made at another gateway, before this one was started again, or its time is over";
        let server = &task.server;
        Self {
            why: format!("{why}; server `{server}` says: {said}").into(),
            is_known: true,
        }
    }

    pub(super) fn failure(&self) -> RpcError {
        RpcError::invalid_params(format!("Task not found: {}", self.why))
    }
}

impl RequestContext<'_> {
    /// The codec for the id of the task that a call of `tool` may create; `None` if it can create none. Removes the
    /// member `task` from the request if the server does not support it.
    ///
    /// > Receivers that do not declare the task capability for a request type MUST process requests of that type
    /// > normally, ignoring any task-augmentation metadata if present.
    /// > (MCP 2025-11-25, basic/utilities/tasks, "Task Support and Handling")
    ///
    /// For clients of the extension, sets `task` if the tool can only be called as a task of the core form.
    pub(crate) fn task_of_call(
        &mut self,
        view: ViewIndex,
        tool: &Tool,
    ) -> Option<Box<TaskIdCodec>> {
        let place = &tool.item_ref;
        let is_wished = self.request.params.members.contains("task");
        let core = is_wished && self.accepts_tasks(TaskDialect::Core);
        let takes_wishes = core && self.offers(place.server, TaskDialect::Core);
        let wish = match is_wished && !takes_wishes {
            true => self.request.params.members.remove("task"),
            false => None,
        };
        let extension = self.declares_tasks() && self.offers(place.server, TaskDialect::Extension);
        let form = match takes_wishes {
            true => Some(TaskDialect::Core),
            false => extension.then_some(TaskDialect::Extension),
        };
        if let Some(form) = form {
            let names = self.new_task_codec(DialectPair::both(form), view, place, None);
            return Some(Box::new(names));
        }
        if core && self.in_core_form(place.server) {
            let names = self.new_task_codec(DialectPair::CORE_OVER_EXT, view, place, None);
            return Some(Box::new(TaskIdCodec {
                ttl: wish.and_then(|wish| edit::get(&wish, "ttl")?.parse().ok()),
                connection: Some(Arc::clone(&self.class.source(place.server).connection)),
                ..names
            }));
        }
        let is_crossed = tool.needs_task
            && self.declares_tasks()
            && self.offers(place.server, TaskDialect::Core);
        is_crossed.then(|| {
            self.request.params.members.set("task", "{}");
            let services = &self.snapshot.services;
            let mark = Some(services.tasks.proxied.new_prefix());
            let names = self.new_task_codec(EXT_OVER_CORE, view, place, None);
            Box::new(TaskIdCodec {
                prefix: mark,
                ..names
            })
        })
    }

    /// Whether the server requires a task for calls of `tool`, and the client is modern and does not support tasks. If
    /// so, adds `task` to the request. Legacy clients get the server's error instead.
    pub(crate) fn as_task(&mut self, tool: &Tool) -> bool {
        let becomes = tool.needs_task
            && self.client.era() == Era::Modern
            && !self.declares_tasks()
            && self.offers(tool.item_ref.server, TaskDialect::Core);
        if becomes {
            self.request.params.members.set("task", "{}");
        }
        becomes
    }

    pub(super) fn new_task_codec(
        &self,
        forms: DialectPair,
        view: ViewIndex,
        place: &ItemRef,
        upstream_id: Option<String>,
    ) -> TaskIdCodec {
        TaskIdCodec {
            dialects: forms,
            services: Arc::clone(&self.snapshot.services.tasks),
            server: self.source_name(place.server),
            variant: self.snapshot.variant_id(view).clone(),
            principal: self.client.principal.clone(),
            tool: Arc::clone(&place.upstream_name),
            upstream_id,
            prefix: None,
            ttl: None,
            connection: None,
            max_lifetime: self.snapshot.config.limits.task_lifetime,
        }
    }

    /// Whether the client supports only core tasks, `server` only those of the extension, and the gateway translates.
    fn in_core_form(&self, server: ServerIndex) -> bool {
        let hello = self.catalog.handshake(server);
        // A client that declares the extension gets these tasks through it.
        let is_meant = self.accepts_tasks(TaskDialect::Core) && !self.declares_tasks();
        is_meant && hello.is_some_and(|hello| translates_to_core(hello))
    }

    /// Whether clients of `form` can get tasks of the server, translated or not.
    fn creates_tasks(&self, server: ServerIndex, form: TaskDialect) -> bool {
        let is_crossed = form == EXT_OVER_CORE.client && self.offers(server, EXT_OVER_CORE.server);
        let in_core_form = form == TaskDialect::Core && self.in_core_form(server);
        self.offers(server, form) || is_crossed || in_core_form
    }

    fn offers(&self, server: ServerIndex, form: TaskDialect) -> bool {
        let hello = self.catalog.handshake(server);
        hello.is_some_and(|hello| form.is_supported_by(hello))
    }

    /// Whether the client declares the extension, with this request or for its session.
    fn declares_tasks(&self) -> bool {
        match &self.client.class {
            // Servers create tasks only for the capabilities of the class, which they receive.
            Some(class) => has_extension(&class.capabilities),
            None => false,
        }
    }

    /// Whether the client supports tasks of this form.
    fn accepts_tasks(&self, form: TaskDialect) -> bool {
        match form {
            TaskDialect::Core => self.client.era() == Era::Legacy,
            TaskDialect::Extension => self.declares_tasks(),
        }
    }

    /// The forms of tasks that the client supports, the method exists in, and some server offers.
    ///
    /// # Errors
    ///
    /// When there are none.
    ///
    /// > Servers MUST return this error for non-declaring clients issuing `tasks/get`, `tasks/update`, and
    /// > `tasks/cancel` requests. (SEP-2663, "Protocol Errors")
    fn dialects(&self) -> Result<Vec<TaskDialect>, RpcError> {
        let has = |form: &TaskDialect| match self.action {
            MethodAction::Task(TaskAction::Update) => *form == TaskDialect::Extension,
            MethodAction::Task(TaskAction::Result) | MethodAction::ListTasks => {
                *form == TaskDialect::Core
            }
            _ => true,
        };
        // The gateway translates between the forms.
        let is_offered = |form: &TaskDialect| {
            let mut servers = self.catalog.servers();
            servers.any(|(server, _)| self.creates_tasks(server, *form))
        };
        let forms: Vec<_> = TaskDialect::BOTH
            .into_iter()
            .filter(has)
            .filter(is_offered)
            .collect();
        let known: Vec<_> = forms
            .iter()
            .copied()
            .filter(|form| self.accepts_tasks(*form))
            .collect();
        if !known.is_empty() {
            return Ok(known);
        }
        if self.client.era() == Era::Modern && forms.contains(&TaskDialect::Extension) {
            self.declares(TaskDialect::Extension)?;
        }
        Err(method_not_found(self.request.method))
    }

    /// Refuses clients that do not declare support for tasks of this form.
    pub(crate) fn declares(&self, form: TaskDialect) -> Result<(), RpcError> {
        if self.accepts_tasks(form) {
            return Ok(());
        }
        let data =
            format!(r#"{{"requiredCapabilities":{{"extensions":{{"{TASKS_EXTENSION}":{{}}}}}}}}"#);
        let why = format!("declare the extension `{TASKS_EXTENSION}` to ask about tasks");
        Err(RpcError::new(MISSING_CLIENT_CAPABILITY, why).with_data(data))
    }

    /// Whether some server offers tasks to clients of this form, translated or not.
    pub(crate) fn has_servers_with(&self, form: TaskDialect) -> bool {
        let mut servers = self.catalog.servers();
        servers.any(|(server, _)| self.creates_tasks(server, form))
    }

    /// Handles a request about a task: answers it here, or forwards it to the server that created the task.
    pub(crate) async fn task(mut self) -> Result<Dispatch, RpcError> {
        let forms = self.dialects();
        let id = self.request.params.string("taskId")?;
        if let Some(outcome) = self.completed_task(&id) {
            return outcome;
        }
        let task = self.open_task_id(&id);
        let forms = match (forms, &task) {
            // If the server was removed, no other may have the method. The error about the server explains more.
            (Err(failure), Err(gone)) if failure.code() == METHOD_NOT_FOUND && gone.is_known => {
                return Err(gone.failure());
            }
            (forms, _) => forms?,
        };
        let found = self.find_task(task.map_err(|gone| gone.failure())?, &forms)?;
        // A cancellation ends work, whatever the rate.
        if !matches!(self.action, MethodAction::Task(TaskAction::Cancel)) {
            self.count_read(found.view, found.place.server)?;
        }
        if found.forms.is_core_over_ext() {
            match self.action {
                MethodAction::Task(TaskAction::Result) => return self.task_result(&found, id),
                MethodAction::Task(TaskAction::Cancel) => return self.cancel_task(&found).await,
                _ => {}
            }
        } else if found.forms.differ() {
            return self.answer_proxied_task(found).await;
        }
        let mut downward = self.plan_of(&found);
        let (view, place, upstream_id) = (found.view, found.place, found.task.id);
        self.request
            .params
            .members
            .set("taskId", json::string(&upstream_id));
        let names = self.new_task_codec(found.forms, view, &place, Some(upstream_id.clone()));
        downward.task = Some(Box::new(names));
        let forwarding = ForwardRequest {
            server: place.server,
            name: Some(upstream_id),
            plan: downward,
            ..ForwardRequest::default()
        };
        self.forward(view, forwarding).await
    }

    /// Replaces the id of the related task in `_meta` by the server's.
    ///
    /// > All requests, responses, and notifications associated with a task MUST include the
    /// > `io.modelcontextprotocol/related-task` key in `_meta` (MCP 2025-11-25, basic/utilities/tasks)
    pub(crate) fn relate_upward(&mut self) {
        let Some(related) = self.request.params.meta.get(RELATED_TASK_META) else {
            return;
        };
        let keys = &self.snapshot.services.cursor_keys;
        let principal = self.client.sealed_principal();
        let upstream_task_id =
            string(related, "taskId").and_then(|id| upstream_id(keys, principal, &id));
        if let Some(upstream_task_id) = upstream_task_id {
            let related =
                edit::set(related, "taskId", &json::string(&upstream_task_id)).into_owned();
            self.request.params.meta.set(RELATED_TASK_META, related);
        }
    }

    /// The plan for the result of a task: the same as for the result of the tool call.
    pub(super) fn plan_of(&self, found: &FoundTask) -> ResponsePlan {
        let tool = found.tool.as_ref();
        ResponsePlan {
            origin: tool.map(|_| LinkSource::new(ListKind::Tools, &found.place.upstream_name)),
            names: tool.and_then(|tool| tool.name_rewriter.clone()),
            shape: tool.and_then(|tool| self.tool_result_shape(found.view, tool)),
            task: None,
            undeclared: None,
            caching: Caching::None,
            resource_rules: Arc::default(),
            renders_json: false,
        }
    }

    /// The task with this id, and its server.
    fn open_task_id(&self, id: &str) -> Result<(Task, ServerIndex), TaskNotFound> {
        let keys = &self.snapshot.services.cursor_keys;
        let task = Task::open(keys, self.client.sealed_principal(), id)
            .ok_or_else(TaskNotFound::unknown)?;
        let servers = &self.snapshot.config.servers;
        match ServerIndex::find(servers, |server| server.name == task.server) {
            Some(server) => Ok((task, server)),
            None => Err(TaskNotFound::from(
                &task,
                "is not behind this gateway any more",
            )),
        }
    }

    /// Finds the view, tool and dialects of a task, which has one of these `forms`.
    fn find_task(
        &self,
        (task, server): (Task, ServerIndex),
        forms: &[TaskDialect],
    ) -> Result<FoundTask, RpcError> {
        let view = self.view_of(&task);
        let view = view.ok_or_else(|| TaskNotFound::unknown().failure())?;
        let place = ItemRef {
            server,
            upstream_name: task.tool.as_str().into(),
        };
        let tools = self.catalog.view(ListKind::Tools, view);
        let tool = tools.and_then(|tools| tools.tool_for(&place)).cloned();
        // A task of a tool that access rules hide by now does not exist.
        if tool.is_none() && self.variant_set().access().is_some() {
            return Err(TaskNotFound::unknown().failure());
        }
        let forms = self.dialects_of(&task, server, forms)?;
        if let Some(record) = self.client.observation.record() {
            record.set_server(&self.server_name(server), Some(&task.id));
        }
        Ok(FoundTask {
            forms,
            view,
            place,
            task,
            tool,
        })
    }

    /// The dialects of a task of `server`, of which the client has these `forms`.
    fn dialects_of(
        &self,
        task: &Task,
        server: ServerIndex,
        forms: &[TaskDialect],
    ) -> Result<DialectPair, RpcError> {
        let is_unknown = self.catalog.handshake(server).is_none();
        // A server that is not connected gets the request anyway: the failure explains what is wrong.
        let is_offered = |form: TaskDialect| is_unknown || self.offers(server, form);
        let is_crossed = split_prefix(&task.id).0.is_some()
            && forms.contains(&EXT_OVER_CORE.client)
            && is_offered(EXT_OVER_CORE.server);
        let form = forms.iter().copied().find(|form| is_offered(*form));
        match form {
            _ if is_crossed => Ok(EXT_OVER_CORE),
            Some(form) => Ok(DialectPair::both(form)),
            None if forms.contains(&TaskDialect::Core) && self.in_core_form(server) => {
                Ok(DialectPair::CORE_OVER_EXT)
            }
            None => Err(TaskNotFound::from(task, "makes no tasks any more").failure()),
        }
    }

    /// Whether the id was sealed for the client, and access rules show the tool whose call created the task.
    pub(super) fn shows_task(&self, id: &str) -> bool {
        if self.variant_set().access().is_none() {
            let keys = &self.snapshot.services.cursor_keys;
            return Task::open(keys, self.client.sealed_principal(), id).is_some();
        }
        let Ok((task, server)) = self.open_task_id(id) else {
            return false;
        };
        let place = ItemRef {
            server,
            upstream_name: task.tool.as_str().into(),
        };
        let view = self.view_of(&task);
        let tools = view.and_then(|view| self.catalog.view(ListKind::Tools, view));
        tools.is_some_and(|tools| tools.tool_for(&place).is_some())
    }

    /// The notifier for a task of the extension, with its server, the dialects on both sides, and the server's id of
    /// the task.
    pub(crate) fn task_notifier(
        &self,
        id: &str,
    ) -> Option<(ServerIndex, TaskNotifier, DialectPair, String)> {
        let found = self.find_by(id)?;
        let mut downward = self.plan_of(&found);
        downward.origin = downward.origin.filter(|_| self.snapshot.follows_links());
        let teller = TaskNotifier {
            tool: Arc::clone(&found.place.upstream_name),
            // The notifications of a proxied task already have the client's form.
            dialects: DialectPair::both(TaskDialect::Extension),
            client_id: id.into(),
            server: self.source_name(found.place.server),
            // Modern clients know all kinds of content, and these notifications carry no progress.
            rewriter: ResultRewriter {
                origin: downward.origin,
                shape: downward.shape,
                names: downward.names,
                uris: self.changed_uris(found.view),
                ..ResultRewriter::default()
            },
            link_index: Arc::clone(&self.snapshot.services.exchange.link_index),
        };
        Some((found.place.server, teller, found.forms, found.task.id))
    }

    /// The task of the extension with this id, if it is found.
    pub(super) fn find_by(&self, id: &str) -> Option<FoundTask> {
        self.find_task(self.open_task_id(id).ok()?, &[TaskDialect::Extension])
            .ok()
    }

    /// The view under which a task was created (SV-28), if the client may still use its variant.
    fn view_of(&self, task: &Task) -> Option<ViewIndex> {
        let variant_set = self.variant_set();
        let index = variant_set.index_of(task.variant.as_str())?;
        let is_offered = !self.snapshot.config.variants || self.client.offers.allows(index);
        is_offered.then(|| variant_set.presented_view(index, self.client.presentation))
    }
}
