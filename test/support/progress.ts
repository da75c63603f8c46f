/**
 * Returns the progress of a watch that was opened at resourceVersion 7, of a resource on which each version occurs only
 * once.
 */

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
