//! The command line itself: usage errors, versions, help.

#[test]
fn the_version_goes_to_stdout() {
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_coyote"))
        .arg("--version")
        .status();
    assert!(status.is_ok_and(|status| status.success()));
}
