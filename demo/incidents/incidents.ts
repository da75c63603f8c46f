/**
 * The five incidents for which watchkeeper was made. Each can be replayed with embedded or real apiservers.
 * docs/incidents has a page for each.
 */
import type { Failure } from "../../src/base/failure.ts";
import type { Outcome } from "./outcome.ts";
import type { Scene } from "./scene.ts";
import type { Wishes } from "./setting.ts";

export type Incident = {
  readonly title: string;
  /** What happened in reality, according to public reports, in a few lines. */
  readonly before: readonly string[];
  /** The kind of incident that watchkeeper must report. */
  readonly kind: string;
  load(): Promise<{ readonly wishes: Wishes; play(scene: Scene): Promise<Outcome | Failure> }>;
};

export const incidents = {
  "000": {
    title: "one bad secret, and the whole ingress is gone",
    before: [
      "A host's TLS secret is renewed with a key that belongs to another certificate. The ingress loads it and",
      "crashes, which stops every other host; after its restart it reads the same secret.",
    ],
    kind: "certificate-refused",
    load: () => import("./bad-secret.ts"),
  },
  "001": {
    title: "a watch that replays history for ever",
    before: [
      "A DELETED event has the version that the object had long ago. The client's next watch starts there and",
      "gets all later events again, at the end the same DELETED event: an endless loop.",
    ],
    kind: "watch-replay-loop",
    load: () => import("./replay-loop.ts"),
  },
  "002": {
    title: "a ghost that holds a leader lease",
    before: [
      "A pod is deleted, but its node is unreachable and its process keeps running. It keeps renewing the lease,",
      "so no other pod can become leader, and no object of the cluster shows where it runs.",
    ],
    kind: "lease-ghost-holder",
    load: () => import("./ghost-holder.ts"),
  },
  "003": {
    title: "an apiserver's certificate for talking to itself",
    before: [
      "An apiserver creates it at its start, valid for a year, and uses it only for connections to itself. After",
      "a year these connections fail, and until then every check passes.",
    ],
    kind: "loopback-certificate-expiring",
    load: () => import("./loopback-certificate.ts"),
  },
  "004": {
    title: "watches that hang on an apiserver that is gone",
    before: [
      "A gateway serves two apiservers, and one falls silent: its packets are dropped. The gateway answers the",
      "client's PINGs, so the client sees a healthy connection; its watches hang for days.",
    ],
    kind: "backend-frozen",
    load: () => import("./silent-apiserver.ts"),
  },
} as const satisfies Record<string, Incident>;

export type IncidentNumber = keyof typeof incidents;

export function isIncidentNumber(text: string): text is IncidentNumber {
  return Object.hasOwn(incidents, text);
}
