use super::super::testing::Home;
use super::*;

fn shown(whys: Vec<Why>) -> Vec<String> {
    let row = |why: Why| {
        let mark = if why.included { "in" } else { "out" };
        format!("{} {mark}: {}", why.name, why.reason)
    };
    whys.into_iter().map(row).collect()
}

#[test]
fn every_server_says_why_it_is_in_or_out() {
    let home = Home::new();
    home.write(
        "roles/r.md",
        "---\nenabled_mcp_servers: some,github\n---\nx",
    );
    let mut context = home.context("mapping_mcp_servers: {some: 'docs, old'}");
    assert_eq!(
        shown(context.why_servers()),
        [
            "docs out: not started yet",
            "github out: not started yet",
            "local git out: not started yet",
            "old out: `disabled` in its file",
        ]
    );
    context.use_role("r").unwrap();
    let rows = shown(context.why_servers());
    assert_eq!(
        rows[2],
        "local git out: not named in `enabled_mcp_servers` of the role"
    );
    context.apply(super::super::Setting::McpServerSupport(Some(false)));
    assert_eq!(
        shown(context.why_servers())[2],
        "local git out: `mcp_server_support` is off"
    );
}

#[test]
fn every_tool_says_why_it_is_in_or_out() {
    let home = Home::new();
    let context = home.context("");
    assert!(
        shown(context.why_tools())
            .iter()
            .all(|row| row.ends_with("out: no tools unless `enabled_tools` names them"))
    );
    let mut context = home.context("mapping_tools: {net: fetch_url}\nenabled_tools: net,fs_cat");
    let rows = shown(context.why_tools());
    assert_eq!(
        rows[0],
        "fs_cat in: named in `enabled_tools` of the configuration"
    );
    assert_eq!(
        rows[1],
        "fs_ls out: not named in `enabled_tools` of the configuration"
    );
    let through = "fetch_url in: through alias `net` in `enabled_tools` of the configuration";
    assert!(rows.contains(&through.to_owned()), "{rows:?}");
    context.set_model("local:mute").unwrap();
    assert_eq!(
        shown(context.why_tools())[0],
        "fs_cat out: model `mute` calls no functions"
    );
}
