/** What one exchange of a run is to be: agreed between the client that asks and the backend that answers. */
import type { Random } from "./random.ts";

export type Fate =
  /** Answered in full. */
  | "answer"
  /** The first backend to see it refuses the stream; the next answers. */
  | "refuse"
  /** Reset before any head. */
  | "reset-early"
  /** Reset in mid-body. */
  | "reset-late"
  /** 401, and GOAWAY on the whole session, as the apiserver does (watch.md W7). */
  | "unauthorized";

export type Plan = {
  readonly tag: number;
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly fate: Fate;
  /** The answer's body. */
  readonly answerBytes: number;
  readonly hasLength: boolean;
  readonly hasTrailers: boolean;
  readonly interimHeads: number;
  /** How many pieces the answer is written in, and how long the backend thinks before each. */
  readonly pieces: number;
  readonly thinkMs: number;
  /** The request's body; 0 is none. */
  readonly uploadBytes: number;
  /** The backend answers before the body has come. */
  readonly answersEarly: boolean;
  /** The client gives up after so long; undefined: it does not. */
  readonly cancelAfterMs: number | undefined;
  /** Whoever reads the body, the client the answer's or the backend the request's, takes so long over each piece. */
  readonly readMs: number;
  /** Fields of its own, repeated ones among them. */
  readonly extra: readonly (readonly [string, string])[];
};

const paths = [
  "/tagged/",
  "/api/v1/namespaces/tagged/secrets/",
  "/apis/metrics.k8s.io/v1beta1/nodes/",
  "/api/v1/namespaces/tagged/pods/web/log?follow=true&tag=",
  "/api/v1/namespaces/tagged/services/web/proxy/",
] as const;

const fates: readonly Fate[] = ["refuse", "reset-early", "reset-late", "unauthorized"];

/** What the requests of one run have in common. */
export type Habits = {
  /** Bound bodies; an upload has at least `leastBytes`. */
  readonly mostBytes: number;
  readonly leastBytes: number;
  readonly requests: number;
  /** How likely a fate other than a plain answer is, and that a client gives up. */
  readonly trouble: number;
  readonly cancels: number;
  /** How likely a reader is slow, and how slow. */
  readonly slowness: number;
  readonly methods: readonly Plan["method"][];
};

const mixed = ["GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE"] as const;

export function newHabits(random: Random): Habits {
  const kind = random.next();
  const trouble = random.pick([0, 0.1, 0.4]);
  // Few and large; many uploads of which half are given up; or, mostly, a bit of everything.
  if (kind < 0.1)
    return {
      mostBytes: 1_000_000,
      leastBytes: 1,
      requests: random.whole(2, 8),
      trouble,
      cancels: 0.1,
      slowness: 0.2,
      methods: mixed,
    };
  if (kind < 0.2)
    return {
      mostBytes: 600_000,
      leastBytes: 400_000,
      requests: random.whole(10, 30),
      trouble,
      cancels: 0.5,
      slowness: 0.8,
      methods: ["PUT"],
    };
  const mostBytes = random.pick([200, 5_000, 60_000]);
  return {
    mostBytes,
    leastBytes: 1,
    requests: random.whole(5, 60),
    trouble,
    cancels: 0.1,
    slowness: 0.2,
    methods: mixed,
  };
}

export function newPlan(tag: number, random: Random, habits: Habits): Plan {
  const { mostBytes: most, trouble, cancels } = habits;
  const method = random.pick(habits.methods);
  const uploads = method === "POST" || method === "PUT";
  return {
    tag,
    method,
    path: `${random.pick(paths)}${tag}`,
    fate: random.chance(trouble) ? random.pick(fates) : "answer",
    answerBytes: random.size(most),
    hasLength: random.chance(0.5),
    hasTrailers: random.chance(0.2),
    interimHeads: random.chance(0.1) ? random.whole(1, 3) : 0,
    pieces: random.whole(1, 6),
    thinkMs: random.chance(0.5) ? 0 : random.size(300),
    uploadBytes: uploads && random.chance(0.9) ? Math.max(habits.leastBytes, 1 + random.size(most)) : 0,
    answersEarly: random.chance(0.2),
    cancelAfterMs: random.chance(cancels) ? random.size(500) : undefined,
    readMs: random.chance(habits.slowness) ? random.size(habits.slowness * 1_000) : 0,
    extra: extraFields(tag, random),
  };
}

function extraFields(tag: number, random: Random): [string, string][] {
  const fields: [string, string][] = [["x-tag", String(tag)]];
  const count = random.size(6);
  for (let at = 0; at < count; at += 1) {
    const name = random.pick(["impersonate-group", "x-stream-protocol-version", "cookie", "x-note"]);
    fields.push([name, random.chance(0.5) ? "shared" : `${tag}-${"v".repeat(random.size(600))}`]);
  }
  return fields;
}

/** The head of the planned answer: a client must get these fields, in this order, and no others. */
export function headOf({ tag, fate, hasLength, answerBytes }: Plan): [string, string][] {
  const head: [string, string][] = [
    [":status", fate === "unauthorized" ? "401" : "200"],
    ["x-tag", String(tag)],
    ["warning", `299 - "${tag}"`],
    ["warning", '299 - "shared"'],
  ];
  if (hasLength) head.push(["content-length", String(answerBytes)]);
  return head;
}

export function interimHeadOf({ tag }: Plan): [string, string][] {
  return [
    [":status", "103"],
    ["x-tag", String(tag)],
  ];
}
