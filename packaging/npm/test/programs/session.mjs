// Opens a session, starts what the first argument says, and prints the process id of the session's program.
import { Session } from "../../dist/index.js";

const session = await Session.open(JSON.parse(process.env.OPTIONS));
await session.call("LS");
if (process.argv[2] === "exit") {
  await session.spawn("sleep 600");
  setTimeout(() => process.exit(0), 300);
} else if (process.argv[2] === "wait") {
  await session.spawn("sleep 600");
}
console.log(session.pid);
