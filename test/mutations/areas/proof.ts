/** Faults in what the proxy learns from responses: about tokens, and about APIs that a backend does not serve. */
import { type Defect, defect } from "../defect.ts";

export const proof: readonly Defect[] = [
  defect(
    "a token is proven by a response from before its authentication",
    {
      file: "proxy/identity/trust.ts",
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
    { file: "proxy/identity/trust.ts", find: "/^bearer [!-~]/i", replace: "/^bearer [^ ]/i" },
    ["proxy/identity/trust", "what the apiserver does not read as a bearer"],
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
];
