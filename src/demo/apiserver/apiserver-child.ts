/**
 * The process of one embedded apiserver: its sockets and its HTTP/2. What it is asked is answered by the process that
 * forked it, where the store is (apiserver-process.ts); so it can be frozen and killed in earnest and the store lives on.
 */
import { wallClock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { Journal } from "../../events/journal.ts";
import type { FromChild, ToChild } from "./apiserver-process.ts";
import type { Answer, Ask } from "./ask.ts";
import { Host } from "./host.ts";

const answers = new Map<number, Answer>();
let count = 0;

/** Who forked it may be gone already: then there is nobody to tell, and "disconnect" ends this process. */
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
  // Its asker has left while the answer was under way to this process.
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
// Ctrl-C reaches every process of a terminal: the demo ends this one when the proxy has drained.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => {});
