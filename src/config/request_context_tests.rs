//! Tests of the module beside.

use super::*;
use crate::config::testing::Home;
use crate::config::{Choice, Input, Setting};

const REVIEWER: &str = include_str!("../../tests/data/home/roles/reviewer.md");
const BUGFIX: &str = include_str!("../../tests/data/home/sessions/bugfix.yaml");

fn samples() -> Home {
    let home = Home::new();
    home.write("roles/reviewer.md", REVIEWER)
        .write("sessions/bugfix.yaml", BUGFIX);
    home
}

fn servers(context: &RequestContext) -> Vec<String> {
    context
        .selection()
        .servers
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn talk(context: &mut RequestContext, text: &str) -> Option<Saved> {
    context.begin(&Input::from_str(text)).unwrap();
    context.record(Message::assistant("ja"));
    context.commit().unwrap()
}

#[test]
fn a_saved_session_brings_its_role_its_servers_and_its_history() {
    let home = samples();
    let mut context = home
        .context("mapping_mcp_servers: {code: 'github, local git'}\nmapping_tools: {fs: fs_cat}");
    context.enter_session(Some("bugfix")).unwrap();
    assert!(context.take_warnings().is_empty());
    assert_eq!(context.role().unwrap().name(), "reviewer");
    assert!(
        context
            .system()
            .unwrap()
            .starts_with("You review changes on ")
    );
    assert_eq!(
        context.temperature(),
        Some(0.1),
        "the session's before the role's"
    );
    assert_eq!(
        servers(&context),
        ["docs"],
        "the session's before the role's"
    );
    assert_eq!(context.messages().len(), 6);
    let request = context.request(&Input::from_str("weiter")).unwrap();
    assert_eq!(request.messages.get(..6).unwrap(), context.messages());
    assert_eq!(request.messages.last(), Some(&Message::user("weiter")));
    // Leaving and coming back changes nothing.
    let before = context.messages().to_vec();
    talk(&mut context, "weiter");
    context.exit_session().unwrap();
    assert!(context.role().is_none() && context.messages().is_empty());
    context.enter_session(Some("bugfix")).unwrap();
    assert_eq!(context.messages().get(..6).unwrap(), before);
    assert_eq!(
        context.messages().len(),
        8,
        "`save_session: true` wrote the turn"
    );
}

#[test]
fn a_session_whose_role_is_gone_warns_and_keeps_its_name() {
    let home = Home::new();
    home.write("sessions/bugfix.yaml", BUGFIX);
    let mut context = home.context("");
    context.enter_session(Some("bugfix")).unwrap();
    assert!(context.role().is_none());
    assert!(
        context
            .take_warnings()
            .iter()
            .any(|warning| warning.contains("`reviewer`"))
    );
    assert!(
        context
            .session()
            .unwrap()
            .to_text()
            .unwrap()
            .contains("role_name: reviewer")
    );
}

#[test]
fn a_new_session_takes_the_role_along_and_gives_it_back() {
    let home = samples();
    let mut context = home.context("");
    context.use_role("reviewer").unwrap();
    context.enter_session(Some("neu")).unwrap();
    assert_eq!(context.role().unwrap().name(), "reviewer");
    context.use_temp_role("Sei kurz.").unwrap();
    assert_eq!(context.system().as_deref(), Some("Sei kurz."));
    assert!(
        context
            .session()
            .unwrap()
            .to_text()
            .unwrap()
            .contains("role_prompt: Sei kurz.")
    );
    context.exit_session().unwrap();
    assert_eq!(context.role().unwrap().name(), "reviewer");
    context.exit_role().unwrap();
    assert!(context.exit_role().is_err());
    assert!(context.use_temp_role("  ").is_err());
}

#[test]
fn settings_change_the_active_layer_alone() {
    let home = samples();
    let mut context = home.context("temperature: 0.9");
    assert_eq!(
        context.apply(Setting::Temperature(Some(0.8))),
        Layer::Global
    );
    context.use_role("reviewer").unwrap();
    assert_eq!(context.temperature(), Some(0.0));
    assert_eq!(context.apply(Setting::Temperature(Some(0.7))), Layer::Role);
    context.enter_session(None).unwrap();
    assert_eq!(
        context.apply(Setting::Temperature(Some(0.6))),
        Layer::Session
    );
    assert_eq!(context.temperature(), Some(0.6));
    assert_eq!(context.apply(Setting::Temperature(None)), Layer::Session);
    assert_eq!(
        context.temperature(),
        Some(0.7),
        "the session falls through"
    );
    assert_eq!(
        context.apply(Setting::Stream(Some(false))),
        Layer::Global,
        "no layer has this key"
    );
    assert!(!context.app().stream);
    context.exit_session().unwrap();
    context.exit_role().unwrap();
    assert_eq!(context.temperature(), Some(0.8));
}

#[test]
fn resetting_goes_back_to_the_file() {
    let mut context =
        Home::new().context("stream: false\nmax_rounds: 7\nenabled_mcp_servers: docs");
    context.apply(Setting::Stream(Some(true)));
    context.apply(Setting::MaxRounds(Some(9)));
    context.apply(Setting::EnabledMcpServers(Some(Choice::None)));
    assert!(servers(&context).is_empty());
    context.apply(Setting::Stream(None));
    context.apply(Setting::MaxRounds(None));
    context.apply(Setting::EnabledMcpServers(None));
    assert!(!context.app().stream);
    assert_eq!(context.app().max_rounds, 7);
    assert_eq!(servers(&context), ["docs"]);
}

#[test]
fn every_setting_changes_something() {
    for spec in Setting::ALL {
        let mut context = Home::new().context("");
        let before = format!("{:?}", context.app());
        for value in ["true", "false", "0.3", "9", "fs_cat", "no", "always"] {
            if let Ok(setting) = Setting::parse(spec.name, value) {
                context.apply(setting);
                if format!("{:?}", context.app()) != before {
                    break;
                }
            }
        }
        assert_ne!(format!("{:?}", context.app()), before, "{}", spec.name);
    }
}

#[test]
fn selection_follows_the_layers() {
    let home = Home::new();
    home.write(
        "roles/r.md",
        "---\nenabled_tools: fs\nenabled_mcp_servers: null\n---\nx",
    );
    let mut context = home.context(
        "mapping_tools: {fs: 'fs_cat, fs_ls'}\nmapping_mcp_servers: {code: ' github , local git '}\nenabled_tools: all",
    );
    assert_eq!(servers(&context), ["docs", "github", "local git"]);
    assert_eq!(context.selection().tools, context.functions().pool());
    context.use_role("r").unwrap();
    assert_eq!(context.selection().tools, ["fs_cat", "fs_ls"]);
    assert!(servers(&context).is_empty());
    context.enter_session(None).unwrap();
    assert_eq!(context.selection().tools, ["fs_cat", "fs_ls"]);
    context.apply(Setting::EnabledMcpServers(Some(Choice::from_csv("code"))));
    assert_eq!(servers(&context), ["github", "local git"]);
    context.apply(Setting::McpServerSupport(Some(false)));
    assert!(servers(&context).is_empty());
}

#[test]
fn unknown_names_warn_once() {
    let mut context = Home::new().context("enabled_tools: fs_cta\nenabled_mcp_servers: dosc");
    let warnings = context.take_warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings.iter().any(|w| w.contains("`fs_cat`"))
            && warnings.iter().any(|w| w.contains("`docs`"))
    );
    assert!(context.take_warnings().is_empty());
}

#[test]
fn servers_and_tools_are_toggled_in_the_active_layer() {
    let home = samples();
    let mut context = home.context(
        "mapping_mcp_servers: {code: 'github, local git'}\nmapping_tools: {fs: 'fs_cat,fs_ls'}",
    );
    context.enter_session(None).unwrap();
    let names = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    context.toggle_servers(&names("code"), false).unwrap();
    assert_eq!(servers(&context), ["docs"]);
    context.toggle_servers(&names("local git"), true).unwrap();
    assert_eq!(servers(&context), ["docs", "local git"]);
    context.toggle_servers(&names("docs,code"), false).unwrap();
    assert!(servers(&context).is_empty());
    context.toggle_tools(&names("fs"), true).unwrap();
    assert_eq!(context.selection().tools, ["fs_cat", "fs_ls"]);
    context.toggle_tools(&names("fs_ls"), false).unwrap();
    assert_eq!(context.selection().tools, ["fs_cat"]);
    let error = context.toggle_servers(&names("dosc"), true).unwrap_err();
    assert!(error.hints()[0].contains("`docs`"));
    assert!(
        context
            .toggle_servers(&names("old"), true)
            .unwrap_err()
            .to_string()
            .contains("disabled")
    );
    assert!(context.toggle_tools(&names("fs_cta"), true).is_err());
    context.exit_session().unwrap();
    assert_eq!(servers(&context), ["docs", "github", "local git"]);
}

#[test]
fn what_becomes_of_a_session_follows_save_session() {
    let home = Home::new();
    for (config, fate) in [
        ("", SessionFate::Ask),
        ("save_session: null", SessionFate::Ask),
        ("save_session: true", SessionFate::Nothing), // written after the turn already
        ("save_session: false", SessionFate::Drop),
    ] {
        let mut context = home.context(config);
        assert_eq!(context.session_fate(), SessionFate::Nothing);
        context.enter_session(None).unwrap();
        assert_eq!(
            context.session_fate(),
            SessionFate::Nothing,
            "nothing was said"
        );
        talk(&mut context, "hallo");
        assert_eq!(context.session_fate(), fate, "{config}");
    }
}

#[test]
fn trying_something_out_leaves_the_file_alone() {
    let home = samples();
    let mut context = home.context("dry_run: true");
    context.enter_session(Some("bugfix")).unwrap();
    context.set_model("local:eyes").unwrap();
    assert_eq!(context.session_fate(), SessionFate::Nothing);
    talk(&mut context, "doch gesagt");
    context.set_model("local:mute").unwrap();
    context.apply(Setting::DryRun(Some(false)));
    assert_eq!(context.session_fate(), SessionFate::Save);
    // What is as it was is no change.
    let mut context = home.context("");
    context.enter_session(Some("bugfix")).unwrap();
    context.set_model("local:eyes").unwrap();
    context.apply(Setting::Temperature(Some(0.1)));
    assert_eq!(context.session_fate(), SessionFate::Nothing);
}

#[test]
fn a_kept_session_without_a_name_gets_one() {
    let home = Home::new();
    let mut context = home.context("save_session: true");
    context.enter_session(None).unwrap();
    let saved = talk(&mut context, "Grüße an alle").unwrap();
    assert!(
        saved
            .path()
            .to_str()
            .unwrap()
            .ends_with("-grüße-an-alle.yaml"),
        "{saved:?}"
    );
    let again = talk(&mut context, "mehr").unwrap();
    assert_eq!(again.path(), saved.path(), "and keeps it");
    assert_eq!(home.paths.session_names().len(), 1);
}

#[test]
fn two_contexts_on_one_session_both_keep_theirs() {
    let home = samples();
    let mut one = home.context("");
    let mut two = home.context("");
    one.enter_session(Some("bugfix")).unwrap();
    two.enter_session(Some("bugfix")).unwrap();
    assert!(matches!(talk(&mut one, "eins"), Some(Saved::Written(_))));
    assert!(matches!(
        talk(&mut two, "zwei"),
        Some(Saved::Conflict { .. })
    ));
    assert_eq!(home.paths.session_names().len(), 2);
}

#[test]
fn a_session_is_edited_as_text() {
    let home = samples();
    let mut context = home.context("");
    context.enter_session(Some("bugfix")).unwrap();
    let text = context.session().unwrap().to_text().unwrap();
    context
        .replace_session_text(&text.replace("One pixel.", "Ein Pixel."))
        .unwrap();
    assert_eq!(context.last_answer(), Some("Ein Pixel."));
    assert_eq!(context.role().unwrap().name(), "reviewer");
    assert!(context.replace_session_text("messages: 5").is_err());
    assert_eq!(
        context.last_answer(),
        Some("Ein Pixel."),
        "a bad edit changes nothing"
    );
    context
        .replace_session_text(&text.replace("role_name: reviewer\n", ""))
        .unwrap();
    assert!(context.role().is_none());
}

#[test]
fn roles_are_saved_with_their_variables_unreplaced() {
    let home = samples();
    let mut context = home.context("");
    context.use_role("reviewer").unwrap();
    context.apply(Setting::Temperature(Some(0.5)));
    let file = context.save_role(Some("mein")).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("{{__os__}}") && text.contains("temperature: 0.5"),
        "{text}"
    );
    assert_eq!(context.role().unwrap().name(), "mein");
    assert!(!context.system().unwrap().contains("{{"));
    context.use_temp_role("x").unwrap();
    assert!(context.save_role(None).is_err());
    remove_role(&home.paths, "mein").unwrap();
    assert!(remove_role(&home.paths, "mein").is_err());
}

#[test]
fn preludes_start_a_role_or_a_session() {
    let home = samples();
    let mut context = home.context("");
    context.apply_prelude(" role: reviewer ").unwrap();
    assert!(context.role().is_some());
    let mut context = home.context("");
    context.apply_prelude("session:bugfix").unwrap();
    assert_eq!(context.session().unwrap().name(), "bugfix");
    let mut context = home.context("");
    context.apply_prelude("neu:code").unwrap();
    assert_eq!(
        (
            context.session().unwrap().name(),
            context.role().unwrap().name()
        ),
        ("neu", "code")
    );
    for bad in ["nonsense", "role:gone", "session:../x"] {
        assert!(home.context("").apply_prelude(bad).is_err(), "{bad}");
    }
    home.context("").apply_prelude("").unwrap();
}

#[test]
fn transitions_that_need_a_session_say_so() {
    let mut context = Home::new().context("");
    assert!(context.exit_session().is_err());
    assert!(context.empty_session().is_err());
    assert!(context.save_session(None).is_err());
    context.enter_session(None).unwrap();
    assert!(
        context
            .enter_session(Some("x"))
            .unwrap_err()
            .to_string()
            .contains("`temp` is active")
    );
    talk(&mut context, "a");
    context.empty_session().unwrap();
    assert!(context.messages().is_empty());
}
