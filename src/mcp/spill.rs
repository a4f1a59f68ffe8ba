//! Where payloads a model cannot read go (`M-64`, `M-65`): a private directory per server, one file per content.
//!
//! Files are untrusted input: nothing of ours opens or runs one but to hand an image to a model that sees. The tree
//! is shared by every coyote of a user, so each step tolerates that another process has just done it.

use std::collections::BTreeSet;
use std::fs::{self, File, FileTimes};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use super::{ServerName, path_component};
use crate::utils::fs::create_private_dir;

/// Bound on the whole tree of spilled payloads, in bytes; beyond it the oldest go (`M-60`).
pub const SPILL_TREE_BYTES: u64 = 512 * 1024 * 1024;
/// A file that is still being written is named so; a crash can leave one behind.
const TEMPORARY_PREFIX: &str = ".spill-";
const TEMPORARY_SUFFIX: &str = ".tmp";
/// No write takes this long: a temporary file this old was left behind.
const TEMPORARY_AGE: Duration = Duration::from_hours(24);
/// Hexadecimal digits of a SHA-256.
const HASH_DIGITS: usize = 64;
/// Of a type that is not on the list.
pub(crate) const UNKNOWN_EXTENSION: &str = "bin";

/// The tree of spilled payloads: `<cache>/mcp-resources`.
#[derive(Debug, Clone, Default)]
pub struct SpillDir(PathBuf);

impl SpillDir {
    /// The tree below `root`; nothing is created before something is spilled.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }

    /// Where the tree is.
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// Opens a file of `server` that has no name yet: the name is the hash of what will have been written.
    pub(crate) fn begin(&self, server: &ServerName) -> io::Result<SpillFile> {
        if self.0.as_os_str().is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "there is no cache directory",
            ));
        }
        let dir = self.0.join(path_component(server));
        create_private_dir(&dir)?;
        if !fs::symlink_metadata(&dir)?.is_dir() {
            let message = format!("`{}` is a link", dir.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, message));
        }
        let file = tempfile::Builder::new()
            .prefix(TEMPORARY_PREFIX)
            .suffix(TEMPORARY_SUFFIX)
            .tempfile_in(&dir)?;
        Ok(SpillFile {
            root: self.0.clone(),
            dir,
            file,
        })
    }

    /// Brings the tree below [`SPILL_TREE_BYTES`], oldest first, in one walk, sparing `keep`. Best effort: what another
    /// process removes meanwhile is gone too, what cannot be removed stays.
    fn evict(&self, keep: &Path) {
        let mut files = self.files();
        let mut total: u64 = files.iter().map(|file| file.size).sum();
        if total <= SPILL_TREE_BYTES {
            return;
        }
        files.sort_by(|a, b| (a.modified, &a.path).cmp(&(b.modified, &b.path)));
        for file in files.iter().filter(|file| file.path != keep) {
            if total <= SPILL_TREE_BYTES {
                return;
            }
            match fs::remove_file(&file.path) {
                Ok(()) => total = total.saturating_sub(file.size),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    total = total.saturating_sub(file.size);
                }
                Err(error) => {
                    tracing::warn!(path = %file.path.display(), %error, "cannot remove a spilled file");
                }
            }
        }
    }

    /// The regular files that are named as ours, two levels down, following no link. Temporary files that a crash left
    /// behind are removed on the way.
    fn files(&self) -> Vec<Spilled> {
        let mut files = Vec::new();
        for dir in entries(&self.0).filter(|dir| dir.file_type().is_ok_and(|kind| kind.is_dir())) {
            for entry in entries(&dir.path()) {
                // Of the entry itself, not of what a link points to.
                let Ok(facts) = entry.metadata() else {
                    continue;
                };
                let name = entry.file_name();
                let Some(name) = name.to_str().filter(|_| facts.is_file()) else {
                    continue;
                };
                let modified = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                if is_ours(name) {
                    files.push(Spilled {
                        path: entry.path(),
                        size: facts.len(),
                        modified,
                    });
                } else if is_left_behind(name, modified) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
        files
    }
}

struct Spilled {
    path: PathBuf,
    size: u64,
    modified: SystemTime,
}

fn entries(dir: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(dir).into_iter().flatten().flatten()
}

/// Whether a file is named as a spilled payload: 64 hexadecimal digits, a dot, an extension.
fn is_ours(name: &str) -> bool {
    name.split_once('.').is_some_and(|(hash, extension)| {
        hash.len() == HASH_DIGITS
            && hash
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && is_extension(extension)
    })
}

fn is_left_behind(name: &str, modified: SystemTime) -> bool {
    name.starts_with(TEMPORARY_PREFIX)
        && name.ends_with(TEMPORARY_SUFFIX)
        && modified
            .elapsed()
            .is_ok_and(|elapsed| elapsed > TEMPORARY_AGE)
}

/// A payload that is being written. Dropped unfinished, it leaves nothing.
#[derive(Debug)]
pub(crate) struct SpillFile {
    root: PathBuf,
    dir: PathBuf,
    file: NamedTempFile,
}

impl SpillFile {
    /// Writes more of the payload.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Gives the file its name. An existing file is kept, and counts as just written, when it is a regular file of this
    /// size; whatever else has the name is replaced. Then the tree is brought within its bound.
    pub(crate) fn finish(self, sha256: &str, extension: &str, size: u64) -> io::Result<PathBuf> {
        debug_assert!(is_extension(extension));
        let path = self.dir.join(format!("{sha256}.{extension}"));
        let same = fs::symlink_metadata(&path)
            .is_ok_and(|facts| facts.file_type().is_file() && facts.len() == size);
        if same && touch(&path).is_ok() {
            return Ok(path);
        }
        self.file.persist(&path).map_err(|error| error.error)?;
        SpillDir(self.root).evict(&path);
        Ok(path)
    }
}

fn touch(path: &Path) -> io::Result<()> {
    File::options()
        .write(true)
        .open(path)?
        .set_times(FileTimes::new().set_modified(SystemTime::now()))
}

/// The extension for a type that a server claims, from a fixed list: the claim is the server's, so nothing of it ever
/// becomes part of a path.
pub(crate) fn extension(claimed: Option<&str>) -> &'static str {
    let essence = claimed
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    EXTENSIONS
        .iter()
        .find(|(mime, _)| mime.eq_ignore_ascii_case(essence))
        .map_or(UNKNOWN_EXTENSION, |(_, extension)| extension)
}

fn is_extension(text: &str) -> bool {
    (1..=8).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// The extensions that are given out, for help texts and tests.
pub fn extensions() -> BTreeSet<&'static str> {
    EXTENSIONS
        .iter()
        .map(|(_, extension)| *extension)
        .chain([UNKNOWN_EXTENSION])
        .collect()
}

/// Types and their extensions; none of them is executable by its extension.
const EXTENSIONS: [(&str, &str); 58] = [
    ("application/csv", "csv"),
    ("application/epub+zip", "epub"),
    ("application/gzip", "gz"),
    ("application/json", "json"),
    ("application/octet-stream", "bin"),
    ("application/ogg", "ogg"),
    ("application/pdf", "pdf"),
    (
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "pptx",
    ),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xlsx",
    ),
    (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "docx",
    ),
    ("application/vnd.sqlite3", "sqlite"),
    ("application/wasm", "wasm"),
    ("application/x-7z-compressed", "7z"),
    ("application/x-gtar", "tar"),
    ("application/x-gzip", "gz"),
    ("application/x-pdf", "pdf"),
    ("application/x-sqlite3", "sqlite"),
    ("application/x-tar", "tar"),
    ("application/x-zip-compressed", "zip"),
    ("application/xhtml+xml", "html"),
    ("application/xml", "xml"),
    ("application/zip", "zip"),
    ("audio/aac", "aac"),
    ("audio/flac", "flac"),
    ("audio/mp3", "mp3"),
    ("audio/mp4", "m4a"),
    ("audio/mpeg", "mp3"),
    ("audio/ogg", "ogg"),
    ("audio/opus", "opus"),
    ("audio/vnd.wave", "wav"),
    ("audio/wav", "wav"),
    ("audio/wave", "wav"),
    ("audio/webm", "webm"),
    ("audio/x-flac", "flac"),
    ("audio/x-wav", "wav"),
    ("font/woff", "woff"),
    ("font/woff2", "woff2"),
    ("image/avif", "avif"),
    ("image/bmp", "bmp"),
    ("image/gif", "gif"),
    ("image/heic", "heic"),
    ("image/jpeg", "jpg"),
    ("image/jpg", "jpg"),
    ("image/png", "png"),
    ("image/svg+xml", "svg"),
    ("image/tiff", "tiff"),
    ("image/vnd.microsoft.icon", "ico"),
    ("image/webp", "webp"),
    ("image/x-icon", "ico"),
    ("image/x-ms-bmp", "bmp"),
    ("text/csv", "csv"),
    ("text/html", "html"),
    ("text/plain", "txt"),
    ("text/xml", "xml"),
    ("video/mp4", "mp4"),
    ("video/ogg", "ogg"),
    ("video/quicktime", "mov"),
    ("video/webm", "webm"),
];

#[cfg(test)]
#[path = "spill_tests.rs"]
mod tests;
