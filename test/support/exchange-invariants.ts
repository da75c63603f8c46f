import type { Exchange } from "../../src/proxy/request/exchange.ts";

/** The invariants between the members of an Exchange in each state. The comment in exchange.ts describes the states. */
const invariants: Readonly<Record<string, (exchange: Exchange) => boolean>> = {
  "in placing no attempt is under way": ({ state, attempts }) =>
    state !== "placing" || (attempts.first === undefined && !attempts.hasTwo),
  "in asking there is an attempt": ({ state, attempts }) =>
    state !== "asking" || attempts.first !== undefined,
  "before the answer there is no status": ({ state, status }) =>
    (state !== "placing" && state !== "asking") || status === 0,
  "an answer that is relayed has one attempt": ({ state, attempts }) =>
    state !== "relaying" || (attempts.first !== undefined && !attempts.hasTwo),
  "an answer that is relayed has a status": ({ state, status }) =>
    (state !== "relaying" && state !== "finishing") || status >= 200,
  "in watching the session has the upstream streams": ({ state, status, attempts, watch }) =>
    state !== "watching" || (watch !== undefined && status === 200 && attempts.first === undefined),
  "before watching there is no session": ({ state, watch }) =>
    state === "watching" || state === "finishing" || state === "ended" || watch === undefined,
};

/** Throws if an exchange violates an invariant. Call it only between two turns of the event loop. */
export function checkExchanges(exchanges: readonly Exchange[]): void {
  for (const exchange of exchanges)
    for (const [name, holds] of Object.entries(invariants))
      if (!holds(exchange)) throw new Error(`${name}: ${String(exchange)}`);
}
