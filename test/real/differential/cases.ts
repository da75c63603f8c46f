/**
 * The requests, drawn from a seed. Each kind draws from lists of what clients really send and of what they should not;
 * `{ns}` in path, fields or body becomes the side's namespace.
 */
import type { Field, Request } from "./send.ts";

export type Case = Request & {
  readonly kind: string;
  /** Changes something: sent once a side, in order. What only reads may be asked again when the world moved. */
  readonly mutates: boolean;
};

/** mulberry32: small, and the same on every machine. */
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

const bearer = (token: string): Field => ["authorization", `Bearer ${token}`];
const admin = bearer("admin-token-of-the-rig");

const protobuf = "application/vnd.kubernetes.protobuf";
const table = "application/json;as=Table;v=v1;g=meta.k8s.io";
const partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const partialList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

const accepts: readonly (readonly string[])[] = [
  [],
  ["application/json"],
  [protobuf],
  [`${protobuf},application/json`],
  ["application/yaml"],
  [table],
  [`${table},application/json`],
  [partial],
  [partialList],
  [`${protobuf};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io`],
  ["*/*"],
  ["text/html"],
  ["application/cbor"],
  ["application/json", "application/yaml"], // twice: the first is what Go's Get sees
  ["application/yaml", "application/json"],
  ["application/json;q=0.1, application/yaml;q=0.9"],
  ["", "application/json"],
  ["nonsense"],
];

const collections = [
  "/api/v1/namespaces/{ns}/configmaps",
  "/api/v1/namespaces/{ns}/secrets",
  "/api/v1/namespaces/{ns}/pods",
  "/api/v1/namespaces/{ns}/services",
  "/apis/apps/v1/namespaces/{ns}/deployments",
  "/apis/rbac.authorization.k8s.io/v1/clusterroles",
  "/apis/scheduling.k8s.io/v1/priorityclasses",
  "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
];

const things = [
  "/api/v1/namespaces/{ns}",
  "/api/v1/namespaces/{ns}/configmaps/fixed-0",
  "/api/v1/namespaces/{ns}/configmaps/large",
  "/api/v1/namespaces/{ns}/configmaps/missing",
  "/api/v1/namespaces/{ns}/pods/echo",
  "/api/v1/namespaces/{ns}/pods/echo/status",
  "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin",
  "/apis/apps/v1/namespaces/{ns}/deployments/web/scale",
];

const documents = [
  "/",
  "/api",
  "/apis",
  "/api/v1",
  "/apis/apps",
  "/apis/apps/v1",
  "/version",
  "/readyz",
  "/readyz?verbose",
  "/livez/ping",
  "/healthz/etcd",
  "/openapi/v2",
  "/openapi/v3",
  "/openapi/v3/apis/apps/v1",
  "/.well-known/openid-configuration",
  "/openid/v1/jwks",
  "/nonsense",
  "/apis/nobody.example/v1/things",
];

const queries = [
  "",
  "?limit=1",
  "?limit=3&resourceVersion=0",
  "?resourceVersion=0",
  "?resourceVersion=nonsense",
  "?resourceVersionMatch=Exact",
  "?labelSelector=group%3Deven",
  "?labelSelector=group+in+(even,odd)",
  "?labelSelector=%3D%3D",
  "?fieldSelector=metadata.name%3Dfixed-1",
  "?fieldSelector=nonsense%3D1",
  "?pretty=true",
  "?pretty",
  "?limit=nonsense",
  "?continue=nonsense",
  "?limit=1&limit=2",
  "?Limit=1",
  "?limit=1;limit=2",
  "?%6cimit=1",
  "?a=%zz",
  "?a=%",
  "?&&=&",
  "?a=b=c&d=%26%3D%00",
  "??limit=1",
  "?includeObject=None",
  "?includeObject=Object",
  "?timeoutSeconds=5",
  "?fieldManager=x%20y",
  `?x=${"long".repeat(1_000)}`,
];

/** %2f, //, dot segments, trailing slashes, case, escapes that need none, and bytes outside ASCII. */
const oddPaths = [
  "//api/v1/namespaces/{ns}/configmaps",
  "/api//v1/namespaces/{ns}/configmaps",
  "/api/v1/namespaces//{ns}/configmaps",
  "/api/v1/namespaces/{ns}/configmaps/",
  "/api/v1/namespaces/{ns}/configmaps//",
  "/api/v1/namespaces/{ns}/configmaps/fixed-0/",
  "/api/v1/namespaces/{ns}%2fconfigmaps",
  "/api/v1/namespaces/{ns}%2Fconfigmaps/fixed-0",
  "/api/v1/namespaces/{ns}/configmaps/fixed%2d0",
  "/api/v1/namespaces/{ns}/configmaps/fixed%252d0",
  "/%61pi/v1/namespaces/{ns}/configmaps/fixed-0",
  "/api/v1/./namespaces/{ns}/configmaps/fixed-0",
  "/api/v1/nodes/../namespaces/{ns}/configmaps",
  "/api/v1/namespaces/{ns}/configmaps/..",
  "/api/v1/namespaces/{ns}/configmaps/.",
  "/../api/v1",
  "/..%2fapi/v1",
  "/api/v1/namespaces/{ns}/configmaps/%2e%2e/secrets",
  "/API/v1/namespaces",
  "/api/v1/Namespaces",
  "/api/v1/namespaces/{ns}/configmaps/na%C3%AFve",
  "/api/v1/namespaces/{ns}/configmaps/na%zzve",
  "/api/v1/namespaces/{ns}/configmaps/a;b=c",
  "/api/v1/namespaces/{ns}/configmaps/a%20b",
  "/api/v1/namespaces/{ns}/configmaps/a+b",
  "/api/v1/namespaces/{ns}/configmaps/a%00b",
  "/api/v1/namespaces/{ns}/configmaps/fixed-0?",
  "/api/v1/namespaces/{ns}/configmaps/fixed-0/nonsense",
  "/api/v1/namespaces/{ns}/configmaps/fixed-0#fragment",
  "/api/v1/watch/nonsense/things",
  "/apis//apps/v1",
  "/apis/apps/v1/",
  "/version/",
  "/version//",
  "/readyz/",
  "/a|b^c`d{e}",
  `/${"long/".repeat(400)}`,
];

const methods = [
  "HEAD",
  "OPTIONS",
  "TRACE",
  "FOO",
  "get",
  "PROPFIND",
  "LOCK",
  "PUT",
  "DELETE",
  "POST",
  "PATCH",
];

function configMap(name: string, data: Record<string, string>, more: object = {}): Buffer {
  const metadata = { name, namespace: "{ns}", ...more };
  return Buffer.from(JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata, data }));
}

const contentTypes = [
  "application/json",
  "application/json; charset=utf-8",
  "application/yaml",
  protobuf,
  "text/plain",
  "application/x-www-form-urlencoded",
  "nonsense",
  "",
];

const patchTypes = [
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/json-patch+json",
  "application/apply-patch+yaml",
  "application/json",
  "nonsense",
];

const patchBodies = [
  '{"data":{"patched":"yes"}}',
  '[{"op":"add","path":"/data/added","value":"1"}]',
  '[{"op":"test","path":"/data/none","value":"1"}]',
  '{"apiVersion":"v1","kind":"ConfigMap","data":{"applied":"yes"}}',
  '{"metadata":{"labels":{"group":"patched"}}}',
  '{"data":',
  "null",
  "",
  "\u0000\u0001",
];

/** The apiserver takes 3 MiB of body and etcd half of that; both edges, from both sides. */
const sizes = [
  0, 1, 100, 16_383, 16_385, 65_535, 200_000, 900_000, 1_048_000, 2_000_000, 3_145_728, 3_145_729,
];

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
      // On collections' neighbours only: DELETE of a collection would empty it for the rest.
      const path = dice.pick([...documents, `${collection}/missing`, "/api/v1/namespaces/{ns}/nonsense"]);
      return reading(path, acceptFields(dice), dice.pick(methods));
    },
  },
  create: {
    share: 9,
    draw: (dice, number) => {
      const size = dice.chance(0.25) ? dice.pick(sizes) : dice.below(400);
      // A generated name would sort anywhere in every later list: it is only rehearsed.
      const isGenerated = dice.chance(0.1);
      const more = isGenerated ? { name: undefined, generateName: "generated-" } : {};
      const body = configMap(`made-${number % 40}`, { filler: "x".repeat(size) }, more);
      const type = dice.chance(0.7) ? "application/json" : dice.pick(contentTypes);
      const drawn = dice.pick(["", "", "", "?dryRun=All", "?fieldValidation=Strict", "?fieldManager=differ"]);
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
      const fields: Field[] = [admin, ["content-type", dice.pick(patchTypes)], ...acceptFields(dice)];
      const query = dice.pick(["", "?fieldManager=differ", "?fieldManager=differ&force=true", "?dryRun=All"]);
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
        [bearer("")],
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

/** `count` requests, the same for the same seed; the kinds take turns by their shares. */
export function casesFor(seed: number, count: number): Case[] {
  const dice = new Dice(seed);
  const bag = Object.entries(kinds).flatMap(([kind, { share }]) => Array.from({ length: share }, () => kind));
  return Array.from({ length: count }, (_, number): Case => {
    const kind = dice.pick(bag);
    const protocol = dice.chance(0.6) ? "h2" : "h1";
    const drawn = kinds[kind]?.draw(dice, number);
    if (drawn === undefined) throw new Error(`Cannot draw "${kind}"`);
    return { kind, protocol, ...drawn };
  });
}
