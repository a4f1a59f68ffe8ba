//! What the person wants said: text, and files with it. Never commands: nothing here looks at what a line begins
//! with (`P-05`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::chat::{Image, ImageSource, Part};
use crate::utils::http::redact_url;
use crate::utils::{Error, ErrorKind, Result};

/// Largest text file or page that is attached, in bytes.
pub(super) const MAX_TEXT: usize = 16 * 1024 * 1024;
/// Largest image that is attached, in bytes.
pub(super) const MAX_IMAGE: usize = 20 * 1024 * 1024;
/// Most files that patterns may find.
pub(super) const MAX_FILES: usize = 1_000;
/// Most files and directories that are looked at for one pattern.
const MAX_SEEN: usize = 200_000;

/// One question: text and what goes with it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Input {
    text: String,
    attachments: Vec<Part>,
    kind: Kind,
}

/// What is done with it besides being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    /// A role's template goes around it.
    #[default]
    Said,
    /// It was said before, template and all.
    Verbatim,
    /// It asks for more of the last answer.
    Continues,
}

/// Where an attachment comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file of this machine.
    File(PathBuf),
    /// Something to fetch.
    Url(String),
}

impl Input {
    /// This text, verbatim.
    #[expect(
        clippy::should_implement_trait,
        reason = "cannot fail, and is named by the design"
    )]
    pub fn from_str(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }

    /// What was said before, to be said again without a template around it.
    pub(super) fn verbatim(parts: Vec<Part>) -> Self {
        let mut parts = parts;
        let text = match parts.first_mut() {
            Some(Part::Text(text)) => std::mem::take(text),
            _ => String::new(),
        };
        if !text.is_empty() {
            parts.remove(0);
        }
        Self {
            text,
            attachments: parts,
            kind: Kind::Verbatim,
        }
    }

    /// Asks for more of the last answer.
    pub(super) fn continuing(text: &str) -> Self {
        Self {
            kind: Kind::Continues,
            ..Self::from_str(text)
        }
    }

    /// Whether it asks for more of the last answer.
    pub(super) fn continues(&self) -> bool {
        self.kind == Kind::Continues
    }

    /// `text` with files: paths, patterns and URLs, in the order given (`H-02`). `fetch` gets a URL and answers with
    /// its bytes.
    ///
    /// # Errors
    /// A path or pattern names no file, a file cannot be read, is too large or is neither text nor an image.
    pub async fn from_files<F, Fut>(
        text: &str,
        files: &[String],
        cwd: &Path,
        fetch: F,
    ) -> Result<Self>
    where
        F: Fn(String) -> Fut,
        Fut: Future<Output = Result<Vec<u8>>>,
    {
        let mut input = Self::from_str(text);
        let (files, cwd) = (files.to_vec(), cwd.to_path_buf());
        // A walk over a large tree must not keep the runtime from anything else.
        let found = tokio::task::spawn_blocking(move || sources(&files, &cwd));
        for source in found.await.map_err(Error::internal)?? {
            match source {
                Source::File(path) => {
                    let bytes = read(&path).await?;
                    input.attach(&path.display().to_string(), bytes)?;
                }
                Source::Url(url) => {
                    let bytes = fetch(url.clone()).await?;
                    // The label reaches the model and the session file; a password or token in the URL must not.
                    input.attach(&redact_url(&url), bytes)?;
                }
            }
        }
        Ok(input)
    }

    /// Appends what was piped in (`H-03`).
    #[must_use]
    pub fn with_stdin(mut self, stdin: &str) -> Self {
        let piped = stdin.trim_end_matches(['\r', '\n']);
        if piped.is_empty() {
            return self;
        }
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(piped);
        self
    }

    /// Attaches content: an image by its first bytes, else text. `label` is where it came from.
    ///
    /// # Errors
    /// It is too large, or neither text nor a PNG, JPEG, GIF or WebP image.
    pub fn attach(&mut self, label: &str, bytes: Vec<u8>) -> Result<()> {
        let kind = image_type(&bytes);
        let limit = if kind.is_some() { MAX_IMAGE } else { MAX_TEXT };
        if bytes.len() > limit {
            return Err(Error::user(format!(
                "`{label}` has {} bytes, more than the {limit} that can be attached",
                bytes.len()
            )));
        }
        if let Some(mime_type) = kind {
            self.attachments.push(Part::Image(Image {
                mime_type: mime_type.to_owned(),
                source: ImageSource::Bytes(Arc::from(bytes)),
            }));
            return Ok(());
        }
        let Some(text) = as_text(bytes) else {
            return Err(
                Error::user(format!("`{label}` is neither text nor an image"))
                    .hint("attach text files, or PNG, JPEG, GIF or WebP images"),
            );
        };
        let line = format!("==== {label} ====");
        self.attachments.push(Part::Text(format!("{line}\n{text}")));
        Ok(())
    }

    /// The person's own words.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is attached, in order.
    pub fn attachments(&self) -> &[Part] {
        &self.attachments
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.attachments.is_empty()
    }

    /// The parts of the user message. `embed` puts the text into a role's template; attached text follows it, then
    /// the images, in order.
    pub fn parts(&self, embed: impl FnOnce(&str) -> String) -> Vec<Part> {
        if self.kind == Kind::Verbatim {
            let text = Some(Part::Text(self.text.clone())).filter(|_| !self.text.is_empty());
            return text.into_iter().chain(self.attachments.clone()).collect();
        }
        let mut text = self.text.clone();
        let mut images = Vec::new();
        for part in &self.attachments {
            match part {
                Part::Text(attached) => {
                    if !text.is_empty() {
                        text.push_str("\n\n");
                    }
                    text.push_str(attached);
                }
                Part::Image(_) => images.push(part.clone()),
            }
        }
        let text = embed(&text);
        let mut parts = Vec::with_capacity(images.len() + 1);
        if !text.is_empty() || images.is_empty() {
            parts.push(Part::Text(text));
        }
        parts.extend(images);
        parts
    }
}

/// What `-f` arguments mean: URLs, files, and what patterns find, in the order given and sorted within a pattern.
///
/// # Errors
/// A path is not there or is a directory; a pattern is malformed or finds nothing or too much.
pub fn sources(arguments: &[String], cwd: &Path) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    for argument in arguments {
        let lower = argument.to_ascii_lowercase();
        if lower.starts_with("http://") || lower.starts_with("https://") {
            found.push(Source::Url(argument.clone()));
            continue;
        }
        let path = cwd.join(argument);
        if path.is_file() {
            found.push(Source::File(path));
        } else if path.is_dir() {
            return Err(
                Error::user(format!("`{argument}` is a directory")).hint(format!(
                    "name its files with a pattern: `{}`",
                    Path::new(argument).join("**").display()
                )),
            );
        } else if argument.contains(WILDCARDS) {
            found.extend(matching(argument, cwd)?.into_iter().map(Source::File));
        } else if path.exists() {
            found.push(Source::File(path)); // a pipe or a device: reading it is what was asked for
        } else {
            return Err(Error::user(format!("there is no file `{argument}`")));
        }
    }
    Ok(found)
}

const WILDCARDS: [char; 4] = ['*', '?', '[', '{'];

fn matching(pattern: &str, cwd: &Path) -> Result<Vec<PathBuf>> {
    // The components before the first with a wildcard are a directory, whatever it is called; the walk begins there.
    let parts: Vec<_> = Path::new(pattern).components().collect();
    let is_literal =
        |part: &&std::path::Component<'_>| !part.as_os_str().to_string_lossy().contains(WILDCARDS);
    let literal = parts.iter().take_while(is_literal).count();
    let (before, after) = parts.split_at(literal);
    let root = cwd.join(before.iter().collect::<PathBuf>());
    let wild: Vec<_> = after
        .iter()
        .map(|part| part.as_os_str().to_string_lossy())
        .collect();
    let glob = globset::GlobBuilder::new(&wild.join("/"))
        .literal_separator(true)
        .build()
        .map_err(|error| Error::user(format!("`{pattern}` is not a pattern: {}", error.kind())))?
        .compile_matcher();
    let mut found = Vec::new();
    let walk = ignore::WalkBuilder::new(&root)
        .hidden(false)
        .require_git(false)
        .build();
    for (seen, entry) in walk.flatten().enumerate() {
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let below = entry.path().strip_prefix(&root).unwrap_or(entry.path());
        if is_file && glob.is_match(below) {
            found.push(entry.into_path());
        }
        if found.len() > MAX_FILES || seen > MAX_SEEN {
            return Err(
                Error::user(format!("`{pattern}` means too many files")).hint(format!(
                    "a pattern may find {MAX_FILES} files among {MAX_SEEN}"
                )),
            );
        }
    }
    if found.is_empty() {
        return Err(Error::user(format!("`{pattern}` finds no file")));
    }
    found.sort();
    Ok(found)
}

async fn read(path: &Path) -> Result<Vec<u8>> {
    use tokio::io::AsyncReadExt as _;
    let fail = |error: std::io::Error| {
        Error::new(ErrorKind::User, error).context(format!("cannot read `{}`", path.display()))
    };
    let file = tokio::fs::File::open(path).await.map_err(fail)?;
    // One byte more than allowed tells a file that is too large from one that just fits.
    let limit = u64::try_from(MAX_TEXT.max(MAX_IMAGE) + 1).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(limit)
        .read_to_end(&mut bytes)
        .await
        .map_err(fail)?;
    Ok(bytes)
}

/// Text in UTF-8, or in UTF-16 with its mark; no control characters that text does not have.
fn as_text(bytes: Vec<u8>) -> Option<String> {
    let wide = |unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes
            .chunks_exact(2)
            .skip(1)
            .map(|pair| unit([pair[0], pair[1]]))
            .collect();
        String::from_utf16(&units).ok()
    };
    let text = match bytes.get(..2) {
        Some([0xff, 0xfe]) => wide(u16::from_le_bytes)?,
        Some([0xfe, 0xff]) => wide(u16::from_be_bytes)?,
        _ => String::from_utf8(bytes).ok()?,
    };
    let text = text
        .strip_prefix('\u{feff}')
        .map(str::to_owned)
        .unwrap_or(text);
    (!text.contains('\0')).then_some(text)
}

/// The type of an image that models take, by its first bytes.
pub fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
