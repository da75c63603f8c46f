/** The five incidents that watchkeeper exists for, each a story that can be played. docs/incidents has a page of each. */
import type { Failure } from "../../base/failure.ts";
import type { Outcome } from "./outcome.ts";
import type { Scene } from "./scene.ts";
import type { Wishes } from "./setting.ts";

export type Incident = {
  readonly title: string;
  /** What happened in public, in a few lines. */
  readonly before: readonly string[];
  /** The incident's kind in watchkeeper's own words. */
  readonly kind: string;
  /** Loaded when it is played. */
  load(): Promise<{ readonly wishes: Wishes; play(scene: Scene): Promise<Outcome | Failure> }>;
};

export const incidents = {
  "000": {
    title: "one bad secret, and the whole ingress is gone",
    before: [
      "A host's TLS secret is renewed with a key that is another certificate's. The ingress puts it to use,",
      "its process ends, and with it every other host; started again it reads the same secret.",
    ],
    kind: "certificate-refused",
    load: () => import("./bad-secret.ts"),
  },
  "001": {
    title: "a watch that replays history for ever",
    before: [
      "A DELETED event comes with the version that the object had long ago. The client's next watch begins",
      "there, all that happened since is told again, and at its end the same event: round and round.",
    ],
    kind: "watch-replay-loop",
    load: () => import("./replay-loop.ts"),
  },
  "002": {
    title: "a ghost that holds a leader lock",
    before: [
      "A pod is deleted, but its node is out of reach and its process lives on. It goes on renewing the",
      "lock, so nobody else may lead; and no object of the cluster says from where.",
    ],
    kind: "lock-ghost-holder",
    load: () => import("./ghost-holder.ts"),
  },
  "003": {
    title: "an apiserver's certificate for talking to itself",
    before: [
      "An apiserver makes it at its start, good for a year, and shows it to nobody else. After a year the",
      "apiserver cannot talk to itself, and until then every check says that all is well.",
    ],
    kind: "loopback-certificate-expiring",
    load: () => import("./loopback-certificate.ts"),
  },
  "004": {
    title: "watches that hang on an apiserver that is gone",
    before: [
      "A gateway stands in front of two apiservers and one falls silent: its packets are dropped. The client's",
      "PING is answered by the gateway, so it sees a healthy connection; its watches hang, for days.",
    ],
    kind: "backend-frozen",
    load: () => import("./silent-apiserver.ts"),
  },
} as const satisfies Record<string, Incident>;

export type IncidentNumber = keyof typeof incidents;

export function isIncidentNumber(text: string): text is IncidentNumber {
  return Object.hasOwn(incidents, text);
}
