/**
 * `watchkeeper drain|undrain BACKEND`, `move AUDIT-ID`, `unlimit NUMBER`, `reload`: run an operation of the API, and
 * print the outcome.
 */
import { userInfo } from "node:os";
import { Failure } from "../../../base/failure.ts";
import { adminLimits } from "../../admin/http/limits.ts";
import { shown, textAt } from "../commands/rows.ts";
import type { Screen } from "../commands/screen.ts";
import { apiCommand } from "./admin-client.ts";

/** Paths of the operations, below /api/v1/. */
const paths = {
  drain: (backend: string) => `backends/${encodeURIComponent(backend)}/drain`,
  undrain: (backend: string) => `backends/${encodeURIComponent(backend)}/undrain`,
  move: (auditId: string) => `watches/${encodeURIComponent(auditId)}/move`,
  unlimit: (id: string) => `limits/${encodeURIComponent(id)}/unlimit`,
  reload: () => "reload",
} as const;

/** Exit codes: 0 done, 1 not done, 2 usage error, 3 the API is unreachable. */
export function operate(name: keyof typeof paths, args: string[], screen?: Screen): Promise<number> {
  const run = apiCommand(name, async ({ options, client, screen: { print } }) => {
    const [target = ""] = options.words;
    const reason = options.text("reason") ?? "";
    const done = await client.post(paths[name](target), { reason }, operator());
    if (done instanceof Failure) return done;
    print(`${shown(textAt(done, "outcome"))}\n`);
    return 0;
  });
  return run(args, screen);
}

/** Returns the operator's name for the proxy's journal. The proxy does not verify it. */
export function operator(): string {
  let name = "unknown";
  try {
    name = userInfo().username;
  } catch {
    // In many containers, the user id has no entry in /etc/passwd. The name then stays "unknown".
  }
  const plain = `${name} (watchkeeper CLI)`.replaceAll(/[^\x20-\x7e]/g, "?");
  return plain.slice(0, adminLimits.operatorChars);
}
