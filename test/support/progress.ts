/** How far a watch has come that was asked for from version 7, of a resource whose versions do not repeat. */

import { Progress } from "../../src/watch/progress.ts";
import { ownOrigin } from "../../src/watch/versions-of.ts";

export function exactProgress(): Progress {
  return new Progress({
    start: "exact",
    version: "7",
    isRepeating: false,
    origin: ownOrigin,
    isInjected: false,
  });
}
