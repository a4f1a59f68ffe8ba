//! What the tests of this module share: a throw-away home and contexts in it.

use std::path::Path;

use super::{AppConfig, Bootstrap, Env, Paths, RequestContext};
use crate::function::Functions;
use crate::mcp::{McpFactory, McpRegistry, Origin, spec};

pub(super) struct Home {
    dir: tempfile::TempDir,
    pub(super) paths: Paths,
}

/// Two models that differ in what they can do, and a client whose key is not set.
pub(super) const CLIENTS: &str = "
clients:
- type: openai-compatible
  name: local
  api_base: http://127.0.0.1:9/v1
  models:
  - name: smol
  - name: eyes
    supports_vision: true
  - name: mute
    supports_function_calling: false
- type: openai-compatible
  name: other
  api_base: http://127.0.0.1:9/v1
  api_key: ${UNSET_KEY}
  models: [{name: smol}, {name: only}]
";

pub(super) const SERVERS: &str = r#"{"mcpServers": {
    "docs": {"command": "never-started"},
    "github": {"url": "http://127.0.0.1:9/"},
    "local git": {"command": "never-started"},
    "old": {"command": "never-started", "disabled": true}
}}"#;

impl Home {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(dir.path().join("config"), dir.path().join("cache"));
        Self { dir, paths }
    }

    pub(super) fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.paths.config_dir().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub(super) fn cwd(&self) -> &Path {
        self.dir.path()
    }

    /// A context of this `config.yaml`, with the clients above and the servers above, none of which is started.
    pub(super) fn context(&self, config: &str) -> RequestContext {
        self.context_of(&format!("{config}\n{CLIENTS}"))
    }

    /// A context of exactly this `config.yaml`.
    pub(super) fn context_of(&self, config: &str) -> RequestContext {
        let env = Env::new([("SHELL", "/bin/sh")]);
        let (app, warnings) = AppConfig::parse(config, &self.paths.config_file(), &env).unwrap();
        assert!(warnings.is_empty(), "{warnings:?}");
        let servers =
            spec::parse(SERVERS, Path::new("mcp.json"), Origin::User, &env.lookup()).unwrap();
        RequestContext::new(Bootstrap {
            paths: self.paths.clone(),
            app,
            env,
            mcp: McpRegistry::new(servers, McpFactory::new()),
            functions: Functions::built_in(),
            cwd: self.cwd().to_path_buf(),
        })
    }
}
