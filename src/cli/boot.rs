//! From the machine to a context: what every configured command needs, read once and in order. The only place that
//! decides when the person is asked about a directory's server file (`M-11`).

use std::path::PathBuf;
use std::sync::Arc;

use super::plan::{RoleChoice, SessionChoice, Setting, Workspace};
use super::supervise::Started;
use crate::chat::{Answer, Ask, Question};
use crate::config::{
    self, AgentLayer, AppConfig, Bootstrap, Env, McpFiles, Paths, RequestContext, Trust, Variables,
    WorkspaceFile,
};
use crate::function::Functions;
use crate::mcp::{McpConfig, McpFactory, McpRegistry, TransportSpec};
use crate::render::{Prompter, RenderOptions, Theme, Ui, Wrap};
use crate::turn;
use crate::utils::{self, Error, Result, log, text};

/// What a question indents its details by, and a column to spare.
const INDENT: usize = 4;
/// What would start must fit into this many lines, or it is not started: nobody reads more.
const MOST_LINES: usize = 200;
/// Terminals narrower than this break lines themselves.
const NARROWEST: usize = 20;

/// What is known before any file has been read.
pub(super) struct Machine {
    pub(super) env: Env,
    pub(super) paths: Paths,
    pub(super) cwd: PathBuf,
    pub(super) ui: Arc<Ui>,
    pub(super) ask: Arc<dyn Ask>,
    pub(super) started: Started,
    /// Somebody is there to be asked: stdin and stderr are terminals.
    pub(super) interactive: bool,
    pub(super) stdin_is_terminal: bool,
}

/// Who may be asked about a directory's server file that is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trusting {
    /// The person, when there is a terminal.
    Ask,
    /// Nobody: nothing will be started.
    Skip,
}

impl Machine {
    /// Looks around and starts the log. `ui` exists already: it prints whatever fails here.
    pub(super) fn look(ui: Arc<Ui>, started: Started, options: &RenderOptions) -> Result<Self> {
        let env = Env::process();
        let paths = Paths::resolve(&env)?;
        // A `.env` that cannot be read is an error where configuration counts, and only there: see `context`.
        let level = env.clone().with_file(&paths.env_file());
        let level = level.as_ref().unwrap_or(&env).get("COYOTE_LOG_LEVEL");
        let warning = log::init(paths.log_file(), level.as_deref());
        if let Some(warning) = warning {
            ui.warn(&warning);
        }
        log::hide(log::secret_values(utils::env::all()));
        let cwd = std::env::current_dir()
            .map_err(|error| Error::from(error).context("cannot tell the current directory"))?;
        Ok(Self {
            ask: Arc::new(Prompter::new(Arc::clone(&ui))),
            env,
            paths,
            cwd,
            ui,
            started,
            interactive: options.stdin_is_terminal && options.stderr_is_terminal,
            stdin_is_terminal: options.stdin_is_terminal,
        })
    }

    /// Reads the configuration and applies what was typed on top of it.
    pub(super) async fn context(
        &self,
        setting: &Setting,
        trusting: Trusting,
    ) -> Result<RequestContext> {
        let env = self.env.clone().with_file(&self.paths.env_file())?;
        let (app, warnings) = AppConfig::load(&self.paths, &env)?;
        self.warn(&warnings);
        self.style(&app);
        let no_workspace = app.no_workspace_mcp || setting.workspace == Workspace::Ignored;
        let files = config::load_mcp(&self.paths, &self.cwd, no_workspace, &env)?;
        let mut servers = self.trusted(files, trusting).await;
        self.warn(&servers.warnings);
        servers.scrub_env(&app.key_variables());
        hide_secrets(&app, &servers);
        let registry = McpRegistry::new(servers, McpFactory::new());
        let mut agent = None;
        if let Some(choice) = &setting.agent {
            let builtin = Variables::now(&env, &self.cwd);
            let load = turn::load_agent(
                &self.paths,
                &choice.name,
                &choice.variables,
                &builtin,
                self.ask.as_ref(),
            );
            let (layer, warnings) = load.await?;
            self.warn(&warnings);
            agent = Some(layer);
        }
        self.context_of(env, app, registry, agent, setting)
    }

    /// A context of these parts.
    pub(super) fn context_of(
        &self,
        env: Env,
        app: AppConfig,
        registry: Arc<McpRegistry>,
        agent: Option<AgentLayer>,
        setting: &Setting,
    ) -> Result<RequestContext> {
        self.started.add(&registry);
        let (functions, warnings) = Functions::load(&self.paths.functions_dir());
        self.warn(&warnings);
        let mut context = RequestContext::new(Bootstrap {
            paths: self.paths.clone(),
            app,
            env,
            mcp: registry,
            functions,
            cwd: self.cwd.clone(),
        });
        apply(&mut context, agent, setting)?;
        self.warn(&context.take_warnings());
        Ok(context)
    }

    pub(super) fn warn(&self, warnings: &[String]) {
        for warning in warnings {
            self.ui.warn(warning);
        }
    }

    fn style(&self, app: &AppConfig) {
        let wrap = match app.wrap {
            config::Wrap::No => Wrap::No,
            config::Wrap::Auto => Wrap::Auto,
            config::Wrap::At(width) => Wrap::Columns(width),
        };
        let theme = match app.theme.as_deref().unwrap_or_default().parse::<Theme>() {
            Ok(theme) => theme,
            Err(wrong) => {
                self.ui.warn(&format!("`theme`: {wrong}"));
                Theme::default()
            }
        };
        self.ui.set_style(app.highlight, wrap, theme);
    }

    /// The servers that count. A directory's file that nobody has decided about is asked about, or left out and named.
    async fn trusted(&self, mut files: McpFiles, trusting: Trusting) -> McpConfig {
        if let Some(file) = &mut files.workspace
            && file.trust == Trust::Unknown
            && trusting == Trusting::Ask
        {
            if self.interactive {
                self.decide(file).await;
            } else {
                self.ui.dim(&format!(
                    "`{}` is ignored: nobody has allowed its servers yet; start `coyote` here in a terminal to decide",
                    file.path.display()
                ));
            }
        }
        files.into_config()
    }

    /// Shows what the file would start, and remembers the answer. No answer decides nothing.
    async fn decide(&self, file: &mut WorkspaceFile) {
        let path = file.path.display().to_string();
        let lines = whole(&file.actions(), self.ui.width());
        if lines.len() > MOST_LINES {
            self.ui.warn(&format!(
                "`{path}` is ignored: what it would start is too long to be shown"
            ));
            return;
        }
        // Shown here and not as the question's details, of which only the first lines are shown.
        self.ui
            .line(&format!("`{path}` wants to use these MCP servers:"));
        for line in lines {
            self.ui.line(&format!("  {line}"));
        }
        let question = Question::Permission {
            title: "may they be started and reached from this directory?".to_owned(),
            details: Vec::new(),
        };
        let granted = match self.ask.ask(question).await {
            Answer::Yes | Answer::Always => true,
            Answer::No => false,
            Answer::Text(_)
            | Answer::Choices(_)
            | Answer::Cancelled
            | Answer::Interrupted
            | Answer::Unavailable => {
                return;
            }
        };
        if let Err(error) = file.decide(&self.paths, granted) {
            self.ui.error(&error);
        }
    }
}

/// Applies what was typed: the agent and its session first, since a role belongs to it, and the model last.
fn apply(context: &mut RequestContext, agent: Option<AgentLayer>, setting: &Setting) -> Result<()> {
    let session = agent.as_ref().and_then(|agent| agent.session.clone());
    if agent.is_some() {
        context.set_agent(agent);
    }
    match &setting.session {
        Some(SessionChoice::Temporary) => context.enter_session(None)?,
        Some(SessionChoice::Named(name)) => context.enter_session(Some(name))?,
        None => {
            if let Some(session) = session {
                context.enter_session(Some(&session))?;
            }
        }
    }
    match &setting.role {
        Some(RoleChoice::Named(name)) => context.use_role(name)?,
        Some(RoleChoice::Temporary(text)) => context.use_temp_role(text)?,
        None => {}
    }
    if let Some(model) = &setting.model {
        context.set_model(model)?;
    }
    Ok(())
}

/// Lines that fit `width` and hide nothing: what does not fit goes on in the next line, since a command whose end is
/// cut off is not a command one can agree to.
fn whole(actions: &[String], width: usize) -> Vec<String> {
    let width = width.saturating_sub(INDENT).max(NARROWEST);
    let mut lines = Vec::new();
    for action in actions {
        let mut line = String::new();
        for (_, cluster) in text::clusters(&text::sanitize_line(action)) {
            if text::width(&line) + text::width(cluster) > width {
                lines.push(std::mem::replace(&mut line, "    ".to_owned()));
            }
            line.push_str(cluster);
        }
        lines.push(line);
    }
    lines
}

/// Keeps configured secrets out of the log.
fn hide_secrets(app: &AppConfig, servers: &McpConfig) {
    let keys = app
        .clients
        .iter()
        .filter_map(|client| client.provider().ok()?.api_key.as_ref())
        .map(|key| key.expose().to_owned());
    log::hide(keys);
    for spec in servers.servers.values().flatten() {
        let values = match &spec.transport {
            TransportSpec::Stdio { env, .. } => env,
            TransportSpec::Http { headers, .. } => headers,
        };
        let values = values
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()));
        log::hide(log::secret_values(values));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_is_shown_to_its_end() {
        let action = format!("local: runs sh -c {} && rm -rf ~ 日本", "x".repeat(300));
        let lines = whole(&[action.clone(), "b: short".to_owned()], 60);
        assert!(
            lines.iter().all(|line| text::width(line) <= 56),
            "{lines:?}"
        );
        assert_eq!(lines.last().unwrap(), "b: short");
        let joined: String = lines
            .iter()
            .take(lines.len() - 1)
            .enumerate()
            .map(|(index, line)| {
                if index == 0 {
                    line.as_str()
                } else {
                    &line[4..]
                }
            })
            .collect();
        assert_eq!(joined, action);
    }

    #[test]
    fn what_could_act_on_the_terminal_is_gone() {
        let lines = whole(&["a: runs x\x1b[2K\ry\nz".to_owned()], 60);
        assert_eq!(lines.len(), 1);
        assert!(!lines[0].contains(['\x1b', '\r', '\n']), "{lines:?}");
    }
}
