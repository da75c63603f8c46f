/**
 * The requests, drawn at random from a seed. Each kind draws from lists of valid and invalid inputs. `{ns}` in the
 * path, the header fields or the body becomes the namespace of the side that sends the request.
 */
import { METHODS } from "node:http";
import {
  accepts,
  admin,
  bearer,
  collections,
  configMap,
  contentTypes,
  documents,
  methods,
  oddPaths,
  patchBodies,
  patchTypes,
  queries,
  sizes,
  things,
} from "./inputs.ts";
import type { Field, Request } from "./send.ts";

export type Case = Request & {
  readonly kind: string;
  /**
   * True if the request changes something. Each side then sends it once, in order. A request that only reads may be
   * repeated if the two responses differ.
   */
  readonly mutates: boolean;
};

/** The random number generator mulberry32: small, and the same on every machine. */
function draws(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

class Dice {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = draws(seed);
  }

  below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }

  chance(part: number): boolean {
    return this.#next() < part;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
}

type Draw = (dice: Dice, number: number) => Omit<Case, "kind" | "protocol">;

function reading(
  path: string,
  fields: readonly Field[] = [],
  method = "GET",
): Omit<Case, "kind" | "protocol"> {
  return { method, path, fields: [admin, ...fields], mutates: false };
}

function acceptFields(dice: Dice): Field[] {
  return dice.pick(accepts).map((value): Field => ["accept", value]);
}

function encodings(dice: Dice): Field[] {
  const value = dice.pick(["", "", "gzip", "gzip", "identity", "gzip, deflate, br", "br"]);
  return value === "" ? [] : [["accept-encoding", value]];
}

const collection = "/api/v1/namespaces/{ns}/configmaps";

const kinds: Record<string, { readonly share: number; readonly draw: Draw }> = {
  list: {
    share: 24,
    draw: (dice) =>
      reading(dice.pick(collections) + dice.pick(queries), [...acceptFields(dice), ...encodings(dice)]),
  },
  get: {
    share: 14,
    draw: (dice) => {
      const query = dice.chance(0.3) ? dice.pick(queries) : "";
      return reading(dice.pick(things) + query, [...acceptFields(dice), ...encodings(dice)]);
    },
  },
  document: {
    share: 8,
    draw: (dice) => {
      const aggregated = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList";
      const etag: Field[] = dice.chance(0.2) ? [["if-none-match", '"nonsense"']] : [];
      const accept: Field[] = dice.chance(0.3) ? [["accept", aggregated]] : acceptFields(dice);
      return reading(dice.pick(documents), [...accept, ...encodings(dice), ...etag]);
    },
  },
  path: { share: 10, draw: (dice) => reading(dice.pick(oddPaths), acceptFields(dice)) },
  method: {
    share: 6,
    draw: (dice) => {
      // No path of a collection, because DELETE of a collection would remove its objects for all later requests.
      const path = dice.pick([...documents, `${collection}/missing`, "/api/v1/namespaces/{ns}/nonsense"]);
      return reading(path, acceptFields(dice), dice.pick(methods));
    },
  },
  create: {
    share: 9,
    draw: (dice, number) => {
      const size = dice.chance(0.25) ? dice.pick(sizes) : dice.below(400);
      // A generated name would have a random position in every later list, so such a request is a dry run.
      const isGenerated = dice.chance(0.1);
      const more = isGenerated ? { name: undefined, generateName: "generated-" } : {};
      const body = configMap(`made-${number % 40}`, { filler: "x".repeat(size) }, more);
      const type = dice.chance(0.7) ? "application/json" : dice.pick(contentTypes);
      const drawn = dice.pick([
        "",
        "",
        "",
        "?dryRun=All",
        "?fieldValidation=Strict",
        "?dryRun=All&fieldManager=differ",
      ]);
      const query = isGenerated ? "?dryRun=All" : drawn;
      const fields: Field[] = [admin, ["content-type", type], ...acceptFields(dice)];
      return { method: "POST", path: collection + query, fields, body, mutates: true };
    },
  },
  broken: {
    share: 4,
    draw: (dice) => {
      const bodies = [
        "",
        "{",
        "null",
        "[]",
        "\u0000",
        '{"kind":"Pod"}',
        '{"metadata":{"name":"UPPER"}}',
        "a: [b",
      ];
      const body = Buffer.from(dice.pick(bodies));
      const fields: Field[] = [admin, ["content-type", dice.pick(contentTypes)]];
      return {
        method: dice.pick(["POST", "PUT"]),
        path: `${collection}/made-1`,
        fields,
        body,
        mutates: true,
      };
    },
  },
  size: {
    share: 2,
    draw: (dice) => {
      const body = Buffer.alloc(dice.pick(sizes), "x");
      const fields: Field[] = [admin, ["content-type", "application/json"]];
      return { method: "PUT", path: `${collection}/made-1`, fields, body, mutates: true };
    },
  },
  change: {
    share: 7,
    draw: (dice) => {
      const path = `${collection}/made-${dice.below(40)}`;
      if (dice.chance(0.3)) {
        const fields: Field[] = [admin, ...acceptFields(dice)];
        const query = dice.pick(["", "?gracePeriodSeconds=0", "?propagationPolicy=Orphan", "?dryRun=All"]);
        return { method: "DELETE", path: path + query, fields, mutates: true };
      }
      const type = dice.pick(patchTypes);
      const fields: Field[] = [admin, ["content-type", type], ...acceptFields(dice)];
      // Only one field manager for each operation. Two managers would be listed in the order of the seconds in which
      // they last wrote, which may differ between the sides.
      const apply = ["", "?fieldManager=differ", "?fieldManager=differ&force=true"];
      const query = dice.pick(type.includes("apply") ? apply : ["", "?dryRun=All"]);
      return {
        method: "PATCH",
        path: path + query,
        fields,
        body: Buffer.from(dice.pick(patchBodies)),
        mutates: true,
      };
    },
  },
  credential: {
    share: 6,
    draw: (dice) => {
      const lists: readonly (readonly Field[])[] = [
        [],
        [bearer("nobody-knows-this-token")],
        [bearer("bob-token-of-the-rig")],
        [bearer("alice-token-of-the-rig")],
        [["authorization", "Basic YWRtaW46YWRtaW4="]],
        [["authorization", "nonsense"]],
        [["authorization", ""]],
        [bearer("bob-token-of-the-rig"), admin],
        [admin, bearer("nobody-knows-this-token")],
        [
          ["x-remote-user", "admin"],
          ["x-remote-group", "system:masters"],
        ],
        [admin, ["x-remote-user", "nobody"]],
      ];
      return {
        method: "GET",
        path: dice.pick([...things, "/version", "/api"]),
        fields: dice.pick(lists),
        mutates: false,
      };
    },
  },
  impersonation: {
    share: 4,
    draw: (dice) => {
      const groups = ["one", "two", "two", "system:authenticated"].slice(0, dice.below(5));
      const fields: Field[] = [admin, ["content-type", "application/json"]];
      if (dice.chance(0.9)) fields.push(["impersonate-user", "ida"]);
      for (const group of groups) fields.push(["impersonate-group", group]);
      if (dice.chance(0.5)) fields.push(["impersonate-extra-scopes", "a"], ["impersonate-extra-scopes", "b"]);
      if (dice.chance(0.2)) fields.push(["impersonate-uid", "uid-of-ida"]);
      const body = Buffer.from('{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}');
      const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
      return { method: "POST", path, fields, body, mutates: false };
    },
  },
  echo: {
    share: 12,
    draw: (dice) => {
      const paths = [
        "echo",
        "echo/a%2Fb//c/../d?x=1&x=2",
        "echo?a=%zz",
        "status/200",
        "status/204",
        "status/304",
      ];
      paths.push("status/404", "status/418", "status/500", "status/599", "bytes/0", "bytes/1", "bytes/20000");
      paths.push("bytes/1000000", "chunks/5", "repeated", "trailers", "empty", "hints", "early");
      const fields: Field[] = [admin];
      for (const field of [
        ["x-many", "one"],
        ["x-many", "two"],
        ["x-many", "two"],
        ["x-empty", ""],
        ["cookie", "a=1"],
        ["cookie", "b=2"],
        ["te", "trailers"],
        ["x-latin", "na\u00efve"],
        ["x-long", "v".repeat(8_000)],
        ["user-agent", "differ/1.0"],
        ["x-forwarded-proto", "http"],
        ["cache-control", "no-cache"],
        ["range", "bytes=0-10"],
        ["traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
      ] as const) {
        if (dice.chance(0.3)) fields.push(field);
      }
      const method = dice.pick(["GET", "GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS"]);
      const hasBody = method === "POST" || method === "PUT";
      const path = `/api/v1/namespaces/{ns}/pods/http:echo:8080/proxy/${dice.pick(paths)}`;
      const body = { body: Buffer.alloc(dice.pick([0, 1, 500, 100_000]), "b") };
      return { method, path, fields, mutates: true, ...(hasBody ? body : {}) };
    },
  },
  expect: {
    share: 2,
    draw: (dice, number) => {
      const body = configMap(`made-${number % 40}`, {
        filler: "e".repeat(dice.pick([10, 100_000, 3_200_000])),
      });
      const token = dice.chance(0.3) ? bearer("nobody-knows-this-token") : admin;
      const fields: Field[] = [token, ["content-type", "application/json"], ["expect", "100-continue"]];
      return { method: "POST", path: collection, fields, body, mutates: true };
    },
  },
  watch: {
    share: 2,
    draw: (dice) => {
      const starts = ["resourceVersion=0", "", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"];
      starts.push("resourceVersion=1", "resourceVersion=nonsense", "sendInitialEvents=true");
      const bookmarks = dice.chance(0.5) ? "&allowWatchBookmarks=true" : "";
      const path = `${collection}?watch=${dice.pick(["true", "1", ""])}&timeoutSeconds=1&${dice.pick(starts)}${bookmarks}`;
      return reading(path, acceptFields(dice));
    },
  },
};

/**
 * True for requests that the proxy cannot forward for an HTTP/1.1 client: see `refusals`, and the list in compare.ts.
 */
function h2Only({ method, path }: { readonly method: string; readonly path: string }): boolean {
  return !METHODS.includes(method) || path.includes("%zzve");
}

/**
 * Requests that an apiserver would accept as well-formed, but which the proxy rejects by design, each with the proxy's
 * response.
 */
export const refusals: readonly { readonly asked: Request; readonly answer: RegExp }[] = [
  // A path contains no fragment (RFC 9113 §8.3.1). The proxy rejects the request instead of cutting the fragment off.
  {
    asked: { protocol: "h2", method: "GET", path: "/version#fragment", fields: [admin] },
    answer: /^NaN .*PROTOCOL_ERROR/,
  },
  {
    asked: { protocol: "h1", method: "GET", path: "/version#fragment", fields: [admin] },
    answer: /^400 whole .*"reason":"BadRequest"/,
  },
  // Over HTTP/1.1, Go answers this path with 400 and plain text. Over HTTP/2, which the proxy uses to the apiserver, Go
  // resets the stream.
  {
    asked: { protocol: "h1", method: "GET", path: "/na%zzve", fields: [admin] },
    answer: /^400 whole .*"BadRequest"/,
  },
  // The proxy parses HTTP/1.1 with node:http, which accepts only the methods that it knows (design D8).
  {
    asked: { protocol: "h1", method: "FOO", path: "/version", fields: [admin] },
    answer: /^400 whole .*"reason":"BadRequest"/,
  },
];

/** Returns `count` requests, which depend only on the seed. A kind is drawn as often as its share says. */
export function casesFor(seed: number, count: number): Case[] {
  const dice = new Dice(seed);
  const bag = Object.entries(kinds).flatMap(([kind, { share }]) => Array.from({ length: share }, () => kind));
  return Array.from({ length: count }, (_, number): Case => {
    const kind = dice.pick(bag);
    const isH2 = dice.chance(0.6);
    const drawn = kinds[kind]?.draw(dice, number);
    if (drawn === undefined) throw new Error(`Cannot draw "${kind}"`);
    return { kind, protocol: isH2 || h2Only(drawn) ? "h2" : "h1", ...drawn };
  });
}
