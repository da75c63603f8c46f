/** A probe of /readyz on simulated connections. One byte stands for TCP and TLS, and one word for the response. */
import { metOf } from "../../../src/base/failure.ts";
import type { ProbeListener } from "../../../src/health/prober.ts";
import type { End } from "./wires.ts";

/** Stands for the TLS handshake. A host whose processes are stopped does not send it. */
export const hello = Buffer.from("!");

export function probeOver(end: End, ear: ProbeListener): () => void {
  let hasDialed = false;
  end.owner = {
    receive(chunk) {
      const text = chunk.toString();
      if (!hasDialed) {
        hasDialed = true;
        ear.dialed("answer", "");
        end.write([Buffer.from("?")]);
        return;
      }
      ear.answered(text === "ready" ? "ready" : "failing", text);
    },
    drained() {},
    closed(failure) {
      const reason = failure?.message ?? "ended";
      if (hasDialed) ear.answered("failing", reason);
      else ear.dialed(metOf(failure), reason);
    },
  };
  return () => end.destroy();
}
