/** Faults in what the proxy learns from responses: about tokens, and about APIs that a backend does not serve. */
import { type Defect, defect } from "../defect.ts";

export const proof: readonly Defect[] = [
  defect(
    "a token is proven by a response from before its authentication",
    {
      file: "upstream/identity/trust.ts",
      find: "return isAuthenticated && answeredBy",
      replace: "return answeredBy",
    },
    ["flows/token-proof", "an invalid timeout, is answered before authentication"],
  ),
  defect(
    "a token is proven by the response to a CORS preflight",
    {
      file: "proxy/request/exchange-request.ts",
      find: 'kind === "long-running" || verb === ""',
      replace: 'kind === "long-running"',
    },
    ["flows/token-proof", "a CORS preflight, is answered before authentication"],
  ),
  defect(
    "an application's 401 makes a token unproven",
    {
      file: "proxy/request/exchange-request.ts",
      find: 'kind === "long-running" || verb === "") return "other";',
      replace: 'verb === "") return "other";\n  if (kind === "long-running") return "apiserver";',
    },
    ["flows/token-proof", "a 401 of an application behind a Service"],
  ),
  defect(
    "the 401 of an aggregated API's server makes a token unproven",
    {
      file: "proxy/request/exchange-request.ts",
      find: "? !origins.of({ group, version }).isForeign",
      replace: "? origins !== undefined && group !== version",
    },
    ["flows/token-proof", "a 401 of an aggregated API's server"],
  ),
  defect(
    "a webhook's 401 makes a token unproven",
    {
      file: "proxy/request/exchange-request.ts",
      find: 'return isRepeatable(context) ? "apiserver" : "webhook";',
      replace: 'return "apiserver";',
    },
    ["flows/token-proof", "a 401 of a webhook"],
  ),
  defect(
    "a value that the apiserver takes for no token is proven",
    { file: "upstream/identity/trust.ts", find: "/^bearer [!-~]/i", replace: "/^bearer [^ ]/i" },
    ["upstream/identity/trust", "what the apiserver does not read as a bearer"],
  ),
  defect(
    "an open watch whose token stays unproven keeps its place",
    {
      file: "proxy/limits/request-gate.ts",
      find: "      admission.leave(entry);\n  }",
      replace: "      return;\n  }",
    },
    ["flows/token-proof", "do not keep other new tokens waiting"],
  ),
  defect(
    "a write is sent again because of a 404",
    {
      file: "proxy/request/avoided-apis.ts",
      find: "path === null || !isRepeatable(context)",
      replace: "path === null",
    },
    ["flows/missing-apis", "a write is never sent again because of a 404"],
  ),
  defect(
    "a client is bound to the backend that serves what its own does not serve",
    {
      file: "proxy/request/exchange.ts",
      find: "if (this.#lacking === undefined && avoidedApis.avoided(this.#info).length === 0) client.bind(backend);",
      replace: "client.bind(backend);",
    },
    ["flows/missing-apis", "the client stays where it was"],
  ),
  defect(
    "an API that no backend serves is called missing",
    { file: "proxy/request/avoided-apis.ts", find: "if (status < 300 && lacking", replace: "if (lacking" },
    ["flows/missing-apis", "nothing is remembered"],
  ),
  defect(
    "paths that no backend serves are asked for twice without a limit",
    {
      file: "proxy/request/avoided-apis.ts",
      find: "if (this.#mayAsk(other)) return routers;",
      replace: "if (other !== undefined) return routers;",
    },
    ["flows/missing-apis", "only as far as their budget allows"],
  ),
  defect(
    "a subresource that one backend lacks moves all requests of its resource",
    { file: "proxy/request/avoided-apis.ts", find: "/${resource}/${subresource}`", replace: "/${resource}`" },
    ["flows/missing-apis", "a subresource that one backend does not serve"],
  ),
  defect(
    "a 404 alone makes requests avoid the backend",
    {
      file: "proxy/request/avoided-apis.ts",
      find: "if (this.#mayAsk(other)) return routers;",
      replace:
        'if (this.#mayAsk(other)) {\n      this.#served(info, "", [backend]);\n      return routers;\n    }',
    },
    ["flows/missing-apis", "shows no gap"],
  ),
  defect(
    "a gap never ends",
    {
      file: "proxy/request/avoided-apis.ts",
      find: "now < endsAt ? [backend] : []",
      replace: "endsAt > 0 ? [backend] : []",
    },
    ["flows/missing-apis", "a write is never sent again because of a 404"],
  ),
  defect(
    "no read confirms a gap before it ends",
    {
      file: "proxy/request/avoided-apis.ts",
      find: "testAt <= now && now < endsAt",
      replace: "testAt <= now && now > endsAt",
    },
    ["flows/missing-apis", "while reads of the API go on"],
  ),
  defect(
    "a read is sent again after the 404 of an aggregated API's server",
    {
      file: "proxy/request/avoided-apis.ts",
      find: "return !(isForeign && isKnown);",
      replace: "return isForeign || !isKnown || true;",
    },
    ["flows/missing-apis", "a 404 to a GET of /apis/metrics.k8s.io"],
  ),
  defect(
    "a gap goes on although no backend serves the resource",
    {
      file: "proxy/request/avoided-apis.ts",
      find: "    this.#notServed(info, routers);\n",
      replace: "",
    },
    ["flows/missing-apis", "a gap ends when the router of a second backend"],
  ),
  defect(
    "an object that does not exist shows nothing about its API",
    {
      file: "proxy/request/avoided-apis.ts",
      find: '    if (complaint === "no-object") this.#served(info, backend, lacking);\n',
      replace: "",
    },
    ["flows/missing-apis", "a read of an object that does not exist shows"],
  ),
  defect(
    "a router's 404 is known by its text only",
    {
      file: "proxy/request/held-response.ts",
      find: '    if (reason === "NotFound") return name === "" ? "no-route" : "no-object";\n',
      replace: "    void reason;\n    void name;\n",
    },
    ["proxy/request/held-response", "a 404 of the router is known by its reason"],
  ),
  defect(
    "a write tests a backend that cannot reach the API",
    {
      file: "proxy/request/avoided-apis.ts",
      find: 'context.kind !== "plain" || !isRepeatable(context) || !this.#budget.isOpen',
      replace: "!this.#budget.isOpen",
    },
    ["flows/grey-backend", "a write never tests an unreachable API"],
  ),
  defect(
    "a backend that cannot reach an API is forgotten while only writes come",
    {
      file: "proxy/request/avoided-apis.ts",
      find: "one.endsAt = Math.max(one.endsAt, now + apiFailureLimits.forgetMs);",
      replace: "void one;",
    },
    ["flows/grey-backend", "a write never tests an unreachable API"],
  ),
  defect(
    "a backend that cannot reach an API gets all its reads after a while",
    {
      file: "proxy/request/avoided-apis.ts",
      find: "    one.testAt = now + apiFailureLimits.trialMs;\n",
      replace: "",
    },
    ["flows/grey-backend", "one read finds out"],
  ),
  defect(
    "the Status of a binding shows no version",
    {
      file: "proxy/observe/write-tap.ts",
      find: ' || subresource === "status" || isOfPod(info)',
      replace: ' || subresource === "status"',
    },
    ["flows/watch-delay", "the Status of a binding or an eviction shows"],
  ),
];
