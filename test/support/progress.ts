/** How far a watch has come that was asked for from version 7, of a resource whose versions do not repeat. */

import { ownOrigin } from "../../src/kube/api-origin.ts";
import { Progress } from "../../src/watch/session/session-progress.ts";

export function exactProgress(): Progress {
  return new Progress({
    start: "exact",
    version: "7",
    isRepeating: false,
    origin: ownOrigin,
    isInjected: false,
  });
}
