// The adapter's types fit LangChain.
import { createAgent } from "langchain";
import { Session } from "toolcrib";
import { tools } from "toolcrib/langchain";

export async function agent(session: Session): Promise<unknown> {
  return createAgent({ model: "any", tools: await tools(session) });
}
