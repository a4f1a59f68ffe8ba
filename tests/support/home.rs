//! A throw-away home: configuration, cache and working directory of one test.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::run::Run;

/// Directories that exist as long as the value does.
pub struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Self {
        let home = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        for dir in [home.config_dir(), home.work_dir()] {
            std::fs::create_dir_all(dir).unwrap();
        }
        home
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn config_dir(&self) -> PathBuf {
        self.path().join("config")
    }

    pub fn cache_dir(&self) -> PathBuf {
        self.path().join("cache")
    }

    /// Where the binary is started.
    pub fn work_dir(&self) -> PathBuf {
        self.path().join("work")
    }

    /// Writes a file below the configuration directory.
    pub fn config_file(&self, name: &str, text: &str) -> &Self {
        write(&self.config_dir().join(name), text);
        self
    }

    /// Writes a file below the working directory.
    pub fn work_file(&self, name: &str, text: &str) -> &Self {
        write(&self.work_dir().join(name), text);
        self
    }

    /// Writes `config.yaml` with one openai-compatible client called `test` at `url` and appends `more`.
    pub fn provider(&self, url: &str, more: &str) -> &Self {
        self.provider_of("openai-compatible", url, "", more)
    }

    /// As [`Home::provider`], for any client type; `client` holds further keys of the client, indented by two.
    pub fn provider_of(&self, kind: &str, url: &str, client: &str, more: &str) -> &Self {
        let text = format!(
            "model: test:m\n{more}\nclients:\n- type: {kind}\n  name: test\n  api_base: {url}\n  api_key: k-test\n{client}  models:\n  - name: m\n    max_input_tokens: 100000\n    supports_vision: true\n"
        );
        self.config_file("config.yaml", &text)
    }

    /// Writes `mcp.json` with stdio servers `(name, command, args)`.
    pub fn servers(&self, servers: &[(&str, &Path, &[&str])]) -> &Self {
        let servers: serde_json::Map<String, Value> = servers
            .iter()
            .map(|(name, command, args)| {
                (
                    (*name).to_owned(),
                    json!({ "command": command, "args": args }),
                )
            })
            .collect();
        self.config_file("mcp.json", &json!({ "mcpServers": servers }).to_string())
    }

    /// One scripted server called `name` in `scenario`.
    #[track_caller]
    pub fn fake_server(&self, name: &str, scenario: &str) -> &Self {
        self.servers(&[(name, &super::fake_mcp(), &[scenario])])
    }

    /// The binary in this home.
    pub fn coyote(&self, args: &[&str]) -> Run {
        Run::new(self, args)
    }

    /// The environment the binary runs in: nothing of the developer's own.
    pub fn env(&self) -> Vec<(String, String)> {
        let mut env = vec![
            ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
            ("HOME".to_owned(), self.path().display().to_string()),
            (
                "COYOTE_CONFIG_DIR".to_owned(),
                self.config_dir().display().to_string(),
            ),
            (
                "COYOTE_CACHE_DIR".to_owned(),
                self.cache_dir().display().to_string(),
            ),
            // Port 1 answers nobody: no test finds a model that happens to run on this machine.
            (
                "COYOTE_LOCAL_URL".to_owned(),
                "http://127.0.0.1:1".to_owned(),
            ),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ];
        if let Ok(root) = std::env::var("SystemRoot") {
            env.push(("SystemRoot".to_owned(), root));
        }
        env
    }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
