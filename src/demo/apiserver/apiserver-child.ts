/**
 * The process of one embedded apiserver: its sockets and its HTTP/2. The parent process, which has the store, answers
 * its requests (apiserver-process.ts). The child can therefore be frozen and killed for real while the store survives.
 */
import { wallClock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { Journal } from "../../events/journal.ts";
import type { FromChild, ToChild } from "./apiserver-process.ts";
import type { Answer, Ask } from "./ask.ts";
import { Host } from "./host.ts";

const answers = new Map<number, Answer>();
let count = 0;

/** The parent may have ended already. Then the message has no receiver, and "disconnect" ends this process. */
function tell(message: FromChild): void {
  if (process.connected) process.send?.(message);
}

function handle(ask: Ask, answer: Answer): void {
  count += 1;
  const id = count;
  answers.set(id, answer);
  answer.onGone(() => {
    answers.delete(id);
    tell({ kind: "gone", id });
  });
  tell({ kind: "asked", id, ask });
}

async function serve({ certificate, key, port }: ToChild & { kind: "serve" }): Promise<void> {
  const apiserver = { handle, endWatches() {} };
  const host = new Host({ apiserver, certificate, key, journal: new Journal(wallClock) });
  const bound = await host.start(port);
  if (bound instanceof Failure) tell({ kind: "failed", message: bound.message });
  else tell({ kind: "serving", port: bound });
}

function heard(message: ToChild): void {
  if (message.kind === "serve") return void serve(message);
  const answer = answers.get(message.id);
  // The client has left while the response was on its way to this process.
  if (answer === undefined) return;
  switch (message.kind) {
    case "head":
      return answer.head(message.status, message.fields);
    case "write":
      answer.write(message.bytes);
      return tell({ kind: "queued", id: message.id, bytes: answer.queued() });
    case "end":
      answers.delete(message.id);
      return answer.end();
    default:
      message satisfies never;
  }
}

process.on("message", heard);
process.on("disconnect", () => process.exit());
// Ctrl-C reaches every process of a terminal: the demo ends this one after the proxy has drained.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => {});
