use super::super::testing::Home;
use super::*;

fn parse(text: &str) -> Result<(Agent, Vec<String>)> {
    Agent::parse("a", text, Path::new("agents/a/config.yaml"))
}

fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(pair).collect()
}

#[test]
fn a_file_as_people_have_it_loads_without_a_warning() {
    let text = include_str!("../../tests/data/samples/agents/triage/config.yaml");
    let (agent, warnings) = parse(text).unwrap();
    assert_eq!(warnings, [""; 0]);
    assert_eq!(agent.description, "Sorts incoming issues");
    let (values, missing) = agent.values(&BTreeMap::new());
    assert!(missing.is_empty());
    let layer = agent.into_layer(values, &Variables::default());
    assert!(
        layer
            .instructions
            .starts_with("You triage issues of coyote.")
    );
    assert_eq!(layer.starters, ["Triage the newest issue of coyote"]);
    assert_eq!(layer.settings.model.as_deref(), Some("local:smol"));
    assert_eq!(layer.settings.temperature, Some(0.0));
    assert_eq!(
        layer.settings.enabled_tools,
        Some(Choice::from_csv("fs_cat,fs_grep"))
    );
    assert_eq!(
        layer.settings.enabled_mcp_servers,
        Some(Choice::from_csv("code"))
    );
    assert_eq!(
        layer.delegation,
        Delegation {
            allowed: true,
            agents: Some(vec!["researcher".into()]),
            max_concurrent: 2,
            max_depth: 3,
            depth: 0,
        }
    );
}

#[test]
fn absent_and_null_are_two_things() {
    let settings = |text: &str| parse(text).unwrap().0.settings;
    assert_eq!(settings("instructions: x").enabled_mcp_servers, None);
    assert_eq!(
        settings("mcp_servers: null").enabled_mcp_servers,
        Some(Choice::None)
    );
    assert_eq!(
        settings("mcp_servers: []").enabled_mcp_servers,
        Some(Choice::None)
    );
    assert_eq!(
        settings("mcp_servers: all").enabled_mcp_servers,
        Some(Choice::All)
    );
    assert_eq!(
        settings("mcp_servers: ' a , b '").enabled_mcp_servers,
        settings("mcp_servers: [a, ' b']").enabled_mcp_servers
    );
    assert_eq!(settings("").enabled_tools, None);
}

#[test]
fn wrong_files_say_what_is_wrong() {
    let (_, warnings) = parse("instrutions: x").unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].contains("did you mean `instructions`"),
        "{warnings:?}"
    );
    for (text, part) in [
        ("max_agent_depth: 0", "between 1 and"),
        ("max_concurrent_agents: 65", "between 1 and"),
        ("temperature: hot", "config.yaml:1:"),
        ("variables: 3", "config.yaml:1:"),
        ("variables: [{name: a, default: [x]}]", "config.yaml:1:"),
    ] {
        let error = parse(text).unwrap_err();
        let whole = format!("{error:?}");
        assert!(whole.contains(part), "{text}: {whole}");
    }
}

#[test]
fn variables_are_filled_in_once() {
    let (agent, _) = parse(
        "instructions: '{{a}} {{b}} {{c}} {{__os__}} {{nobody}}'\nvariables:\n- {name: a, default: 1.5}\n- {name: b}\n\
         - {name: c, default: true}\nconversation_starters: ['{{b}}?']",
    )
    .unwrap();
    let (_, missing) = agent.values(&BTreeMap::new());
    assert_eq!(
        missing.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(),
        ["b"]
    );
    let error = agent.missing(&missing);
    assert_eq!(error.to_string(), "agent `a` needs a value for `b`");
    assert!(
        error.hints()[0].contains("--agent-variable b=VALUE"),
        "{error:?}"
    );
    let (values, missing) = agent.values(&given(&[("b", "{{a}} {{__os__}}"), ("a", "x")]));
    assert!(missing.is_empty());
    let env = super::super::Env::new::<&str, &str>([]);
    let layer = agent.into_layer(values, &Variables::now(&env, Path::new("/")));
    let os = std::env::consts::OS;
    assert_eq!(
        layer.instructions,
        format!("x {{{{a}}}} {{{{__os__}}}} true {os} {{{{nobody}}}}")
    );
    assert_eq!(layer.starters, ["{{a}} {{__os__}}?"]);
}

#[test]
fn a_variable_that_is_not_there_is_refused_with_the_nearest() {
    let (agent, _) = parse("variables: [{name: project, default: x}]").unwrap();
    agent.check_given(&given(&[("project", "y")])).unwrap();
    let error = agent.check_given(&given(&[("projct", "y")])).unwrap_err();
    assert_eq!(error.hints(), ["did you mean `project`?"]);
}

#[test]
fn an_agent_that_is_not_there_is_refused_with_the_nearest() {
    let home = Home::new();
    home.write("agents/triage/config.yaml", "instructions: x");
    let error = Agent::load(&home.paths, "triag").unwrap_err();
    assert_eq!(error.hints(), ["did you mean `triage`?"]);
    let error = Agent::load(&home.paths, "../triage").unwrap_err();
    assert!(error.to_string().contains("cannot be the name"), "{error}");
}

#[test]
fn a_server_or_tool_that_is_not_there_is_said_once_with_the_nearest() {
    let home = Home::new();
    home.write(
        "agents/a/config.yaml",
        "instructions: x\nmcp_servers: [docz, github]\nglobal_tools: [fs_cat, fs_lss]",
    );
    let mut context = home.context("");
    let (agent, _) = Agent::load(&home.paths, "a").unwrap();
    let layer = agent.into_layer(BTreeMap::new(), &context.variables());
    context.set_agent(Some(layer));
    let warnings = context.take_warnings().join("\n");
    assert!(
        warnings.contains("`docz`") && warnings.contains("`docs`"),
        "{warnings}"
    );
    assert!(
        warnings.contains("`fs_lss`") && warnings.contains("`fs_ls`"),
        "{warnings}"
    );
    assert_eq!(context.take_warnings(), [""; 0]);
    let selection = context.selection();
    assert_eq!(selection.tools, ["fs_cat"]);
    assert_eq!(selection.servers.len(), 1);
    context.exit_agent().unwrap();
    assert_eq!(context.selection().servers.len(), 3);
    assert!(context.exit_agent().is_err());
}
