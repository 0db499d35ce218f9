// The adapter's types fit the Anthropic SDK.
import Anthropic from "@anthropic-ai/sdk";
import { Session } from "toolcrib";
import { tools } from "toolcrib/anthropic";

export async function agent(client: Anthropic, session: Session): Promise<unknown> {
  return client.beta.messages.toolRunner({
    model: "any",
    max_tokens: 100,
    messages: [{ role: "user", content: "go" }],
    tools: await tools(session),
  });
}
