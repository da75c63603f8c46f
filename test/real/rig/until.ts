import { setTimeout as sleep } from "node:timers/promises";

/** Asks `isSo` every 50 ms until it is true, and fails after `ms`. A function as `what` is called only then. */
export async function until(
  what: string | (() => string),
  isSo: () => boolean | Promise<boolean>,
  ms = 20_000,
): Promise<void> {
  for (const deadline = Date.now() + ms; !(await isSo()); await sleep(50))
    if (Date.now() > deadline)
      throw new Error(`Waited ${ms} ms for ${typeof what === "string" ? what : what()}`);
}
