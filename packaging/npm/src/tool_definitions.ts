/** Definitions of tools in the formats of the model APIs. */
import type { JsonSchema } from "./own_tools.js";

export interface McpTool {
  name: string;
  description: string;
  inputSchema: JsonSchema;
  annotations?: Record<string, unknown>;
}

export interface AnthropicTool {
  name: string;
  description: string;
  input_schema: JsonSchema & { type: "object" };
}

export interface OpenAiTool {
  type: "function";
  function: { name: string; description: string; parameters: JsonSchema; strict?: boolean };
}

export interface GeminiTool {
  functionDeclarations: { name: string; description: string; parameters?: JsonSchema }[];
}

/** The type of one definition, by format. */
export interface ToolDefinitions {
  anthropic: AnthropicTool;
  openai: OpenAiTool;
  gemini: GeminiTool;
  mcp: McpTool;
}
