//! What `Tab` offers after `.file`: the entries of the directory being typed. Read on the runtime, never on the
//! editor's thread: a directory may be on a file system that hangs.

use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::pin::Pin;

use super::completer::{Candidate, LiveSource};

/// Most entries offered; a menu of more is of no use.
const MAX_ENTRIES: usize = 500;

/// Entries of directories, relative to `cwd`.
pub(super) struct Files {
    /// Where relative paths begin.
    pub(super) cwd: PathBuf,
    /// What `~` means.
    pub(super) home: Option<PathBuf>,
}

impl Files {
    /// The directory that `typed`, a path up to its last separator, means.
    fn directory(&self, typed: &str) -> PathBuf {
        match (typed.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.cwd.join(typed),
        }
    }
}

impl LiveSource for Files {
    fn candidates(
        &self,
        _before: Vec<String>,
        word: String,
    ) -> Pin<Box<dyn Future<Output = Vec<Candidate>> + Send>> {
        let (typed, name) = split(&word);
        let directory = self.directory(typed);
        let typed = typed.to_owned();
        let hidden = name.starts_with('.');
        Box::pin(async move {
            tokio::task::spawn_blocking(move || entries(&directory, &typed, hidden))
                .await
                .unwrap_or_default()
        })
    }

    fn scope<'a>(&self, word: &'a str) -> &'a str {
        split(word).0
    }
}

/// A path up to and with its last separator, and the rest.
fn split(path: &str) -> (&str, &str) {
    let separator = |c: char| c == '/' || c == MAIN_SEPARATOR;
    match path
        .rfind(separator)
        .map(|at| path.split_at_checked(at + 1))
    {
        Some(Some(parts)) => parts,
        _ => ("", path),
    }
}

fn entries(directory: &Path, typed: &str, hidden: bool) -> Vec<Candidate> {
    let Ok(found) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut names: Vec<(String, bool)> = found
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            (hidden || !name.starts_with('.')).then(|| (name, entry.path().is_dir()))
        })
        .take(MAX_ENTRIES)
        .collect();
    names.sort();
    names
        .into_iter()
        .map(|(name, is_dir)| {
            let end = if is_dir { "/" } else { "" };
            let mut candidate = Candidate::new(format!("{typed}{name}{end}"));
            candidate.glue = is_dir;
            candidate
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_directory_being_typed_is_listed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        for name in ["naïve.txt", ".hidden", "sub/b c"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let files = Files {
            cwd: dir.path().to_owned(),
            home: Some(dir.path().to_owned()),
        };
        let list = async |word: &str| -> Vec<String> {
            let found = files.candidates(Vec::new(), word.to_owned()).await;
            found.into_iter().map(|found| found.value).collect()
        };
        assert_eq!(list("").await, ["naïve.txt", "sub/"]);
        assert_eq!(list(".").await, [".hidden", "naïve.txt", "sub/"]);
        assert_eq!(list("sub/").await, ["sub/b c"]);
        assert_eq!(list("~/sub/b").await, ["~/sub/b c"]);
        assert_eq!(list("nowhere/x").await, Vec::<String>::new());
        assert_eq!(files.scope("sub/é/na"), "sub/é/");
    }
}
