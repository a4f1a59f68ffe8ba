//! A conversation that is kept: its settings, its role, its messages, and the file it lives in (`H-31`, `H-14`).
//!
//! What the file looks like is `session_file`'s business; this module knows when it may be replaced.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::paths::{NameKind, Paths};
use super::role::{LayerSettings, Role, Variables};
use super::session_file;
use crate::chat::{Message, Part};
use crate::utils::fs::{Access, create_private_dir, read_bounded, write_atomic};
use crate::utils::fuzzy::{alternatives, nearest};
use crate::utils::{Error, ErrorKind, Result};

/// The name of a session that has none yet.
pub const TEMP_SESSION: &str = "temp";
/// How long another process may hold the lock of the directory before it is ignored.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// The most a session may hold, in bytes; conversations with images are long.
const SESSION_MAX: u64 = 1 << 30;

/// A session in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    name: String,
    /// What it sets.
    pub settings: LayerSettings,
    /// Whether it is kept; `None`: as configured.
    pub save_session: Option<bool>,
    role: Option<Role>,
    /// A role that the file names and that could not be found; kept, so that saving does not lose it.
    missing_role: Option<String>,
    /// A system message that the file itself carries.
    pub(super) system: Option<String>,
    messages: Vec<Message>,
    /// Keys of the file that are not ours.
    pub(super) extra: Map<String, Value>,
    file: Option<FileState>,
    dirty: bool,
    /// Whether what was said is part of what no file has.
    new_messages: bool,
}

/// The file as we last saw it.
#[derive(Debug, Clone, PartialEq)]
struct FileState {
    path: PathBuf,
    /// Hash of its bytes; `None`: it was not there.
    digest: Option<[u8; 32]>,
}

/// What saving did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// The file has it.
    Written(PathBuf),
    /// Another process had changed the file since we read it: that stays, and ours is in a copy beside it, where it
    /// goes from now on.
    Conflict {
        /// The session's own file.
        original: PathBuf,
        /// Ours.
        copy: PathBuf,
    },
}

impl Saved {
    /// Where it is.
    pub fn path(&self) -> &Path {
        match self {
            Self::Written(path) => path,
            Self::Conflict { copy, .. } => copy,
        }
    }
}

impl Session {
    /// A new session; without a name it is [`TEMP_SESSION`].
    pub fn new(name: Option<&str>) -> Self {
        Self {
            name: name.unwrap_or(TEMP_SESSION).to_owned(),
            settings: LayerSettings::default(),
            save_session: None,
            role: None,
            missing_role: None,
            system: None,
            messages: Vec::new(),
            extra: Map::new(),
            file: None,
            dirty: false,
            new_messages: false,
        }
    }

    /// Reads the text of a session file. Its role is named in the second value and is for the caller to load.
    ///
    /// # Errors
    /// The text is not a session, with file and position.
    pub fn parse(name: &str, text: &str, file: &Path) -> Result<(Self, Option<String>)> {
        let stored = session_file::read(text, file)?;
        let mut session = Self::new(Some(name));
        session.settings = stored.settings;
        session.save_session = stored.save_session;
        session.role = stored.role_prompt.map(Role::temporary);
        session.system = stored.system;
        session.messages = stored.messages;
        session.extra = stored.extra;
        Ok((session, stored.role_name))
    }

    /// The saved session of that name, or a new one where there is none. The second value names its role.
    ///
    /// # Errors
    /// The name cannot be a file's, or the file cannot be read.
    pub fn load_or_new(paths: &Paths, name: &str) -> Result<(Self, Option<String>)> {
        if name == TEMP_SESSION {
            return Ok((Self::new(None), None));
        }
        let path = paths.session(name)?;
        let (mut session, role, digest) = match read_bounded(&path, SESSION_MAX) {
            Ok(bytes) => {
                let digest = Sha256::digest(&bytes).into();
                let text = String::from_utf8(bytes).map_err(|error| {
                    Error::new(ErrorKind::Config, error)
                        .context(format!("`{}` is not text", path.display()))
                })?;
                let (session, role) = Self::parse(name, &text, &path)?;
                (session, role, Some(digest))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                (Self::new(Some(name)), None, None)
            }
            Err(error) => {
                return Err(Error::new(ErrorKind::Config, error)
                    .context(format!("cannot read `{}`", path.display())));
            }
        };
        session.file = Some(FileState { path, digest });
        Ok((session, role))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it has no name of its own yet.
    pub fn is_temporary(&self) -> bool {
        self.name == TEMP_SESSION
    }

    /// Its role.
    pub fn role(&self) -> Option<&Role> {
        self.role.as_ref()
    }

    /// Replaces the variables in its role's words.
    pub(super) fn interpolate_role(&mut self, variables: &Variables) {
        self.role = self.role.take().map(|role| role.interpolated(variables));
    }

    /// Gives it a role, or none.
    pub fn set_role(&mut self, role: Option<Role>) {
        self.role = role;
        self.missing_role = None;
        self.system = None;
        self.dirty = true;
    }

    /// Sets the role that its file names, as loading does.
    pub(super) fn restore_role(&mut self, role: Role) {
        self.role = Some(role);
    }

    /// Remembers that the role its file names is not there.
    pub(super) fn lose_role(&mut self, name: String) {
        self.missing_role = Some(name);
    }

    /// The transcript, oldest first.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Whether nothing has been said.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether there is something that no file has.
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Whether something was said, or taken back, that no file knows of.
    pub fn has_new_messages(&self) -> bool {
        self.new_messages
    }

    /// Notes that a setting changed.
    pub(super) fn touch(&mut self) {
        self.dirty = true;
    }

    /// Replaces the transcript.
    pub fn set_messages(&mut self, messages: Vec<Message>) {
        self.messages = messages;
        self.dirty = true;
        self.new_messages = true;
    }

    /// Takes everything since the last thing the person said; `None` when nothing was said.
    pub(super) fn pop_exchange(&mut self) -> Option<Vec<Message>> {
        let at = self
            .messages
            .iter()
            .rposition(|m| matches!(m, Message::User(_)))?;
        self.dirty = true;
        self.new_messages = true;
        Some(self.messages.split_off(at))
    }

    /// Whether it is kept: its own word, else the configuration's; `None`: the person decides (`H-31`).
    pub fn keeps(&self, configured: Option<bool>) -> Option<bool> {
        self.save_session.or(configured)
    }

    /// The text of its file.
    pub fn to_text(&self) -> Result<String> {
        session_file::write(&session_file::Stored {
            settings: self.settings.clone(),
            save_session: self.save_session,
            role_name: self
                .role
                .as_ref()
                .filter(|role| !role.is_temporary())
                .map(|role| role.name().to_owned())
                .or_else(|| self.missing_role.clone()),
            role_prompt: self
                .role
                .as_ref()
                .filter(|role| role.is_temporary())
                .map(|role| role.prompt().to_owned()),
            system: self.system.clone(),
            messages: self.messages.clone(),
            extra: self.extra.clone(),
        })
    }

    /// A name for a session that has none: when, and how it began.
    pub fn auto_name(&self, now: chrono::DateTime<chrono::Local>) -> String {
        let said = self.messages.iter().find_map(|message| match message {
            Message::User(parts) => parts.iter().find_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Image(_) => None,
            }),
            _ => None,
        });
        let slug = slug(said.unwrap_or_default());
        let time = now.format("%Y%m%dT%H%M%S");
        if slug.is_empty() {
            time.to_string()
        } else {
            format!("{time}-{slug}")
        }
    }

    /// Writes it under its own name, or under `name` from now on (`H-14`).
    ///
    /// # Errors
    /// The name cannot be a file's or is another session's already; the file cannot be written.
    pub fn save(&mut self, paths: &Paths, name: Option<&str>) -> Result<Saved> {
        if let Some(name) = name.filter(|name| *name != self.name) {
            let path = paths.session(name)?;
            if path.exists() {
                return Err(Error::user(format!("there is a session `{name}` already"))
                    .hint(format!("choose another name, or remove {}", path.display())));
            }
            name.clone_into(&mut self.name);
            self.file = Some(FileState { path, digest: None });
        }
        if self.file.is_none() {
            let path = paths.session(&self.name)?;
            self.file = Some(FileState { path, digest: None });
        }
        let text = self.to_text()?;
        let Some(file) = self.file.as_mut() else {
            return Err(Error::internal("a session has no file to be saved in"));
        };
        let saved = file.replace(text.as_bytes()).map_err(|error| {
            Error::new(ErrorKind::Internal, error)
                .context(format!("cannot write `{}`", file.path.display()))
        })?;
        self.dirty = false;
        self.new_messages = false;
        Ok(saved)
    }

    /// The file it is in, if it has one.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| file.path.as_path())
    }
}

impl FileState {
    /// Writes `bytes`, unless the file is no longer as we saw it: then they go beside it.
    fn replace(&mut self, bytes: &[u8]) -> std::io::Result<Saved> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        create_private_dir(directory)?;
        let lock = lock(directory);
        let there = match read_bounded(&self.path, SESSION_MAX) {
            Ok(bytes) => Some(<[u8; 32]>::from(Sha256::digest(&bytes))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let ours: [u8; 32] = Sha256::digest(bytes).into();
        // A file that was removed meanwhile is written anew: nothing is lost by that.
        let theirs = there.filter(|digest| Some(*digest) != self.digest && *digest != ours);
        let saved = if theirs.is_some() {
            let copy = conflict_copy(&self.path);
            let original = std::mem::replace(&mut self.path, copy.clone());
            Saved::Conflict { original, copy }
        } else {
            Saved::Written(self.path.clone())
        };
        if there != Some(ours) || theirs.is_some() {
            write_atomic(&self.path, bytes, Access::Private)?;
        }
        self.digest = Some(ours);
        drop(lock);
        Ok(saved)
    }
}

/// `<name>.conflict-<pid>-<time>.yaml`, beside the file.
fn conflict_copy(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let time = chrono::Local::now().format("%Y%m%dT%H%M%S%3f");
    path.with_file_name(format!(
        "{stem}.conflict-{}-{time}.yaml",
        std::process::id()
    ))
}

/// Keeps two processes from comparing and writing at once. A file system without locks, or one who never lets go,
/// is no reason not to save: the comparison still catches all but the last instant.
fn lock(directory: &Path) -> Option<std::fs::File> {
    let file = std::fs::File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(directory.join(".lock"))
        .ok()?;
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(std::fs::TryLockError::Error(_)) => return None,
            Err(std::fs::TryLockError::WouldBlock) if Instant::now() >= until => return None,
            Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// At most six words of a text, for a file name.
fn slug(text: &str) -> String {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(6)
        .map(str::to_lowercase)
        .collect::<Vec<_>>()
        .join("-");
    crate::utils::text::prefix(&words, 60)
        .trim_end_matches('-')
        .to_owned()
}

/// Removes a saved session.
///
/// # Errors
/// There is none of that name, with the nearest ones.
pub fn remove(paths: &Paths, name: &str) -> Result<()> {
    let path = paths.session(name)?;
    std::fs::remove_file(&path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            unknown(paths, name)
        } else {
            Error::new(ErrorKind::Internal, error)
                .context(format!("cannot remove `{}`", path.display()))
        }
    })
}

fn unknown(paths: &Paths, name: &str) -> Error {
    let names = paths.session_names();
    let near = alternatives(&nearest(name, names.iter().map(String::as_str), 3));
    let error = Error::user(format!(
        "there is no {} `{name}`",
        NameKind::Session.as_str()
    ));
    if near.is_empty() {
        error.hint("`.list sessions` shows them")
    } else {
        error.hint(format!("did you mean {near}?"))
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
