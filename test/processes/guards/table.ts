/**
 * The guards (checks in the sources) of rows A39 to A50 of docs/attacks.md, each with the test that must fail if the
 * guard is removed.
 */
import type { Mutation } from "../../simulation/mutated.ts";

export type Guard = {
  readonly row: string;
  /** Completes the sentence "without it ...". */
  readonly without: string;
  readonly removal: Mutation | readonly Mutation[];
  readonly test: string;
  /** Part of the title of the test that must fail. */
  readonly fails: string;
};

const identity = "test/upstream/identity/asserted-identity.test.ts";
const identify = "test/upstream/context/upstream-fields.test.ts";
const hosts = "test/proxy/tls/sni-hosts.test.ts";
const through = "test/flows/identity-through.test.ts";
const tls = "test/attacks/whole/tls.test.ts";
const certificates = "test/proxy/tls/certificates.test.ts";

export const guards: readonly Guard[] = [
  {
    row: "A39",
    without: "a client's X-Remote-* goes upstream beside the proxy's",
    removal: {
      file: "upstream/identity/asserted-identity.ts",
      find: "field.role === role.identity && !isImpersonation(field);",
      replace: "field.role === role.auditId;",
    },
    test: identity,
    fails: "what could pass for an identity is dropped in any spelling",
  },
  {
    row: "A39",
    without: "an underscore goes past the rule",
    removal: {
      file: "upstream/identity/asserted-identity.ts",
      find: 'return isPlain.test(name) ? name : name.replace(/[^0-9a-z]/g, "-");',
      replace: "return name;",
    },
    test: identity,
    fails: "under the configured names of the apiserver",
  },
  {
    row: "A39",
    without: "any mark but - and _ goes past the rule",
    removal: {
      file: "h2/core/field.ts",
      find: "x[^0-9a-z]remote[^0-9a-z]",
      replace: "x[-_]remote[-_]",
    },
    test: identity,
    fails: "what could pass for an identity is dropped in any spelling",
  },
  {
    row: "A39",
    without: "only the usual names are dropped, not the configured ones",
    removal: {
      file: "upstream/identity/asserted-identity.ts",
      find: "const words = new Set(own);",
      replace: "const words = new Set<string>();",
    },
    test: identity,
    fails: "under the configured names of the apiserver",
  },
  {
    row: "A39",
    without: "nothing of the client's own is dropped on the way",
    removal: {
      file: "upstream/context/upstream-fields.ts",
      find: "if (drops?.(field) === true) continue;",
      replace: "",
    },
    test: through,
    fails: "a certificate is its user and groups, whatever else its holder says",
  },
  {
    row: "A38, A39",
    without: "a trailer says what a header may not",
    removal: {
      file: "proxy/request/exchange.ts",
      find: "fields.filter((field) => !drops(field))",
      replace: "fields",
    },
    test: through,
    fails: "passes in its trailers",
  },
  {
    row: "A39",
    without: "a client without a certificate sets its own identity where certificates identify clients",
    removal: {
      file: "upstream/identity/asserted-identity.ts",
      find: "asserted === undefined ? identity.strips : asserted.drops",
      replace: "asserted?.drops",
    },
    test: identify,
    fails: "a client cannot set such a field where certificates identify clients",
  },
  {
    row: "A40",
    without: "Connection takes an identity away",
    removal: {
      file: "proxy/h1/h1-request.ts",
      find: "if (forbidden !== undefined) return",
      replace: "if (forbidden === options) return",
    },
    test: "test/proxy/h1/h1-request.test.ts",
    fails: "Connection cannot take away",
  },
  {
    row: "A41",
    without: "an impersonated client impersonates a third user",
    removal: {
      file: "upstream/context/upstream-fields.ts",
      find: "if (!fields.some((field) => identity.isPresumptuous(field))) return identity;",
      replace: "return identity;",
    },
    test: identify,
    fails: "where the proxy impersonates, a client cannot impersonate",
  },
  {
    row: "A41",
    without: "a certificate with a service account's name gains the groups of service accounts",
    removal: {
      file: "upstream/identity/asserted-identity.ts",
      find: 'own.length === 0 && name.startsWith("system:serviceaccount:")',
      replace: "own.length < 0",
    },
    test: identity,
    fails: "an impersonated user has the groups of the certificate and no other",
  },
  {
    row: "A42",
    without: "a connection made for one host asks for another's",
    removal: {
      file: "upstream/context/upstream-fields.ts",
      find: "if (!client.mayAsk(request.authority))",
      replace: "if (client.port < 0)",
    },
    test: hosts,
    fails: "another host's name is asked for in vain (421)",
  },
  {
    row: "A42",
    without: "requests with a certified identity travel on connections of other trust classes",
    removal: {
      file: "proxy/request/exchange-request.ts",
      find: "const of = asserted?.trust ?? trust.classOf(credential);",
      replace: "const of = trust.classOf(credential);",
    },
    test: "test/upstream/pool/shard.test.ts",
    fails: "never meet on an upstream connection (D9)",
  },
  {
    row: "A43",
    without: "unproven bearers travel on the connections of the proven",
    removal: {
      file: "upstream/identity/trust.ts",
      find: 'this.#known(credential).provenUntil > this.#clock.now() ? "proven" : "unproven";',
      replace: 'this.#known(credential).provenUntil >= 0 ? "proven" : "proven";',
    },
    test: "test/attacks/whole/unauthenticated.test.ts",
    fails: "A43",
  },
  {
    row: "A43",
    without: "invented bearers push out those that are good",
    removal: {
      file: "upstream/identity/trust.ts",
      find: "if (isAccepted && !this.#bearers.has(known.key))",
      replace: "if (!this.#bearers.has(known.key))",
    },
    test: "test/upstream/identity/trust.test.ts",
    fails: "push out none that was (A43)",
  },
  {
    row: "A44",
    without: "connections go on under a certificate that was replaced",
    removal: {
      file: "upstream/pool/connection-pool.ts",
      find: "      for (const connection of shard.connections) connection.isOutdated = true;\n      if (!wasProven) retireOutdated(shard);\n      this.#dial(shard);\n",
      replace: "",
    },
    test: "test/upstream/pool/shard.test.ts",
    fails: "A44",
  },
  {
    row: "A44",
    without: "a client's certificate counts after its end",
    removal: {
      file: "upstream/context/upstream-fields.ts",
      find: "if (identity.notAfter <= clock.wall())",
      replace: "if (identity.notAfter <= 0)",
    },
    test: identify,
    fails: "an expired or unproven certificate",
  },
  {
    row: "A44",
    without: "no client is sent away before its certificate ends",
    removal: {
      file: "proxy/downstream/listen.ts",
      find: "if (one.client.leavesAt <= wall) one.client.sendAway();",
      replace: "void wall;",
    },
    test: through,
    fails: "shortly before its certificate ends a client is sent away",
  },
  {
    row: "A45",
    without: "TLS 1.1 is spoken, with what it has",
    // Both guards are removed, because each alone still prevents TLS 1.1: none of the allowed ciphers works before TLS
    // 1.2.
    removal: [
      {
        file: "proxy/tls/server-context.ts",
        find: 'minVersion: "TLSv1.2",',
        replace: 'minVersion: "TLSv1",',
      },
      {
        file: "proxy/tls/server-context.ts",
        find: '].join(":"),',
        replace: '].join(":") && "ALL:@SECLEVEL=0",',
      },
    ],
    test: certificates,
    fails: "(A45)",
  },
  {
    row: "A45",
    without: "whatever OpenSSL has is agreed on",
    removal: { file: "proxy/tls/server-context.ts", find: '].join(":"),', replace: '].join(":") && "ALL",' },
    test: tls,
    fails: "A45",
  },
  {
    row: "A46",
    without: "a client renegotiates",
    removal: {
      file: "proxy/tls/server-context.ts",
      find: "constants.SSL_OP_NO_RENEGOTIATION | ",
      replace: "",
    },
    test: tls,
    fails: "A46",
  },
  {
    row: "A47",
    without: "there are tickets where certificates count",
    removal: {
      file: "proxy/tls/server-context.ts",
      find: "export function serverTlsOptions(wholeOnly = false): tls.SecureContextOptions {",
      replace:
        "export function serverTlsOptions(isAsking = false): tls.SecureContextOptions { const wholeOnly = isAsking && isAsking !== isAsking;",
    },
    test: through,
    fails: "A47",
  },
  {
    row: "A48",
    without: "a capital letter leads past a client CA",
    removal: {
      file: "proxy/tls/sni-hosts.ts",
      find: 'name.toLowerCase().replace(/\\.$/, "")',
      replace: 'name.replace(/\\.$/, "")',
    },
    test: hosts,
    fails: "A48",
  },
  {
    row: "A48",
    without: "a dot behind a name leads to another host",
    removal: {
      file: "proxy/tls/sni-hosts.ts",
      find: 'name.toLowerCase().replace(/\\.$/, "")',
      replace: "name.toLowerCase()",
    },
    test: hosts,
    fails: "another host's name is asked for in vain",
  },
  {
    row: "A49",
    without: "only h2 is agreed on",
    removal: {
      file: "proxy/tls/handshake.ts",
      find: 'ALPNProtocols: ["h2", "http/1.1"],',
      replace: 'ALPNProtocols: ["h2"],',
    },
    test: tls,
    fails: "A49",
  },
  {
    row: "A50",
    without: "a pair is taken unread, as Node takes it",
    removal: {
      file: "proxy/tls/serving-pair.ts",
      find: "if (leaf === undefined) return notAPair(certificates, key);",
      replace: "",
    },
    test: certificates,
    fails: "another's key is refused once",
  },
  {
    row: "A50",
    without: "an expired certificate is served",
    removal: {
      file: "proxy/tls/serving-pair.ts",
      find: "const failure = outOfDate(chain, wallMs) ?? (use && faultForGo(all, chain, { use, wallMs }));",
      replace: "const failure = undefined;",
    },
    test: certificates,
    fails: "an expired certificate is refused once",
  },
  {
    row: "A50",
    without: "a new CA counts unproven",
    removal: {
      file: "proxy/tls/ca-bundle.ts",
      find: "const failure = outlived(ca, clock.wall()) ?? (await prove(ca));",
      replace: "const failure = outlived(ca, clock.wall()); await prove(ca);",
    },
    test: "test/proxy/tls/ca-bundle.test.ts",
    fails: "a CA that no backend's certificate leads to waits until one does",
  },
  {
    row: "A50",
    without: "a new pair counts unproven",
    removal: {
      file: "proxy/tls/certificates.ts",
      find: "isSamePair(loaded.pair, was.pair) ? undefined : await prove?.(loaded.pair, was.pair);",
      replace: "(await prove?.(loaded.pair, was.pair)) && undefined;",
    },
    test: certificates,
    fails: "a pair that a backend rejects waits",
  },
  {
    row: "A50",
    without: "what is wrong is told again at each look",
    removal: {
      file: "proxy/tls/reloading-file.ts",
      find: "if (failure.message !== this.#problem || this.#current === undefined)",
      replace: "if (failure.message !== undefined)",
    },
    test: certificates,
    fails: "is refused once",
  },
];
