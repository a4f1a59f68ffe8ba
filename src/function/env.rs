//! Everything dispatch needs and does not own: built by `turn` for every round, borrowed by every call.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Functions;
use super::permission::Approval;
use super::supervisor::Supervisor;
use crate::chat::{Ask, NoticeSink};
use crate::mcp::runtime::McpRuntime;
use crate::mcp::spec::Confirm;
use crate::utils::AbortToken;

/// How much a result may weigh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// `max_tool_result_chars`: longest result of a function in characters; `None` leaves each function's own
    /// bound. For meta-functions it lowers page size and ceiling, so that results stay whole JSON (`H-41`).
    pub max_tool_result_chars: Option<usize>,
}

/// What the person has answered with "always", for the rest of the run. One per process: delegates share it.
#[derive(Debug, Default)]
pub struct Approvals {
    granted: Mutex<HashSet<Approval>>,
    /// Held while a question is open: an "always" answers the questions queued behind it.
    pub(super) asking: tokio::sync::Mutex<()>,
}

impl Approvals {
    pub(super) fn has(&self, approval: &Approval) -> bool {
        self.granted.lock().contains(approval)
    }

    pub(super) fn grant(&self, approval: Approval) {
        self.granted.lock().insert(approval);
    }

    /// Forgets every "always".
    pub fn clear(&self) {
        self.granted.lock().clear();
    }
}

/// What a call may use. Cheap to build: everything big is behind an `Arc`.
#[derive(Clone)]
pub struct DispatchEnv {
    /// The functions of this request; what is not in here is unknown.
    pub functions: Arc<Functions>,
    /// The servers of this request.
    pub mcp: McpRuntime,
    /// How much a result may weigh.
    pub limits: Limits,
    /// When an MCP tool call asks first, unless its server's entry says otherwise (`M-47`).
    pub mcp_confirm: Confirm,
    /// `-y`: nothing is asked, everything is approved.
    pub approve_all: bool,
    /// What was approved for the whole run.
    pub session_approvals: Arc<Approvals>,
    /// Who is asked.
    pub ask: Arc<dyn Ask>,
    /// Where notices go.
    pub sink: Arc<dyn NoticeSink>,
    /// Ends everything that runs.
    pub abort: AbortToken,
    /// Relative paths of local tools start here, and commands run here.
    pub cwd: PathBuf,
    /// Who runs the delegates of an agent that may have some.
    pub supervisor: Option<Arc<Supervisor>>,
    /// Environment variables that programs do not inherit: the ones coyote reads provider keys from.
    pub scrub_env: Arc<[String]>,
}

impl std::fmt::Debug for DispatchEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DispatchEnv")
            .field("functions", &self.functions)
            .field("limits", &self.limits)
            .field("approve_all", &self.approve_all)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}
