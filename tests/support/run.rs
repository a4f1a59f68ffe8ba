//! One run of the binary: what goes in, what must come out. Silence on stderr is expected unless said otherwise.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::PATIENCE;
use super::home::Home;

/// A run that has been described and not been started.
#[must_use = "a run does nothing until `.ok()`, `.fails()`, `.output()` or `.spawn()`"]
pub struct Run {
    command: Command,
    stdin: Option<Vec<u8>>,
    stderr: Stderr,
}

/// What stderr must be.
enum Stderr {
    Silent,
    Anything,
}

/// What a run left behind.
#[derive(Debug)]
pub struct Output {
    pub code: Option<i32>,
    pub stdout: String,
    pub stdout_bytes: Vec<u8>,
    pub stderr: String,
}

impl Run {
    pub fn new(home: &Home, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coyote"));
        command
            .args(args)
            .env_clear()
            .envs(home.env())
            .current_dir(home.work_dir());
        Self {
            command,
            stdin: None,
            stderr: Stderr::Silent,
        }
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn arg(mut self, arg: &str) -> Self {
        self.command.arg(arg);
        self
    }

    pub fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    /// Pipes `text` in; without this, stdin is empty.
    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(text.into());
        self
    }

    /// The test looks at stderr itself.
    pub fn any_stderr(mut self) -> Self {
        self.stderr = Stderr::Anything;
        self
    }

    /// Starts the run and leaves it to the test.
    pub fn spawn(mut self) -> Child {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs to the end, whatever that is.
    #[track_caller]
    pub fn output(mut self) -> Output {
        let stdin = self.stdin.take();
        let mut child = self
            .command
            .stdin(if stdin.is_some() {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        if let Some(bytes) = stdin {
            let mut pipe = child.stdin.take().unwrap();
            std::thread::spawn(move || pipe.write_all(&bytes));
        }
        finish(child)
    }

    /// Runs; must exit 0 in silence (unless `any_stderr`).
    #[track_caller]
    pub fn ok(self) -> Output {
        let silent = matches!(self.stderr, Stderr::Silent);
        let output = self.output();
        assert_eq!(
            output.code,
            Some(0),
            "stdout: {}\nstderr: {}",
            output.stdout,
            output.stderr
        );
        if silent {
            assert_eq!(
                output.stderr, "",
                "stderr must be silent; stdout: {}",
                output.stdout
            );
        }
        output
    }

    /// Runs; must exit with `code`, and its stderr says why.
    #[track_caller]
    pub fn fails(self, code: i32) -> Output {
        let output = self.output();
        assert_eq!(
            output.code,
            Some(code),
            "stdout: {}\nstderr: {}",
            output.stdout,
            output.stderr
        );
        assert_ne!(output.stderr, "", "a failure says why");
        output
    }
}

/// Waits for the end of `child` with both pipes drained; kills it and fails after [`PATIENCE`].
#[track_caller]
pub fn finish(mut child: Child) -> Output {
    let read = |pipe: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                let _ = pipe.read_to_end(&mut bytes);
            }
            bytes
        })
    };
    let stdout = read(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let stderr = read(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            let stderr = String::from_utf8_lossy(&stderr.join().unwrap()).into_owned();
            panic!("the run did not end; stderr so far: {stderr}");
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    };
    let stdout = stdout.join().unwrap();
    Output {
        code: status.code(),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stdout_bytes: stdout,
        stderr: String::from_utf8_lossy(&stderr.join().unwrap()).into_owned(),
    }
}

/// Sends `signal` to `child`.
#[cfg(unix)]
pub fn signal(child: &Child, signal: nix::sys::signal::Signal) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, signal).unwrap();
}
