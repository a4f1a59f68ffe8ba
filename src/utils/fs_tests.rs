use super::*;

fn kind(path: &Path) -> io::ErrorKind {
    read_bounded(path, 1000).unwrap_err().kind()
}

#[test]
fn what_is_no_file_is_refused_and_a_size_is_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a");
    assert_eq!(kind(&file), io::ErrorKind::NotFound);
    assert_eq!(kind(dir.path()), io::ErrorKind::IsADirectory);
    fs::write(&file, "x".repeat(1000)).unwrap();
    assert_eq!(read_bounded(&file, 1000).unwrap().len(), 1000);
    assert_eq!(
        read_bounded(&file, 999).unwrap_err().kind(),
        io::ErrorKind::FileTooLarge
    );
    fs::write(&file, b"ab\xff").unwrap();
    let error = read_text(&file).unwrap_err();
    assert_eq!(error.to_string(), "it is not text in UTF-8 (byte 2)");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for_and_an_endless_device_not_read_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let error = read_bounded(&pipe, 10).unwrap_err();
    assert_eq!(error.to_string(), "it is a pipe or a socket");
    let link = dir.path().join("link");
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    assert_eq!(kind(&link), io::ErrorKind::FileTooLarge);
    let null = read_text(Path::new("/dev/null"));
    assert_eq!(null.unwrap(), "");
}
