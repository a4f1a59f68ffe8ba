//! The person's own tools: declared in `functions.json`, run from `bin` (`H-43`).
//!
//! A program gets the JSON of its arguments as its only argument, or on its standard input when they are long, and
//! writes its answer to the file `$LLM_OUTPUT` or to its standard output.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::env::DispatchEnv;
use super::error::FunctionError;
use super::local::{LocalTool, bounds};
use super::process::{self, Job};
use crate::chat::{Arguments, FunctionDeclaration};
use crate::mcp::has_mcp_prefix;

/// Arguments longer than this go to standard input: kernels limit one argument to 128 KiB.
const ARGUMENT_MAX: usize = 100 * 1024;

/// A program that runs longer is killed.
const TIMEOUT: Duration = Duration::from_mins(10);

/// Longest function name that every provider accepts (`H-42`).
const NAME_MAX: usize = 64;

/// Longest `functions.json`, in bytes.
const FILE_MAX: u64 = 4 * 1024 * 1024;

/// A tool of the person's.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct UserTool {
    /// What the model is told.
    pub(super) declaration: FunctionDeclaration,
    /// What runs.
    pub(super) program: PathBuf,
}

/// Reads the tools of `dir`; each warning is a line for the person.
pub(super) fn load(dir: &Path) -> (Vec<UserTool>, Vec<String>) {
    let file = dir.join("functions.json");
    let text = match fs::metadata(&file) {
        Err(_) => return (Vec::new(), Vec::new()),
        Ok(facts) if facts.len() > FILE_MAX => {
            let warning = format!("`{}` is larger than 4 MiB and is ignored", file.display());
            return (Vec::new(), vec![warning]);
        }
        Ok(_) => crate::utils::fs::read_text(&file),
    };
    let entries = match text.map(|text| serde_json::from_str::<Value>(&text)) {
        Ok(Ok(Value::Array(entries))) => entries,
        Ok(Ok(_)) => return (Vec::new(), vec![ignored(&file, "is not a JSON array")]),
        Ok(Err(error)) => {
            return (
                Vec::new(),
                vec![ignored(&file, &format!("is not JSON: {error}"))],
            );
        }
        Err(error) => {
            return (
                Vec::new(),
                vec![ignored(&file, &format!("cannot be read: {error}"))],
            );
        }
    };
    let (mut tools, mut warnings) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for (at, entry) in entries.into_iter().enumerate() {
        match tool(dir, entry, &mut seen) {
            Ok(tool) => {
                if has_mcp_prefix(&tool.declaration.name) {
                    warnings.push(format!(
                        "the tool `{}` in `{}` has a name like those of MCP functions: it works, but lists do not \
                         show it",
                        tool.declaration.name,
                        file.display()
                    ));
                }
                tools.push(tool);
            }
            Err(reason) => warnings.push(format!(
                "entry {} of `{}` is ignored: {reason}",
                at.saturating_add(1),
                file.display()
            )),
        }
    }
    (tools, warnings)
}

fn ignored(file: &Path, why: &str) -> String {
    format!("`{}` {why}; its tools are ignored", file.display())
}

fn tool(dir: &Path, entry: Value, seen: &mut BTreeSet<String>) -> Result<UserTool, String> {
    let declaration: FunctionDeclaration =
        serde_json::from_value(entry).map_err(|error| error.to_string())?;
    let name = declaration.name.as_str();
    if !is_legal(name) {
        let shown = crate::utils::text::bounded(name, 100);
        return Err(format!(
            "`{shown}` is no function name (1 to {NAME_MAX} of A-Z a-z 0-9 _ -)"
        ));
    }
    if !declaration.parameters.is_object() {
        return Err(format!("`parameters` of `{name}` is not an object"));
    }
    if LocalTool::ALL.iter().any(|tool| tool.name() == name) {
        return Err(format!("`{name}` is the name of a built-in tool"));
    }
    if !seen.insert(name.to_owned()) {
        return Err(format!("`{name}` is there twice"));
    }
    let program = program(&dir.join("bin"), name).ok_or_else(|| {
        format!(
            "`{name}` has no executable in `{}`",
            dir.join("bin").display()
        )
    })?;
    Ok(UserTool {
        declaration,
        program,
    })
}

fn is_legal(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

#[cfg(unix)]
fn program(bin: &Path, name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = bin.join(name);
    let facts = fs::metadata(&path).ok()?;
    (facts.is_file() && facts.permissions().mode() & 0o111 != 0).then_some(path)
}

#[cfg(not(unix))]
fn program(bin: &Path, name: &str) -> Option<PathBuf> {
    ["exe", "cmd", "bat"]
        .into_iter()
        .map(|extension| bin.join(format!("{name}.{extension}")))
        .find(|path| path.is_file())
}

/// Runs `tool` and returns what it answered.
pub(super) async fn run(
    tool: &UserTool,
    env: &DispatchEnv,
    arguments: &Arguments,
) -> Result<String, FunctionError> {
    let name = &tool.declaration.name;
    let json = match arguments {
        Arguments::Object(_) => arguments.to_text(),
        Arguments::Malformed(raw) => {
            return Err(FunctionError::Malformed {
                function: name.clone(),
                quoted: crate::utils::text::bounded(raw, 200).into_owned(),
            });
        }
    };
    let answer = tempfile::Builder::new()
        .prefix("coyote-tool-")
        .tempfile()
        .map_err(|error| FunctionError::failed(format!("cannot run `{name}`: {error}")))?;
    let mut command = Command::new(&tool.program);
    command.env("LLM_OUTPUT", answer.path());
    let stdin = if json.len() > ARGUMENT_MAX {
        Some(json.into_bytes())
    } else {
        command.arg(json);
        None
    };
    let job = Job {
        what: format!("`{name}`"),
        command,
        cwd: &env.cwd,
        scrub_env: &env.scrub_env,
        stdin,
        timeout: TIMEOUT,
    };
    let finished = process::run(job, &env.abort).await?;
    let written = read_answer(answer.path());
    let output = match written {
        Some(text) => text,
        None => finished.stdout,
    };
    if let Some(how) = process::failure(finished.status, TIMEOUT) {
        let said = if finished.stderr.trim().is_empty() {
            &output
        } else {
            &finished.stderr
        };
        let said = process::tail(said, 4_096);
        return Err(FunctionError::failed(if said.is_empty() {
            format!("`{name}` failed ({how})")
        } else {
            format!("`{name}` failed ({how}): {said}")
        }));
    }
    Ok(bounds::whole(output, bounds::room(&env.limits)))
}

/// What the program wrote to `$LLM_OUTPUT`, if anything.
fn read_answer(path: &Path) -> Option<String> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let ceiling = bounds::CEILING.saturating_add(4) as u64;
    fs::File::open(path)
        .ok()?
        .take(ceiling)
        .read_to_end(&mut bytes)
        .ok()?;
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
#[path = "user_tools_tests.rs"]
mod tests;
