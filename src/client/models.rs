//! What is known of hosted models without asking: the ones offered when nothing is configured. A flat table; any
//! other name works as well.

use super::config::{ModelFacts, ProviderKind};

/// Name, context, longest answer (thousands of tokens; 0 unknown), whether it sees.
type Row = (&'static str, u64, u64, bool);

const OPENAI: &[Row] = &[
    ("gpt-5.4", 1050, 128, true),
    ("gpt-5.4-mini", 400, 128, true),
    ("gpt-5.4-nano", 400, 128, true),
    ("gpt-5.5", 1050, 128, true),
    ("gpt-5.6", 1050, 128, true),
    ("gpt-5.2", 400, 128, true),
    ("gpt-5.1", 400, 128, true),
    ("gpt-5", 400, 128, true),
    ("gpt-5-mini", 400, 128, true),
    ("gpt-4.1", 1047, 32, true),
    ("gpt-4.1-mini", 1047, 32, true),
    ("gpt-4o", 128, 16, true),
    ("gpt-4o-mini", 128, 16, true),
    ("o3", 200, 100, true),
];

const CLAUDE: &[Row] = &[
    ("claude-sonnet-5", 1000, 128, true),
    ("claude-opus-5", 1000, 128, true),
    ("claude-haiku-4-5", 200, 64, true),
    ("claude-sonnet-5-5", 1000, 128, true),
    ("claude-opus-5-5", 1000, 128, true),
    ("claude-sonnet-4-6", 1000, 128, true),
    ("claude-opus-4-8", 1000, 128, true),
    ("claude-sonnet-4-5", 200, 64, true),
    ("claude-opus-4-5", 200, 64, true),
];

const GEMINI: &[Row] = &[
    ("gemini-flash-latest", 1048, 65, true),
    ("gemini-flash-lite-latest", 1048, 65, true),
    ("gemini-3.5-flash", 1048, 65, true),
    ("gemini-3.1-pro-preview", 1048, 65, true),
    ("gemini-2.5-pro", 1048, 65, true),
    ("gemini-2.5-flash", 1048, 65, true),
];

const OPENROUTER: &[Row] = &[
    ("~anthropic/claude-sonnet-latest", 1000, 128, true),
    ("~anthropic/claude-opus-latest", 1000, 128, true),
    ("~google/gemini-flash-latest", 1048, 65, true),
    ("openai/gpt-5.4", 1050, 128, true),
    ("openai/gpt-5.4-mini", 400, 128, true),
];

const GROQ: &[Row] = &[
    ("openai/gpt-oss-120b", 131, 65, false),
    ("openai/gpt-oss-20b", 131, 65, false),
    ("llama-3.3-70b-versatile", 131, 32, false),
];

const MISTRAL: &[Row] = &[
    ("mistral-medium-latest", 262, 0, true),
    ("mistral-large-latest", 262, 0, true),
    ("mistral-small-latest", 256, 0, true),
    ("codestral-latest", 256, 0, false),
];

const DEEPSEEK: &[Row] = &[
    ("deepseek-flash", 1000, 0, false),
    ("deepseek-v4-pro", 1000, 0, false),
];

const XAI: &[Row] = &[("grok-4.5", 500, 0, true), ("grok-4.3", 1000, 0, true)];

/// The models offered for a service that was found by its key, the preferred first. Empty where no list would stay
/// true for long: then the model must be named.
pub(super) fn offered(service: &str) -> Vec<ModelFacts> {
    let rows = match service {
        "openai" => OPENAI,
        "claude" => CLAUDE,
        "gemini" => GEMINI,
        "openrouter" => OPENROUTER,
        "groq" => GROQ,
        "mistral" => MISTRAL,
        "deepseek" => DEEPSEEK,
        "xai" => XAI,
        _ => &[],
    };
    rows.iter().map(facts).collect()
}

fn facts(row: &Row) -> ModelFacts {
    let &(name, context, answer, sees) = row;
    ModelFacts {
        max_input_tokens: Some(context * 1000),
        max_output_tokens: (answer > 0).then_some(answer * 1000),
        supports_vision: sees,
        ..ModelFacts::named(name)
    }
}

/// The facts of a model that is not configured: from the table, else from its kind and name.
pub(super) fn guess(kind: ProviderKind, name: &str) -> ModelFacts {
    let rows = match kind {
        ProviderKind::OpenAi => OPENAI,
        ProviderKind::Claude => CLAUDE,
        ProviderKind::Gemini => GEMINI,
        ProviderKind::OpenAiCompatible | ProviderKind::Ollama => &[],
    };
    if let Some(row) = rows.iter().find(|row| row.0 == name) {
        return facts(row);
    }
    let hosted = matches!(
        kind,
        ProviderKind::OpenAi | ProviderKind::Claude | ProviderKind::Gemini
    );
    ModelFacts {
        supports_vision: hosted || looks_like_it_sees(name),
        ..ModelFacts::named(name)
    }
}

/// Whether a model's name says that it takes images.
pub(super) fn looks_like_it_sees(name: &str) -> bool {
    let name = name.to_lowercase();
    [
        "llava",
        "vision",
        "-vl",
        "2vl",
        "3vl",
        "pixtral",
        "gemma3",
        "gemma-3",
        "gemma-4",
        "minicpm-v",
        "gpt-4o",
        "claude",
        "gemini",
    ]
    .iter()
    .any(|word| name.contains(word))
}
