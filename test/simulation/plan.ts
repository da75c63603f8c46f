/** The plan of one request, which the client and the backend both follow. */
import type { Random } from "./random.ts";

export type Fate =
  /** A complete response. */
  | "answer"
  /**
   * A complete response and then RST_STREAM(NO_ERROR): the backend does not want the rest of the upload (RFC 9113
   * §8.1).
   */
  | "stop"
  /** No response: the client cancels. */
  | "silence"
  /** The first backend that receives the request refuses the stream. The next one answers. */
  | "refuse"
  /** A reset before the response head. */
  | "reset-early"
  /** A reset within the response body. */
  | "reset-late"
  /** 401, and GOAWAY on the whole connection, as an apiserver does (watch.md W7). */
  | "unauthorized";

export type Plan = {
  readonly tag: number;
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly fate: Fate;
  /** The client's own token, a token that the backend refuses, or none. Without a token the client is anonymous. */
  readonly credential: "own" | "bad" | "none";
  readonly status: number;
  /** The error code with which the backend resets the stream, if the fate is a reset. */
  readonly resetCode: number;
  /** Size of the response body. */
  readonly answerBytes: number;
  readonly hasLength: boolean;
  readonly hasTrailers: boolean;
  readonly interimHeads: number;
  /** Number of pieces in which the backend writes the response body, and its pause before each piece. */
  readonly pieces: number;
  readonly thinkMs: number;
  /** Size of the request body. 0: none. */
  readonly uploadBytes: number;
  /** True if the backend answers before it has received the request body. */
  readonly answersEarly: boolean;
  /** The client cancels after this time. Undefined: never. */
  readonly cancelAfterMs: number | undefined;
  /** The pause of a body's reader after each piece: the client for the response, the backend for the request. */
  readonly readMs: number;
  /** Additional header fields. Some names occur more than once. */
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
/** Error codes of planned resets. REFUSED_STREAM is missing, because it is a fate of its own. */
const resetCodes = [0, 1, 2, 3, 5, 6, 8, 9, 10, 11, 12, 13, 99] as const;
const statuses = [
  200, 200, 200, 200, 201, 202, 204, 301, 304, 400, 403, 404, 409, 422, 429, 500, 503,
] as const;
const bodiless = [204, 304];
/** Body sizes at and beside the sizes of frames, copies and windows, where one byte makes a difference. */
const edges = [
  1, 2_047, 2_049, 4_095, 4_096, 16_383, 16_384, 16_385, 65_535, 65_536, 262_143, 262_145,
] as const;

/** What all requests of one run have in common. */
export type Habits = {
  /** The largest body, the smallest request body and the smallest response body. */
  readonly mostBytes: number;
  readonly leastBytes: number;
  readonly leastAnswerBytes: number;
  readonly requests: number;
  /** The probability of any fate but a complete response, and the probability that the client cancels. */
  readonly trouble: number;
  readonly cancels: number;
  /** The probability that a reader is slow. Its longest pause is this many seconds. */
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
  // Four kinds of runs: few large requests; many uploads, half of which are cancelled; responses that are much larger
  // than a window, for slow readers; and, in most runs, a mixture.
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

/** The head of the planned response. The client must receive these fields in this order, and no others. */
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
