use super::*;

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

fn hash(digit: char) -> String {
    digit.to_string().repeat(HASH_DIGITS)
}

fn spill(dir: &SpillDir, name: &str, digit: char, extension: &str, bytes: &[u8]) -> PathBuf {
    let mut file = dir.begin(&server(name)).unwrap();
    file.write(bytes).unwrap();
    file.finish(&hash(digit), extension, bytes.len() as u64)
        .unwrap()
}

/// A file of `size` bytes that takes no space, last modified `age` seconds ago.
fn sparse(path: &Path, size: u64, age: u64) {
    create_private_dir(path.parent().unwrap()).unwrap();
    let file = File::create(path).unwrap();
    file.set_len(size).unwrap();
    let modified = SystemTime::now() - Duration::from_secs(age);
    file.set_times(FileTimes::new().set_modified(modified))
        .unwrap();
}

const MIB: u64 = 1024 * 1024;

#[test]
fn a_payload_has_its_place_and_is_private() {
    let home = tempfile::tempdir().unwrap();
    let dir = SpillDir::new(home.path().join("mcp-resources"));
    let path = spill(&dir, "Srv", 'a', "png", b"payload");
    assert_eq!(fs::read(&path).unwrap(), b"payload");
    assert_eq!(
        path,
        dir.root()
            .join(path_component(&server("Srv")))
            .join(format!("{}.png", hash('a')))
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(mode(dir.root()), 0o700);
    }
    // Nothing but the file is left.
    assert_eq!(entries(path.parent().unwrap()).count(), 1);
}

#[test]
fn hostile_server_names_stay_inside() {
    let home = tempfile::tempdir().unwrap();
    let dir = SpillDir::new(home.path().join("tree"));
    for name in ["../../x", "a/b", "con", "日本", "Internet Search (X)", ".."] {
        let path = spill(&dir, name, 'a', "bin", b"\xff");
        let inside = path.canonicalize().unwrap();
        let root = dir.root().canonicalize().unwrap();
        assert_eq!(inside.strip_prefix(root).unwrap().components().count(), 2);
    }
    assert_eq!(entries(dir.root()).count(), 6);
    assert_eq!(entries(home.path()).count(), 1);
}

#[test]
fn the_same_content_is_written_once_and_counts_as_new() {
    let home = tempfile::tempdir().unwrap();
    let dir = SpillDir::new(home.path());
    let path = spill(&dir, "s", 'a', "png", b"payload");
    let old = SystemTime::now() - Duration::from_secs(1000);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_times(FileTimes::new().set_modified(old)).unwrap();
    #[cfg(unix)]
    let before = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path).unwrap());
    assert_eq!(spill(&dir, "s", 'a', "png", b"payload"), path);
    let facts = fs::metadata(&path).unwrap();
    assert!(facts.modified().unwrap() > old + Duration::from_secs(500));
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::MetadataExt::ino(&facts), before);
}

#[test]
fn what_is_not_the_same_is_replaced() {
    let home = tempfile::tempdir().unwrap();
    let dir = SpillDir::new(home.path());
    let path = spill(&dir, "s", 'a', "png", b"cut");
    assert_eq!(spill(&dir, "s", 'a', "png", b"whole payload"), path);
    assert_eq!(fs::read(&path).unwrap(), b"whole payload");
}

#[cfg(unix)]
#[test]
fn a_link_in_the_place_is_replaced_not_followed() {
    let home = tempfile::tempdir().unwrap();
    let dir = SpillDir::new(home.path().join("tree"));
    let victim = home.path().join("victim");
    fs::write(&victim, b"payload").unwrap();
    let place = spill(&dir, "s", 'b', "bin", b"x").with_file_name(format!("{}.png", hash('a')));
    std::os::unix::fs::symlink(&victim, &place).unwrap();
    assert_eq!(spill(&dir, "s", 'a', "png", b"PAYLOAD"), place);
    assert_eq!(fs::read(&victim).unwrap(), b"payload");
    assert!(fs::symlink_metadata(&place).unwrap().is_file());

    // Nor is a server's directory that is a link written through.
    let outside = home.path().join("outside");
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, dir.root().join("linked")).unwrap();
    assert!(dir.begin(&server("linked")).is_err());
    assert_eq!(entries(&outside).count(), 0);
}

#[test]
fn a_place_that_cannot_be_made_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, b"").unwrap();
    assert!(SpillDir::new(&file).begin(&server("s")).is_err());
    assert!(SpillDir::default().begin(&server("s")).is_err());
}

#[test]
fn oldest_go_first_across_servers_and_the_new_one_stays() {
    let home = tempfile::tempdir().unwrap();
    let dir = SpillDir::new(home.path());
    let place = |server: &str, digit: char| {
        home.path()
            .join(server)
            .join(format!("{}.bin", hash(digit)))
    };
    sparse(&place("one", '1'), 200 * MIB, 300);
    sparse(&place("two", '2'), 200 * MIB, 400);
    sparse(&place("one", '3'), 200 * MIB, 200);
    sparse(&place("two", '4'), 100 * MIB, 100);
    let new = spill(&dir, "three", '5', "bin", b"new"); // 700 MiB: the two oldest go
    assert!(!place("two", '2').exists());
    assert!(place("one", '1').exists());
    assert!(place("one", '3').exists());
    assert!(place("two", '4').exists());
    assert!(new.exists());
}

#[test]
fn the_file_just_written_is_never_evicted() {
    let home = tempfile::tempdir().unwrap();
    let dir = SpillDir::new(home.path());
    let big = home.path().join("s").join(format!("{}.bin", hash('1')));
    sparse(&big, 600 * MIB, 0);
    let file = File::options().write(true).open(&big).unwrap();
    let future = SystemTime::now() + Duration::from_hours(1);
    file.set_times(FileTimes::new().set_modified(future))
        .unwrap();
    let new = spill(&dir, "s", '2', "bin", b"older than the other");
    assert!(new.exists());
    assert!(!big.exists());
}

#[test]
fn only_files_named_as_ours_count_and_go() {
    let home = tempfile::tempdir().unwrap();
    let dir = SpillDir::new(home.path());
    let foreign = [
        home.path().join("s").join("notes.txt"),
        home.path()
            .join("s")
            .join(format!("{}.toolongext", hash('1'))),
        home.path().join("s").join(format!("{}.BIN", hash('1'))),
        home.path()
            .join("s")
            .join(format!("{}x.bin", &hash('1')[1..])),
        home.path().join(format!("{}.bin", hash('1'))), // not in a server's directory
        home.path()
            .join("s")
            .join("deep")
            .join(format!("{}.bin", hash('1'))),
    ];
    for path in &foreign {
        sparse(path, 300 * MIB, 500);
    }
    let ours = home.path().join("s").join(format!("{}.bin", hash('2')));
    sparse(&ours, 300 * MIB, 400);
    spill(&dir, "s", '3', "bin", b"new"); // ours are 300 MiB: nothing goes
    assert!(ours.exists());
    assert!(foreign.iter().all(|path| path.exists()));
    sparse(
        &home.path().join("s").join(format!("{}.bin", hash('4'))),
        300 * MIB,
        0,
    );
    spill(&dir, "s", '5', "bin", b"newer");
    assert!(!ours.exists());
    assert!(foreign.iter().all(|path| path.exists()));
}

#[cfg(unix)]
#[test]
fn links_neither_count_nor_lead_outside() {
    let home = tempfile::tempdir().unwrap();
    let dir = SpillDir::new(home.path().join("tree"));
    let outside = home
        .path()
        .join("outside")
        .join(format!("{}.bin", hash('1')));
    sparse(&outside, 600 * MIB, 500);
    fs::create_dir_all(dir.root().join("s")).unwrap();
    let link = dir.root().join("s").join(format!("{}.bin", hash('2')));
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    std::os::unix::fs::symlink(outside.parent().unwrap(), dir.root().join("linked")).unwrap();
    spill(&dir, "s", '3', "bin", b"new");
    assert!(outside.exists());
    assert!(fs::symlink_metadata(&link).is_ok());
}

#[test]
fn two_processes_may_evict_at_once() {
    let home = tempfile::tempdir().unwrap();
    for digit in "0123456789abcdef".chars() {
        sparse(
            &home.path().join("s").join(format!("{}.bin", hash(digit))),
            100 * MIB,
            100,
        );
    }
    let dir = SpillDir::new(home.path());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let dir = &dir;
            scope.spawn(move || {
                let mut file = dir.begin(&server("t")).unwrap();
                file.write(b"x").unwrap();
                let hash = format!("{thread:064x}");
                assert!(file.finish(&hash, "bin", 1).unwrap().exists());
            });
        }
    });
    let total: u64 = dir.files().iter().map(|file| file.size).sum();
    assert!(total <= SPILL_TREE_BYTES, "{total}");
    assert!(total > 0);
}

#[test]
fn what_a_crash_left_behind_is_removed() {
    let home = tempfile::tempdir().unwrap();
    let dir = SpillDir::new(home.path());
    let old = home.path().join("s").join(".spill-abc.tmp");
    let young = home.path().join("s").join(".spill-def.tmp");
    sparse(&old, 1, 2 * 24 * 3600);
    sparse(&young, 1, 60);
    spill(&dir, "s", '1', "bin", b"new");
    assert!(!old.exists());
    assert!(young.exists());
}

#[test]
fn an_unfinished_payload_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let dir = SpillDir::new(home.path());
    let mut file = dir.begin(&server("s")).unwrap();
    file.write(b"half").unwrap();
    drop(file);
    assert_eq!(entries(&home.path().join("s")).count(), 0);
}

#[test]
fn extensions_come_from_the_list_alone() {
    let long = format!("image/{}", "x".repeat(5000));
    let rows = [
        (Some("image/png"), "png"),
        (Some("IMAGE/PNG"), "png"),
        (Some(" text/html; charset=utf-8"), "html"),
        (Some("image/../../etc/passwd"), "bin"),
        (Some("image/png/../../x"), "bin"),
        (Some("application/x-sh"), "bin"),
        (Some("ｉmage/png"), "bin"),
        (Some(long.as_str()), "bin"),
        (Some(""), "bin"),
        (None, "bin"),
    ];
    for (claimed, expected) in rows {
        assert_eq!(extension(claimed), expected, "{claimed:?}");
    }
    assert!(extensions().iter().all(|extension| is_extension(extension)));
    for required in [
        "png", "jpg", "gif", "webp", "bmp", "svg", "pdf", "zip", "gz", "tar", "7z", "mp3", "wav",
        "ogg", "flac", "mp4", "webm", "wasm", "sqlite", "woff2", "docx", "xlsx", "pptx", "json",
        "csv", "xml", "html", "txt",
    ] {
        assert!(extensions().contains(required), "{required}");
    }
}
