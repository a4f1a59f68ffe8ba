//! The log file (`H-15`): `coyote.log` in the cache directory, private, rolled by size, with secrets taken out of
//! every line whatever its level.
//!
//! Nothing is created until something is logged, and a log that cannot be written never fails the program. Who logs
//! what is the caller's business: bodies of prompts and resources belong to `trace!`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::LazyLock;

use parking_lot::{Mutex, RwLock};
use regex::{Captures, Regex};
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

/// A log file that has grown beyond this many bytes is rolled.
const ROLL_AT: u64 = 4 * 1024 * 1024;
/// How many rolled files are kept: `coyote.log.1` is the youngest.
const KEPT: u32 = 3;
/// One line of the log, in bytes; what is longer is cut.
const LINE_MAX: usize = 64 * 1024;
/// A value shorter than this is no secret worth hiding: replacing it would garble ordinary words.
const SECRET_MIN: usize = 6;

const REDACTED: &str = "[redacted]";

/// Values that appear in no line; see [`hide`].
static HIDDEN: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Starts logging to `path` for the rest of the process. `level` is `COYOTE_LOG_LEVEL`: `off`, `error`, `warn` (the
/// default), `info`, `debug` or `trace`. Libraries log warnings at most: below that, they may log what they send.
///
/// Returns what the person should be told: a level that is none. A second call does nothing.
pub fn init(path: PathBuf, level: Option<&str>) -> Option<String> {
    let (level, warning) = match level.map(parse_level) {
        None => (LevelFilter::WARN, None),
        Some(Ok(level)) => (level, None),
        Some(Err(warning)) => (LevelFilter::WARN, Some(warning)),
    };
    if level != LevelFilter::OFF {
        // Fails only when a subscriber is set already, by an earlier call.
        let _ = tracing::subscriber::set_global_default(subscriber(path, level));
    }
    warning
}

/// Hides `values` from every line that is logged from now on: keys, tokens, header values of servers.
pub fn hide(values: impl IntoIterator<Item = String>) {
    let mut hidden = HIDDEN.write();
    hidden.extend(
        values
            .into_iter()
            .filter(|value| value.trim().len() >= SECRET_MIN),
    );
    // The longest first, so that a secret that contains another one goes as a whole.
    hidden.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    hidden.dedup();
}

/// The values of those variables whose names say that they are secret.
pub fn secret_values(variables: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    variables
        .into_iter()
        .filter(|(name, _)| is_secret_name(name))
        .map(|(_, value)| value)
        .collect()
}

/// Whether a variable, header or key of that name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    [
        "key",
        "token",
        "secret",
        "password",
        "passwd",
        "pwd",
        "credentials",
        "authorization",
        "cookie",
    ]
    .iter()
    .any(|word| name == *word || name.ends_with(&format!("_{word}")))
        || name.contains("api_key")
        || name.contains("apikey")
}

/// `text` without secrets: hidden values, bearer tokens, the values of headers and variables that hold keys, and what
/// is shaped like a key.
pub fn redact(text: &str) -> String {
    let mut text = text.to_owned();
    for value in HIDDEN.read().iter() {
        if text.contains(value.as_str()) {
            text = text.replace(value.as_str(), REDACTED);
        }
    }
    for pattern in PATTERNS.iter() {
        let replaced = pattern.replace_all(&text, |found: &Captures<'_>| {
            let kept = found.name("kept").map_or("", |kept| kept.as_str());
            format!("{kept}{REDACTED}")
        });
        if let std::borrow::Cow::Owned(replaced) = replaced {
            text = replaced;
        }
    }
    text
}

/// Each keeps its group `kept` and replaces the rest.
static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        // Headers: everything up to the end of the value, however it is written.
        r#"(?i)(?P<kept>\b(?:proxy-)?(?:authorization|cookie)\\?"?'?\s*[:=,]\s*\\?"?'?)[^\r\n"'\\]+"#,
        r"(?i)(?P<kept>\bbearer\s+)[^\s,;]+",
        // Names that hold keys, in JSON, YAML, headers, environments and debug output.
        r#"(?i)(?P<kept>\b[a-z0-9_-]*(?:api[-_]?key|[-_]key|token|secret|passw(?:or)?d|credentials)\\?"?'?\s*[:=]\s*\\?"?'?)[^\s"'\\,;&)}\]]+"#,
        r#"(?i)(?P<kept>[?&](?:key|token|sig|signature|code|auth)=)[^&\s"'#]+"#,
        // user:password@host
        r"(?P<kept>://[^/\s:@]*:)[^/\s@]+@",
        // Keys by their shape.
        r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{12,}|\bgh[pousr]_[A-Za-z0-9]{16,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAIza[A-Za-z0-9_-]{20,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*",
    ]
    .iter()
    .filter_map(|pattern| Regex::new(pattern).ok())
    .collect()
});

fn parse_level(level: &str) -> Result<LevelFilter, String> {
    match level.trim().to_ascii_lowercase().as_str() {
        "off" => Ok(LevelFilter::OFF),
        "error" => Ok(LevelFilter::ERROR),
        "warn" | "warning" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        "trace" => Ok(LevelFilter::TRACE),
        other => Err(format!(
            "`COYOTE_LOG_LEVEL`: `{other}` is no level: expected `off`, `error`, `warn`, `info`, `debug` or `trace`"
        )),
    }
}

fn subscriber(path: PathBuf, level: LevelFilter) -> impl Subscriber + Send + Sync {
    let libraries = level.min(LevelFilter::WARN);
    let targets = Targets::new()
        .with_default(libraries)
        .with_target("coyote", level)
        // What servers write to stderr and send as log messages: their lines, on our say.
        .with_target("mcp.", level);
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(LogFile(Arc::new(Mutex::new(State::new(path)))));
    tracing_subscriber::registry().with(targets).with(lines)
}

/// Where lines go. Every event arrives as one write.
#[derive(Clone)]
struct LogFile(Arc<Mutex<State>>);

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = one_line(&redact(&String::from_utf8_lossy(bytes)));
        self.0.lock().append(&line);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What servers write must not look like lines of ours, and must not act on the terminal of whoever reads the log.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len() + 1);
    for c in super::text::prefix(text.trim_end_matches(['\n', '\r']), LINE_MAX).chars() {
        if c == '\t' || !c.is_control() {
            line.push(c);
        } else {
            line.extend(c.escape_default());
        }
    }
    line.push('\n');
    line
}

struct State {
    path: PathBuf,
    file: Option<File>,
    /// Bytes in `file`, as far as this process knows.
    size: u64,
    /// The file could not be opened: no line will be tried again.
    broken: bool,
}

impl State {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            size: 0,
            broken: false,
        }
    }

    fn append(&mut self, line: &str) {
        if self.broken {
            return;
        }
        if self.size > ROLL_AT {
            self.file = None;
        }
        if self.file.is_none() {
            let Ok((file, size)) = open(&self.path) else {
                self.broken = true;
                return;
            };
            self.file = Some(file);
            self.size = size;
        }
        if let Some(file) = &mut self.file
            && file.write_all(line.as_bytes()).is_ok()
        {
            self.size = self.size.saturating_add(line.len() as u64);
        }
    }
}

/// Opens the log for appending, rolled if it is full. Another process may have rolled it already: then it is short.
fn open(path: &Path) -> io::Result<(File, u64)> {
    if let Some(dir) = path.parent() {
        super::fs::create_private_dir(dir)?;
    }
    if fs::metadata(path).is_ok_and(|log| log.len() > ROLL_AT) {
        roll(path);
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if metadata.permissions().mode() & 0o077 != 0 {
            let _ = file.set_permissions(fs::Permissions::from_mode(0o600));
        }
    }
    Ok((file, metadata.len()))
}

/// Renames `log` to `log.1`, `log.1` to `log.2`, …; the oldest is overwritten.
fn roll(path: &Path) {
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    for number in (1..KEPT).rev() {
        let _ = fs::rename(numbered(number), numbered(number + 1));
    }
    let _ = fs::rename(path, numbered(1));
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
