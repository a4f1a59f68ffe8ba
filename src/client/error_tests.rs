use super::*;

#[test]
fn a_refused_key_names_the_variable_to_set() {
    let error: Error = ClientError::Unauthorized {
        provider: "claude".to_owned(),
        status: 401,
        message: "invalid x-api-key".to_owned(),
        variables: vec!["CLAUDE_API_KEY".to_owned(), "ANTHROPIC_API_KEY".to_owned()],
    }
    .into();
    assert_eq!(error.kind(), ErrorKind::Provider);
    assert_eq!(
        error.to_string(),
        "`claude` refused the API key (HTTP 401): invalid x-api-key"
    );
    assert!(
        error.hints()[0].starts_with("export ANTHROPIC_API_KEY=…"),
        "{:?}",
        error.hints()
    );
}

#[test]
fn a_missing_key_is_a_matter_of_configuration() {
    let error: Error = ClientError::NoKey {
        provider: "gw".to_owned(),
        variables: vec!["GW_API_KEY".to_owned()],
    }
    .into();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.hints()[0].contains("GW_API_KEY"));
}

#[test]
fn an_overflow_can_be_told_from_everything_else() {
    let error = ClientError::ContextOverflow {
        message: "8192 tokens".to_owned(),
    };
    assert!(error.is_context_overflow() && !error.is_retryable());
    let error = Error::from(error);
    assert!(
        error
            .downcast_ref::<ClientError>()
            .is_some_and(ClientError::is_context_overflow)
    );
    assert!(error.hints()[0].starts_with(".compress"));
}

#[test]
fn a_machine_without_certificates_is_told_what_to_install() {
    let error = Error::from(ClientError::Http(HttpError::NoCertificates));
    assert!(error.hints()[0].contains("ca-certificates"));
}
