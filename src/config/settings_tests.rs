//! Tests of the module beside.

use super::*;

fn parse(key: &str, value: &str) -> Setting {
    Setting::parse(key, value).unwrap_or_else(|error| panic!("{error:?}"))
}

#[test]
fn every_setting_parses_and_refuses() {
    for spec in Setting::ALL {
        let (good, bad) = match spec.kind {
            KeyKind::Text => ("auto", Some("wide")),
            KeyKind::Bool => ("true", Some("maybe")),
            KeyKind::Integer => ("7", Some("-1")),
            KeyKind::Number => ("0.5", Some("nan")),
            KeyKind::Word(words) => (words[0], Some("bogus")),
            KeyKind::Names => ("a, ü", None),
            KeyKind::Structure => unreachable!(),
        };
        let set = parse(spec.name, good);
        let reset = parse(
            spec.name,
            if spec.kind == KeyKind::Names {
                "default"
            } else {
                "null"
            },
        );
        assert_ne!(set, reset, "{}", spec.name);
        if let Some(bad) = bad {
            let error = Setting::parse(spec.name, bad).unwrap_err().to_string();
            assert!(error.contains(spec.name) && error.contains(bad), "{error}");
        }
        assert!(Setting::parse(spec.name, " ").is_err());
    }
}

#[test]
fn every_setting_is_a_key_of_the_file() {
    for spec in Setting::ALL {
        let key = crate::config::AppConfig::keys()
            .iter()
            .find(|key| key.name == spec.name);
        assert_eq!(key.map(|key| key.kind), Some(spec.kind), "{}", spec.name);
    }
}

#[test]
fn null_is_a_value_of_a_list_and_resets_the_rest() {
    assert_eq!(
        parse("enabled_tools", "null"),
        Setting::EnabledTools(Some(Choice::None))
    );
    assert_eq!(
        parse("enabled_mcp_servers", "default"),
        Setting::EnabledMcpServers(None)
    );
    assert_eq!(
        parse("enabled_mcp_servers", "all"),
        Setting::EnabledMcpServers(Some(Choice::All))
    );
    assert_eq!(parse("temperature", "null"), Setting::Temperature(None));
    assert_eq!(parse("save_session", "null"), Setting::SaveSession(None));
}

#[test]
fn ranges_hold() {
    for bad in ["3", "-0.1", "inf", "1,5", "warm"] {
        assert!(Setting::parse("temperature", bad).is_err(), "{bad}");
    }
    assert!(Setting::parse("max_rounds", "0").is_err());
}

#[test]
fn an_unknown_setting_names_the_nearest() {
    let error = Setting::parse("temprature", "1").unwrap_err();
    assert!(error.hints()[0].contains("`temperature`"));
    let error = Setting::parse("日本", "1").unwrap_err();
    assert!(error.hints()[0].contains("max_rounds"));
}
