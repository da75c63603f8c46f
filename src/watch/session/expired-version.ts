/**
 * Handles 410 ("Expired", too old resource version): the ERROR event of a backend whose watch cache no longer has the
 * events after a watch's version. A backend that started earlier may still have them. A 410 makes client-go list
 * everything again, so the client gets it only if no backend has the version (watch.md §5.4). The steps:
 *
 *     CacheProgress.refuse          records from which version the backend refuses watches
 *     isHeldBack                    keeps the 410 from the client if another backend may have the version
 *     WatchSession.#refused         asks `acceptanceOfError` whether to try another backend or to end the watch
 *     TargetPicker.isForgotten      true if no backend can have the version any more
 *     ResumeRetry.refused           remembers the 410, for the case that every other backend fails
 */
import type { Acceptance } from "../../kube/resume-request.ts";
import type { WatchEvent } from "../codec/event.ts";

export const expired = 410;

type Refused = {
  /** True if the watch starts from an exact version. With any other start, no backend answers 410. */
  readonly isExact: boolean;
  /** True if an aggregated server assigns the versions. Every backend would forward the request to that server. */
  readonly isForeign: boolean;
  /**
   * True for `events`, which apiservers read from etcd and not from a cache. All backends share etcd, so all refuse the
   * version.
   */
  readonly isRepeating: boolean;
};

/**
 * True if this ERROR, a watch's first event, must be kept from the client, because another backend may have the
 * version.
 */
export function isHeldBack({ code }: WatchEvent, { isExact, isForeign, isRepeating }: Refused): boolean {
  return code === expired && isExact && !isForeign && !isRepeating;
}

/**
 * Judges an ERROR event, of any code, at the start of a response with status 200. `isForgotten`: no backend has the
 * watch's version.
 */
export function acceptanceOfError(code: number, isForgotten: boolean): Acceptance {
  if (code === 401 || code === 403) return { kind: "end" };
  // A recently started backend has less history, so a 410 is final only if every candidate returned it.
  if (code === expired && isForgotten) return { kind: "end" };
  return { kind: "elsewhere", inMs: 0 };
}
