//! From the context to what the line editor needs: its options, the visible prompt, what `Tab` may offer and how
//! answers are styled. A copy is taken under a short lock; nothing here is held while a line is read.

use std::path::PathBuf;
use std::sync::Arc;

use super::completer::{Candidate, Snapshot};
use super::editor::{EditorOptions, Keybindings, LineRequest};
use super::files::Files;
use super::prompt_source::Prompts;
use super::table::State;
use super::{Repl, external_editor, line_prompt};
use crate::config::{self, AppConfig, KeyKind, RequestContext, Setting};
use crate::mcp::ServerStatus;
use crate::render::{Theme, Ui, Wrap};

/// How lines are edited, as configured.
pub(super) fn options(repl: &Repl) -> EditorOptions {
    let ctx = repl.ctx.read();
    let app = ctx.app();
    EditorOptions {
        keybindings: match app.keybindings {
            config::Keybindings::Emacs => Keybindings::Emacs,
            config::Keybindings::Vi => Keybindings::Vi,
        },
        history_file: Some(ctx.paths().history_dir().join("history.txt")),
        external_editor: external_editor::resolve(app.editor.as_deref(), &ctx.env().lookup()),
        color: repl.ui.is_colored(),
    }
}

/// The next line: its prompt and what can be completed in it.
pub(super) fn build(repl: &Repl) -> LineRequest {
    let (snapshot, templates, settings, env, cwd) = {
        let ctx = repl.ctx.read();
        let app = ctx.app();
        let templates = (app.left_prompt.clone(), app.right_prompt.clone());
        let settings = Settings {
            temperature: ctx.temperature(),
            top_p: ctx.top_p(),
            stream: app.stream,
            save: app.save,
        };
        (
            ctx.snapshot(),
            templates,
            settings,
            ctx.env().clone(),
            ctx.cwd().to_owned(),
        )
    };
    let color = repl.ui.is_colored();
    let variable = |name: &str| variable(&snapshot, &settings, name);
    let left = templates.0.as_deref().unwrap_or(line_prompt::DEFAULT_LEFT);
    let right = templates.1.as_deref().unwrap_or(line_prompt::DEFAULT_RIGHT);
    let home = env.get("HOME").map(PathBuf::from);
    LineRequest {
        left: line_prompt::render(left, &variable, color),
        right: line_prompt::render(right, &variable, color),
        snapshot: Arc::new(Snapshot {
            files: Some(Arc::new(Files { cwd, home })),
            prompts: Some(Arc::new(Prompts {
                ctx: Arc::clone(&repl.ctx),
            })),
            ..candidates(&snapshot)
        }),
    }
}

/// Settings a prompt can show.
struct Settings {
    temperature: Option<f64>,
    top_p: Option<f64>,
    stream: bool,
    save: bool,
}

/// A variable of the prompt's template.
fn variable(now: &config::Snapshot, settings: &Settings, name: &str) -> Option<String> {
    match name {
        "session" => now.session.clone(),
        "role" => now.role.clone(),
        "agent" => now.agent.clone(),
        "model" => now.model.as_ref().map(ToString::to_string),
        "client_name" => now.model.as_ref().map(|model| model.client.clone()),
        "model_name" => now.model.as_ref().map(|model| model.model.clone()),
        "dry_run" => now.dry_run.then(|| "true".to_owned()),
        "temperature" => settings.temperature.map(|value| value.to_string()),
        "top_p" => settings.top_p.map(|value| value.to_string()),
        "stream" => Some(settings.stream.to_string()),
        "save" => Some(settings.save.to_string()),
        "tools" => Some(now.enabled_tools.len().to_string()),
        "mcp_servers" => Some(now.enabled_servers.len().to_string()),
        _ => None,
    }
}

/// What availability depends on.
pub(super) fn state(ctx: &RequestContext) -> State {
    State {
        session: ctx.session().is_some(),
        role: ctx.role().is_some(),
        agent: ctx.agent().is_some(),
        exchange: !ctx.messages().is_empty(),
        servers: !ctx.registry().names().is_empty(),
    }
}

/// What can be completed without asking anybody.
fn candidates(now: &config::Snapshot) -> Snapshot {
    Snapshot {
        state: State {
            session: now.session.is_some(),
            role: now.role.is_some(),
            agent: now.agent.is_some(),
            exchange: now.has_answer,
            servers: !now.servers.is_empty(),
        },
        roles: now.roles().into_iter().map(Candidate::new).collect(),
        agents: now.agents().into_iter().map(Candidate::new).collect(),
        starters: (now.starters.iter().enumerate())
            .map(|(at, text)| Candidate::described((at + 1).to_string(), text))
            .collect(),
        sessions: now.sessions().into_iter().map(Candidate::new).collect(),
        macros: (now.macros().iter())
            .filter_map(|name| {
                let about = now.macro_description(name)?;
                Some(Candidate::described(name, about))
            })
            .collect(),
        models: (now.models.iter())
            .map(|model| Candidate::new(model.to_string()))
            .collect(),
        tools: tools(now),
        servers: servers(now),
        settings: settings(now),
        ..Snapshot::default()
    }
}

fn tools(now: &config::Snapshot) -> Vec<Candidate> {
    let tool = |name: &String| {
        let on = now.enabled_tools.contains(name);
        Candidate::described(name, if on { "on" } else { "off" })
    };
    let alias = |name: &String| Candidate::described(name, "alias");
    (now.tools.iter().map(tool))
        .chain(now.tool_aliases.iter().map(alias))
        .collect()
}

fn servers(now: &config::Snapshot) -> Vec<Candidate> {
    let server = |status: &ServerStatus| {
        let state = status.state.word();
        let about = match &status.description {
            Some(about) => format!("{state}: {about}"),
            None => state.to_owned(),
        };
        Candidate::described(status.name.as_str(), about)
    };
    let alias = |name: &String| Candidate::described(name, "alias");
    (now.servers.iter().map(server))
        .chain(now.server_aliases.iter().map(alias))
        .collect()
}

fn settings(now: &config::Snapshot) -> Vec<(Candidate, Vec<Candidate>)> {
    Setting::ALL
        .iter()
        .map(|spec| {
            let help = (AppConfig::keys().iter())
                .find(|key| key.name == spec.name)
                .map_or("", |key| key.help);
            let mut values: Vec<Candidate> = match spec.kind {
                KeyKind::Bool => ["true", "false"].map(Candidate::new).into(),
                KeyKind::Word(words) => words.iter().copied().map(Candidate::new).collect(),
                KeyKind::Names if spec.name == "enabled_mcp_servers" => servers(now),
                KeyKind::Names => tools(now),
                KeyKind::Text | KeyKind::Integer | KeyKind::Number | KeyKind::Structure => {
                    Vec::new()
                }
            };
            let general: &[(&str, &str)] = match spec.kind {
                KeyKind::Names => &[
                    ("all", "all of them"),
                    ("null", "none"),
                    ("default", "as configured"),
                ],
                _ => &[("null", "as configured")],
            };
            values.extend(
                general
                    .iter()
                    .map(|(word, help)| Candidate::described(*word, *help)),
            );
            (Candidate::described(spec.name, help), values)
        })
        .collect()
}

/// Shows answers as the settings in force say. A theme that is not known was warned about when it was read.
pub(super) fn style(ui: &Ui, app: &AppConfig) {
    let wrap = match app.wrap {
        config::Wrap::No => Wrap::No,
        config::Wrap::Auto => Wrap::Auto,
        config::Wrap::At(columns) => Wrap::Columns(columns),
    };
    let theme = (app.theme.as_deref())
        .and_then(|theme| theme.parse::<Theme>().ok())
        .unwrap_or_default();
    ui.set_style(app.highlight, wrap, theme);
}
