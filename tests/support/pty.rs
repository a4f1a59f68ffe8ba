//! A real pseudo-terminal with a screen: the line editor asks the terminal where its cursor is, so this one answers.

use std::io::{Read as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::home::Home;

const ROWS: u16 = 30;
const COLS: u16 = 100;

/// The binary in a terminal of 100 columns and 30 rows.
pub struct Pty {
    child: Box<dyn Child + Send + Sync>,
    writer: Arc<Mutex<Box<dyn Write + Send>>>,
    screen: Arc<Mutex<vt100::Parser>>,
    raw: Arc<Mutex<Vec<u8>>>,
    /// Whether whoever reads for the terminal shall stop.
    gone: Arc<AtomicBool>,
    master: Option<Box<dyn MasterPty + Send>>,
}

impl Pty {
    pub fn spawn(home: &Home, args: &[&str], env: &[(&str, &str)]) -> Self {
        Self::start(home, args, env, true, (COLS, ROWS))
    }

    /// The same in a terminal of so many columns and rows.
    pub fn spawn_sized(home: &Home, args: &[&str], env: &[(&str, &str)], size: (u16, u16)) -> Self {
        Self::start(home, args, env, true, size)
    }

    /// In a session that the terminal is not the controlling one of: its end sends no signal.
    pub fn spawn_uncontrolled(home: &Home) -> Self {
        Self::start(home, &[], &[], false, (COLS, ROWS))
    }

    fn start(
        home: &Home,
        args: &[&str],
        env: &[(&str, &str)],
        controlling: bool,
        (columns, rows): (u16, u16),
    ) -> Self {
        let pty = native_pty_system()
            .openpty(PtySize {
                rows,
                cols: columns,
                pixel_width: 0,
                pixel_height: 0,
            })
            .unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_coyote"));
        command.args(args);
        command.set_controlling_tty(controlling);
        command.env_clear();
        for (name, value) in home.env() {
            command.env(name, value);
        }
        command.env("TERM", "xterm-256color");
        for (name, value) in env {
            command.env(name, value);
        }
        command.cwd(home.work_dir());
        let child = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let mut reader = pty.master.try_clone_reader().unwrap();
        let this = Self {
            child,
            writer: Arc::new(Mutex::new(pty.master.take_writer().unwrap())),
            screen: Arc::new(Mutex::new(vt100::Parser::new(
                rows.try_into().unwrap(),
                columns.try_into().unwrap(),
                2000,
            ))),
            raw: Arc::default(),
            gone: Arc::default(),
            master: Some(pty.master),
        };
        let gone = Arc::clone(&this.gone);
        let (writer, screen, raw) = (
            Arc::clone(&this.writer),
            Arc::clone(&this.screen),
            Arc::clone(&this.raw),
        );
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if gone.load(Ordering::SeqCst) {
                    return;
                }
                let bytes = &buffer[..read];
                raw.lock().unwrap().extend_from_slice(bytes);
                let mut screen = screen.lock().unwrap();
                // Answer every cursor query with the position at the moment it was asked.
                let mut rest = bytes;
                while let Some(at) = rest.windows(4).position(|window| window == b"\x1b[6n") {
                    screen.process(&rest[..at + 4]);
                    rest = &rest[at + 4..];
                    let (row, col) = screen.screen().cursor_position();
                    let _ = write!(writer.lock().unwrap(), "\x1b[{};{}R", row + 1, col + 1);
                }
                screen.process(rest);
            }
        });
        this
    }

    /// Types `keys` as they are; `\r` is Enter, `\t` is Tab, `\x03` is Ctrl-C.
    pub fn send(&self, keys: &str) -> &Self {
        let mut writer = self.writer.lock().unwrap();
        writer.write_all(keys.as_bytes()).unwrap();
        writer.flush().unwrap();
        self
    }

    /// What is on the screen now.
    pub fn screen(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Every byte the program wrote so far.
    pub fn raw(&self) -> Vec<u8> {
        self.raw.lock().unwrap().clone()
    }

    /// Waits until the screen contains `text`.
    #[track_caller]
    pub fn wait(&self, text: &str) -> &Self {
        self.wait_for(&format!("`{text}` on the screen"), |screen| {
            screen.contains(text)
        })
    }

    /// Waits until `condition` holds for the screen.
    #[track_caller]
    pub fn wait_for(&self, what: &str, condition: impl Fn(&str) -> bool) -> &Self {
        let start = std::time::Instant::now();
        while !condition(&self.screen()) {
            assert!(
                start.elapsed() < super::PATIENCE,
                "did not happen in time: {what}; the screen is:\n{}",
                self.screen()
            );
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        self
    }

    /// Waits for the end and gives the exit code.
    #[track_caller]
    pub fn exit_code(&mut self) -> u32 {
        super::eventually("the program's end", || self.child.try_wait().unwrap()).exit_code()
    }

    /// The terminal disappears, and whoever reads for it.
    pub fn hang_up(&mut self) {
        self.gone.store(true, Ordering::SeqCst);
        // The key's echo wakes the reader.
        self.send("x");
        *self.writer.lock().unwrap() = Box::new(std::io::sink());
        self.master = None;
    }

    /// The program's side of the terminal, to look at its modes and to change them as a shell would.
    #[cfg(unix)]
    pub fn terminal(&self) -> std::fs::File {
        use std::os::unix::fs::OpenOptionsExt as _;
        let name = self.master.as_ref().unwrap().tty_name().unwrap();
        // Looking at it must not make it the terminal of the tests.
        std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(nix::libc::O_NOCTTY)
            .open(name)
            .unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
