//! Arguments of `tools`.

use clap::ValueEnum;

/// Output formats of `tools`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum FormatArg {
    /// MCP's tools/list result
    Mcp,
    /// OpenAI chat completions and compatible APIs
    Openai,
    /// Anthropic messages
    Anthropic,
    /// Gemini generateContent
    Gemini,
    /// A Markdown page
    Markdown,
}

impl From<FormatArg> for toolcrib::Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Mcp => toolcrib::Format::Mcp,
            FormatArg::Openai => toolcrib::Format::OpenAi,
            FormatArg::Anthropic => toolcrib::Format::Anthropic,
            FormatArg::Gemini => toolcrib::Format::Gemini,
            FormatArg::Markdown => toolcrib::Format::Markdown,
        }
    }
}
