import { setTimeout as sleep } from "node:timers/promises";

/**
 * Calls `isSo` every 50 ms until it returns true. Throws after `ms`, with `what` in the message. If `what` is a
 * function, it is called only for that message.
 */
export async function until(
  what: string | (() => string),
  isSo: () => boolean | Promise<boolean>,
  ms = 20_000,
): Promise<void> {
  for (const deadline = Date.now() + ms; !(await isSo()); await sleep(50))
    if (Date.now() > deadline)
      throw new Error(`Waited ${ms} ms for ${typeof what === "string" ? what : what()}`);
}
