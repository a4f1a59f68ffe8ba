//! Files that must never be seen half-written, and files that only their owner may read (`H-14`).

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Who may read a file that coyote writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Mode 0600: it can hold what was said, or a secret.
    Private,
    /// As the process's umask says.
    Shared,
}

/// The most a hand-written file of ours may hold, in bytes: configuration, roles, `mcp.json`.
pub const TEXT_MAX: u64 = 64 << 20;

/// Reads a file of ours, at most `max` bytes of it.
///
/// What stands at its place may come from a repository that somebody else wrote: a pipe that nobody writes to and a
/// link to `/dev/zero` are errors, neither waited for nor read to their end.
///
/// # Errors
/// It cannot be read, it is a pipe, a socket or a directory, or it holds more than `max` bytes.
pub fn read_bounded(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let facts = fs::metadata(path)?;
    if facts.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "it is a directory",
        ));
    }
    if would_wait(&facts) {
        return Err(io::Error::other("it is a pipe or a socket"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > max) {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it holds more than {} MiB", max >> 20),
        ));
    }
    Ok(bytes)
}

/// Reads a hand-written text of ours: [`read_bounded`] with [`TEXT_MAX`].
///
/// # Errors
/// As there, or it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_bounded(path, TEXT_MAX)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it is not text in UTF-8 (byte {at})"),
        )
    })
}

/// Whether opening or reading it may wait for somebody else. The null device does not, and is a fine empty file.
#[cfg(unix)]
fn would_wait(facts: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = facts.file_type();
    kind.is_fifo() || kind.is_socket()
}

#[cfg(not(unix))]
fn would_wait(_facts: &fs::Metadata) -> bool {
    false
}

/// Creates `dir` and its missing parents; those it creates get mode 0700.
pub fn create_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Replaces `path` by `bytes` in one step: a crash at any moment leaves the old or the new file, whole.
///
/// A symbolic link is followed and its target replaced. Missing parent directories are created, private.
pub fn write_atomic(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let dir = target
        .parent()
        .filter(|dir| !dir.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    create_private_dir(dir)?;
    let mut temporary = tempfile::Builder::new()
        .prefix(".coyote-")
        .suffix(".tmp")
        .tempfile_in(dir)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    if access == Access::Shared {
        keep_mode(&target, temporary.as_file())?;
    }
    temporary.persist(&target).map_err(|error| error.error)?;
    sync_dir(dir);
    Ok(())
}

/// Adds `bytes` to the end of `path`, whatever it holds so far, in one write. A file that is not there yet is created
/// private, as are missing parent directories.
pub fn append_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        create_private_dir(dir)?;
    }
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(bytes)
}

/// Gives a shared file the mode of the file it replaces, or the usual one; temporary files start private.
#[cfg(unix)]
fn keep_mode(target: &Path, file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(target).map_or(0o644, |old| old.permissions().mode() & 0o777);
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn keep_mode(_target: &Path, _file: &fs::File) -> io::Result<()> {
    Ok(())
}

/// Makes the rename itself durable; a file system that cannot do so is no reason to fail.
fn sync_dir(dir: &Path) {
    if let Ok(dir) = fs::File::open(dir) {
        let _ = dir.sync_all();
    }
}

#[cfg(test)]
#[path = "fs_tests.rs"]
mod tests;
