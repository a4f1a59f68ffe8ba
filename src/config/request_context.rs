//! What is true now: model, role, session, servers, and the small transitions between such states. No printing, no
//! questions, no waiting: whoever changes something here says so to the person itself.
//!
//! How a request is made from it is in `request`; what it shows of itself in `info` and `snapshot`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::agent::AgentLayer;
use super::app_config::AppConfig;
use super::paths::{NameKind, Paths};
use super::request::{Turn, last_answer};
use super::role::{LayerSettings, Role, Variables};
use super::session::{Saved, Session, TEMP_SESSION};
use super::tool_scope::Unknown;
use super::vars::Env;
use crate::chat::Message;
use crate::function::Functions;
use crate::mcp::{ConnectedServer, McpRegistry};
use crate::utils::{Error, Result};

/// What a context starts from.
pub struct Bootstrap {
    /// Where files are.
    pub paths: Paths,
    /// What is configured.
    pub app: AppConfig,
    /// The variables.
    pub env: Env,
    /// The MCP servers.
    pub mcp: Arc<McpRegistry>,
    /// The local tools.
    pub functions: Functions,
    /// The directory coyote runs in.
    pub cwd: PathBuf,
}

/// A layer of the cascade, the most specific first (`H-35`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// The session.
    Session,
    /// The agent.
    Agent,
    /// The role.
    Role,
    /// Everything else.
    Global,
}

impl Layer {
    /// `session`, `agent`, `role` or `global`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Agent => "agent",
            Self::Role => "role",
            Self::Global => "global",
        }
    }
}

/// State and transitions. Shared as `Arc<parking_lot::RwLock<RequestContext>>`; no guard is held across an await.
pub struct RequestContext {
    pub(super) paths: Paths,
    pub(super) env: Env,
    pub(super) cwd: PathBuf,
    /// As loaded: what resetting a setting goes back to.
    pub(super) configured: AppConfig,
    /// With what was set since.
    pub(super) app: AppConfig,
    pub(super) registry: Arc<McpRegistry>,
    pub(super) functions: Functions,
    pub(super) role: Option<Role>,
    pub(super) agent: Option<AgentLayer>,
    /// The servers of a delegate, which holds them itself; the registry does not know that it does.
    pub(super) own_servers: Option<Vec<Arc<ConnectedServer>>>,
    pub(super) session: Option<Session>,
    /// What was said last without a session.
    pub(super) last: Vec<Message>,
    /// What is being said.
    pub(super) turn: Option<Turn>,
    warned: BTreeSet<Unknown>,
    warnings: Vec<String>,
}

impl RequestContext {
    /// A context without role or session.
    pub fn new(bootstrap: Bootstrap) -> Self {
        Self {
            paths: bootstrap.paths,
            env: bootstrap.env,
            cwd: bootstrap.cwd,
            configured: bootstrap.app.clone(),
            app: bootstrap.app,
            registry: bootstrap.mcp,
            functions: bootstrap.functions,
            role: None,
            agent: None,
            own_servers: None,
            session: None,
            last: Vec::new(),
            turn: None,
            warned: BTreeSet::new(),
            warnings: Vec::new(),
        }
    }

    /// A context like this one before anything was chosen or said: the same settings, servers and tools; no role,
    /// agent or session, and no messages. For isolated macros (`H-34`).
    #[must_use]
    pub fn fresh(&self) -> Self {
        let bootstrap = Bootstrap {
            paths: self.paths.clone(),
            app: self.app.clone(),
            env: self.env.clone(),
            mcp: Arc::clone(&self.registry),
            functions: self.functions.clone(),
            cwd: self.cwd.clone(),
        };
        Self {
            configured: self.configured.clone(),
            warned: self.warned.clone(),
            ..Self::new(bootstrap)
        }
    }

    /// Where files are.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The settings in force, but for what role and session set.
    pub fn app(&self) -> &AppConfig {
        &self.app
    }

    /// The variables.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The directory coyote runs in.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The MCP servers.
    pub fn registry(&self) -> &Arc<McpRegistry> {
        &self.registry
    }

    /// Every local tool, selected or not.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// What the person should know since this was last asked; each unknown name of a selection comes up once.
    pub fn take_warnings(&mut self) -> Vec<String> {
        for unknown in self.selection().unknown {
            if self.warned.insert(unknown.clone()) {
                self.warnings.push(unknown.message());
            }
        }
        std::mem::take(&mut self.warnings)
    }

    /// Adds warnings that came up elsewhere on this context's behalf.
    pub fn warn(&mut self, warnings: impl IntoIterator<Item = String>) {
        self.warnings.extend(warnings);
    }

    // Layers.

    /// The layer that settings change.
    pub fn active_layer(&self) -> Layer {
        if self.session.is_some() {
            Layer::Session
        } else if self.agent.is_some() {
            Layer::Agent
        } else if self.role.is_some() {
            Layer::Role
        } else {
            Layer::Global
        }
    }

    /// The settings of the active layers but the global one, the most specific first.
    pub(super) fn layer_settings(&self) -> impl Iterator<Item = &LayerSettings> {
        let session = self.session.as_ref().map(|session| &session.settings);
        let agent = self.agent.as_ref().map(|agent| &agent.settings);
        let role = self.role().map(|role| &role.settings);
        [session, agent, role].into_iter().flatten()
    }

    fn active_settings(&mut self) -> Option<&mut LayerSettings> {
        if let Some(session) = self.session.as_mut() {
            return Some(&mut session.settings);
        }
        if let Some(agent) = self.agent.as_mut() {
            return Some(&mut agent.settings);
        }
        self.role.as_mut().map(|role| &mut role.settings)
    }

    /// Changes the settings of the active layer, unless that is the global one: then the change comes back.
    pub(super) fn change_layer<C: FnOnce(&mut LayerSettings)>(&mut self, change: C) -> Option<C> {
        let Some(settings) = self.active_settings() else {
            return Some(change);
        };
        let before = settings.clone();
        change(settings);
        let changed = *settings != before;
        if let Some(session) = self.session.as_mut().filter(|_| changed) {
            session.touch();
        }
        None
    }

    /// The role in force: the session's while there is one.
    pub fn role(&self) -> Option<&Role> {
        match &self.session {
            Some(session) => session.role(),
            None => self.role.as_ref(),
        }
    }

    /// The agent in force.
    pub fn agent(&self) -> Option<&AgentLayer> {
        self.agent.as_ref()
    }

    /// Puts an agent's layer in or takes it out.
    pub fn set_agent(&mut self, agent: Option<AgentLayer>) {
        self.agent = agent;
        if self.session.is_none() {
            self.last = Vec::new(); // another's words are no context for it
        }
    }

    /// Leaves the agent.
    ///
    /// # Errors
    /// There is none.
    pub fn exit_agent(&mut self) -> Result<()> {
        if self.agent.is_none() {
            return Err(Error::user("no agent is active"));
        }
        self.set_agent(None);
        Ok(())
    }

    /// A context for a delegate of this one: the same configuration and the same tools to choose from, and nothing
    /// of what was said or switched here (`H-33`).
    pub fn for_delegate(&self, agent: AgentLayer) -> Self {
        let mut delegate = Self::new(Bootstrap {
            paths: self.paths.clone(),
            app: self.configured.clone(),
            env: self.env.clone(),
            mcp: Arc::clone(&self.registry),
            functions: self.functions.clone(),
            cwd: self.cwd.clone(),
        });
        // A server found on this machine is a client here only.
        delegate.app.clients.clone_from(&self.app.clients);
        delegate.app.save = false;
        delegate.agent = Some(agent);
        delegate.own_servers = Some(Vec::new());
        delegate
    }

    /// Gives a delegate the servers it acquired; the registry is not asked for any.
    pub fn set_own_servers(&mut self, servers: Vec<Arc<ConnectedServer>>) {
        self.own_servers = Some(servers);
    }

    /// Whether the servers are this context's own rather than the registry's.
    pub fn owns_servers(&self) -> bool {
        self.own_servers.is_some()
    }

    /// The session, while there is one.
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Takes on a role, for the session while there is one.
    ///
    /// # Errors
    /// There is none of that name, or its file is wrong.
    pub fn use_role(&mut self, name: &str) -> Result<()> {
        let (role, warnings) = Role::load(&self.paths, name)?;
        self.warnings.extend(warnings);
        self.put_role(role);
        Ok(())
    }

    /// Takes on a role that consists of these words.
    ///
    /// # Errors
    /// There are none.
    pub fn use_temp_role(&mut self, prompt: &str) -> Result<()> {
        if prompt.trim().is_empty() {
            return Err(Error::user("a role needs words"));
        }
        self.put_role(Role::temporary(prompt.trim()));
        Ok(())
    }

    fn put_role(&mut self, role: Role) {
        let role = role.interpolated(&self.variables());
        match self.session.as_mut() {
            Some(session) => {
                // The session's model is the one it happened to begin with; a role that names one means it.
                if role.settings.model.is_some() {
                    session.settings.model = None;
                }
                session.set_role(Some(role));
            }
            None => self.role = Some(role),
        }
    }

    /// What `{{__name__}}` stands for now.
    pub fn variables(&self) -> Variables {
        Variables::now(&self.env, &self.cwd)
    }

    /// Puts back a role that was in force before, or none, as it was: nothing is read anew.
    pub fn restore_role(&mut self, role: Option<Role>) {
        match self.session.as_mut() {
            Some(session) => session.set_role(role),
            None => self.role = role,
        }
    }

    /// Leaves the role.
    ///
    /// # Errors
    /// There is none.
    pub fn exit_role(&mut self) -> Result<()> {
        if self.role().is_none() {
            return Err(Error::user("no role is active"));
        }
        match self.session.as_mut() {
            Some(session) => session.set_role(None),
            None => self.role = None,
        }
        Ok(())
    }

    /// Writes the role in force with its present settings, under `name` or its own; returns the file. Its words are
    /// those of its file, so that `{{…}}` stays.
    ///
    /// # Errors
    /// No role is active, it has no name yet, or the file cannot be written.
    pub fn save_role(&mut self, name: Option<&str>) -> Result<PathBuf> {
        let role = self
            .role()
            .ok_or_else(|| Error::user("no role is active"))?;
        let name = match name {
            Some(name) => name.to_owned(),
            None if role.is_temporary() => {
                return Err(Error::user("the role has no name yet").hint("`.save role NAME`"));
            }
            None => role.name().to_owned(),
        };
        let role = role.clone().renamed(&name);
        let file = role.save(&self.paths, &name)?;
        self.put_role(role);
        Ok(file)
    }

    /// Enters a session: the saved one of that name, or a new one; without a name, one that has none yet.
    ///
    /// # Errors
    /// Another session is active, or the file cannot be read.
    pub fn enter_session(&mut self, name: Option<&str>) -> Result<()> {
        if let Some(session) = &self.session {
            return Err(
                Error::user(format!("session `{}` is active", session.name()))
                    .hint("`.exit session` leaves it"),
            );
        }
        let (mut session, role_name) =
            Session::load_or_new(&self.paths, name.unwrap_or(TEMP_SESSION))?;
        session.interpolate_role(&self.variables());
        let is_new = session.is_empty() && session.role().is_none() && role_name.is_none();
        if let Some(role_name) = role_name {
            if let Ok((role, warnings)) = Role::load(&self.paths, &role_name) {
                self.warnings.extend(warnings);
                session.restore_role(role.interpolated(&self.variables()));
            } else {
                self.warnings.push(format!(
                    "session `{}` has the role `{role_name}`, which is not there",
                    session.name()
                ));
                session.lose_role(role_name);
            }
        } else if is_new && let Some(role) = self.role.clone() {
            session.restore_role(role);
        }
        self.session = Some(session);
        self.turn = None;
        Ok(())
    }

    /// Whether leaving the session keeps it; `None`: the person decides, or nothing is left to keep.
    pub fn session_fate(&self) -> SessionFate {
        let Some(session) = &self.session else {
            return SessionFate::Nothing;
        };
        if !session.is_dirty()
            || (session.is_empty() && session.path().is_none_or(|path| !path.exists()))
        {
            return SessionFate::Nothing;
        }
        // Trying something out leaves no trace.
        if self.app.dry_run && !session.has_new_messages() {
            return SessionFate::Nothing;
        }
        match session.keeps(self.app.save_session) {
            Some(true) => SessionFate::Save,
            Some(false) => SessionFate::Drop,
            None => SessionFate::Ask,
        }
    }

    /// Writes the session, under `name` or its own; one without a name gets one from how it began.
    ///
    /// # Errors
    /// No session is active, or the file cannot be written.
    pub fn save_session(&mut self, name: Option<&str>) -> Result<Saved> {
        let session = self.session.as_mut().ok_or_else(no_session)?;
        let own = match name {
            Some(name) => Some(name.to_owned()),
            None if session.is_temporary() => Some(session.auto_name(chrono::Local::now())),
            None => None,
        };
        session.save(&self.paths, own.as_deref())
    }

    /// Leaves the session without saving; the role from before it is in force again.
    ///
    /// # Errors
    /// None is active.
    pub fn exit_session(&mut self) -> Result<()> {
        self.session.take().map(drop).ok_or_else(no_session)
    }

    /// Forgets what the session said; its settings and its role stay.
    ///
    /// # Errors
    /// None is active.
    pub fn empty_session(&mut self) -> Result<()> {
        let session = self.session.as_mut().ok_or_else(no_session)?;
        session.set_messages(Vec::new());
        Ok(())
    }

    /// Replaces the transcript: by a summary of it, or by what it was before.
    pub fn replace_messages(&mut self, messages: Vec<Message>) {
        match self.session.as_mut() {
            Some(session) => session.set_messages(messages),
            None => self.last = messages,
        }
    }

    /// Reads a session that was edited as text, in place of the one that is active.
    ///
    /// # Errors
    /// None is active, or the text is not a session.
    pub fn replace_session_text(&mut self, text: &str) -> Result<()> {
        let session = self.session.as_mut().ok_or_else(no_session)?;
        let file = session
            .path()
            .map_or_else(|| PathBuf::from(session.name()), Path::to_path_buf);
        let (edited, role) = Session::parse(session.name(), text, &file)?;
        let same_role = session
            .role()
            .is_some_and(|old| Some(old.name()) == role.as_deref());
        session.settings = edited.settings.clone();
        session.save_session = edited.save_session;
        session.set_messages(edited.messages().to_vec());
        if !same_role {
            session.set_role(edited.role().cloned());
            if let Some(role) = role {
                self.use_role(&role)?;
            }
        }
        Ok(())
    }

    /// Starts as a prelude says: `role:NAME`, `session:NAME`, or `SESSION:ROLE`.
    ///
    /// # Errors
    /// It is none of these, or names what is not there.
    pub fn apply_prelude(&mut self, prelude: &str) -> Result<()> {
        let prelude = prelude.trim();
        if prelude.is_empty() {
            return Ok(());
        }
        match prelude.split_once(':') {
            Some(("role", name)) => self.use_role(name.trim()),
            Some(("session", name)) => self.enter_session(Some(name.trim())),
            Some((session, role)) => {
                self.enter_session(Some(session.trim()))?;
                self.use_role(role.trim())
            }
            None => Err(
                Error::config(format!("the prelude `{prelude}` means nothing"))
                    .hint("write `role:NAME` or `session:NAME`"),
            ),
        }
    }

    /// The last answer of the model, for `.copy`.
    pub fn last_answer(&self) -> Option<&str> {
        last_answer(self.messages())
    }
}

/// What becomes of a session that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionFate {
    /// Nothing: there is none, or its file has everything.
    Nothing,
    /// It is saved.
    Save,
    /// It is dropped.
    Drop,
    /// The person is asked; with nobody to ask, a session that has a name is saved.
    Ask,
}

fn no_session() -> Error {
    Error::user("no session is active").hint("`.session NAME` starts one")
}

/// Removes a role's file.
///
/// # Errors
/// There is none of that name.
pub fn remove_role(paths: &Paths, name: &str) -> Result<()> {
    let file = paths.role(name)?;
    std::fs::remove_file(&file).map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            Error::user(format!(
                "there is no {} file `{name}`",
                NameKind::Role.as_str()
            ))
            .hint("`.list roles` shows them; built-in roles have no file")
        } else {
            Error::new(crate::utils::ErrorKind::Internal, error)
                .context(format!("cannot remove `{}`", file.display()))
        }
    })
}

#[cfg(test)]
#[path = "request_context_tests.rs"]
mod tests;
