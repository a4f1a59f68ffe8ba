//! The words everyone speaks: messages, tool calls and their results, what a provider is asked, what it streams,
//! and what happened, for the person. Data and pure functions only.
//!
//! These types are why `client` and `function` need not know each other, and why `turn` can be tested without
//! either.

mod ask;
mod declaration;
mod event;
mod message;
mod notice;
mod request;
mod tool;

pub use ask::{Answer, Ask, Question};
pub use declaration::FunctionDeclaration;
pub use event::{Event, StopReason, Usage};
pub use message::{Image, ImageSource, Message, Part, ProviderState};
pub use notice::{Activity, Notice, NoticeSink, Progress};
pub use request::{Request, ToolChoice};
pub use tool::{Arguments, CallId, ToolCall, ToolOutput, ToolResult};
