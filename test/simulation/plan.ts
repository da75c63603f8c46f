/** What one exchange of a run is to be: agreed between the client that asks and the backend that answers. */
import type { Random } from "./random.ts";

export type Fate =
  /** Answered in full. */
  | "answer"
  /** Answered in full, and then RST_STREAM(NO_ERROR): the rest of the upload is not wanted (RFC 9113 §8.1). */
  | "stop"
  /** Never answered: the client gives up. */
  | "silence"
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
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly fate: Fate;
  /** The client's own token, one that is refused, or none (then the apiserver sees an anonymous client). */
  readonly credential: "own" | "bad" | "none";
  readonly status: number;
  /** With which a backend that resets does so. */
  readonly resetCode: number;
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
  /** The reader of the body (the client of a response, the backend of a request) takes so long over each piece. */
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

const fates: readonly Fate[] = [
  "stop",
  "silence",
  "refuse",
  "reset-early",
  "reset-early",
  "reset-late",
  "reset-late",
  "unauthorized",
];
/** REFUSED_STREAM has a fate of its own. */
const resetCodes = [0, 1, 2, 3, 5, 6, 8, 9, 10, 11, 12, 13, 99] as const;
const statuses = [
  200, 200, 200, 200, 201, 202, 204, 301, 304, 400, 403, 404, 409, 422, 429, 500, 503,
] as const;
const bodiless = [204, 304];
/** Around frames, copies, windows: where one byte makes a difference. */
const edges = [
  1, 2_047, 2_049, 4_095, 4_096, 16_383, 16_384, 16_385, 65_535, 65_536, 262_143, 262_145,
] as const;

/** What the requests of one run have in common. */
export type Habits = {
  /** Bound bodies; an upload has at least `leastBytes`, an answer `leastAnswerBytes`. */
  readonly mostBytes: number;
  readonly leastBytes: number;
  readonly leastAnswerBytes: number;
  readonly requests: number;
  /** How likely a fate other than a plain answer is, and that a client gives up. */
  readonly trouble: number;
  readonly cancels: number;
  /** How likely a reader is slow, and how slow. */
  readonly slowness: number;
  readonly methods: readonly Plan["method"][];
};

const mixed = ["GET", "GET", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const;

export function newHabits(random: Random): Habits {
  const kind = random.next();
  const trouble = random.pick([0, 0.1, 0.4]);
  const usual = {
    leastBytes: 1,
    leastAnswerBytes: 0,
    trouble,
    cancels: 0.1,
    slowness: 0.2,
    methods: mixed,
  };
  // Few and large; many uploads of which half are given up; much more than a window holds, for a client that reads
  // slowly; or, mostly, a bit of everything.
  if (kind < 0.1)
    return {
      ...usual,
      mostBytes: random.pick([1_000_000, 1_000_000, 3_145_728]),
      requests: random.whole(2, 8),
    };
  if (kind < 0.2)
    return {
      ...usual,
      mostBytes: 600_000,
      leastBytes: 400_000,
      requests: random.whole(10, 30),
      cancels: 0.5,
      slowness: 0.8,
      methods: ["PUT"],
    };
  if (kind < 0.25)
    return {
      ...usual,
      mostBytes: 3_145_728,
      leastAnswerBytes: 1_500_000,
      requests: random.whole(1, 3),
      trouble: 0,
      slowness: 1,
      methods: ["GET"],
    };
  return { ...usual, mostBytes: random.pick([200, 5_000, 60_000]), requests: random.whole(5, 60) };
}

export function newPlan(tag: number, random: Random, habits: Habits): Plan {
  const method = random.pick(habits.methods);
  const fate = random.chance(habits.trouble) ? random.pick(fates) : "answer";
  const uploads = method !== "GET" && method !== "HEAD" && random.chance(method === "DELETE" ? 0.3 : 0.9);
  const status = fate === "unauthorized" ? 401 : random.pick(statuses);
  const isBodiless = bodiless.includes(status);
  const ownOrNone = random.chance(0.1) ? "none" : "own";
  const cancels = fate === "silence" || random.chance(habits.cancels);
  return {
    tag,
    method,
    path: `${random.pick(paths)}${tag}`,
    fate,
    credential: fate === "unauthorized" ? "bad" : ownOrNone,
    status,
    resetCode: random.pick(resetCodes),
    answerBytes: isBodiless ? 0 : Math.max(habits.leastAnswerBytes, length(random, habits.mostBytes)),
    hasLength: !isBodiless && random.chance(0.5),
    hasTrailers: !isBodiless && random.chance(0.2),
    interimHeads: random.chance(0.1) ? random.whole(1, 3) : 0,
    pieces: random.whole(1, 6),
    thinkMs: random.chance(0.5) ? 0 : random.size(300),
    uploadBytes: uploads ? Math.max(habits.leastBytes, 1, length(random, habits.mostBytes)) : 0,
    answersEarly: fate === "stop" || random.chance(0.2),
    cancelAfterMs: cancels ? random.size(500) : undefined,
    readMs: random.chance(habits.slowness) ? random.size(habits.slowness * 1_000) : 0,
    extra: extraFields(tag, random),
  };
}

function length(random: Random, most: number): number {
  return random.chance(0.2) ? Math.min(most, random.pick(edges)) : random.size(most);
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
export function headOf({ tag, status, hasLength, answerBytes }: Plan): [string, string][] {
  const head: [string, string][] = [
    [":status", String(status)],
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
