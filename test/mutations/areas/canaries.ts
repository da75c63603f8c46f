/** Faults in the canaries, which show the identity that a backend takes, and in what follows from them. */
import { type Defect, defect } from "../defect.ts";

const answers = "upstream/identity/canary";
const proof = "upstream/identity/identity-proof";
const proofs = "proxy/tls/identity-proofs";
const flow = "flows/unproven-identity";
const whole = "processes/identity-canary";

export const canaries: readonly Defect[] = [
  defect(
    "an impersonator that is anonymous to a backend is proven",
    { file: `${answers}.ts`, find: "name !== anonymous && message.includes", replace: "message.includes" },
    [answers, "takes the impersonator for an anonymous client"],
  ),
  defect(
    "another user in the answer is a proof",
    { file: `${answers}.ts`, find: "if (name !== canary.user) return refused(becomes(name));", replace: "" },
    [answers, "another identity is a refusal"],
  ),
  defect(
    "the canary's user without its group is a proof",
    {
      file: `${answers}.ts`,
      find: "if (!groups.includes(canary.group))",
      replace: "if (groups.length === 0)",
    },
    [answers, "another identity is a refusal"],
  ),
  defect(
    "a 401 shows nothing",
    {
      file: `${answers}.ts`,
      find: "if (status === 401) return refused(",
      replace: "if (status === 401) return none(",
    },
    [answers, "a 401 is a refusal"],
  ),
  defect(
    "a 403 that names another user is a proof",
    { file: `${answers}.ts`, find: "if (name === user ||", replace: "if (name !== undefined ||" },
    [answers, "a 403 is one unless it names the canary"],
  ),
  defect(
    "a missing uid is not told",
    { file: `${answers}.ts`, find: "gap: hasUid ?", replace: "gap: hasUid || user ?" },
    [answers, "a missing uid a proof with a gap"],
  ),
  defect(
    "a refusal leaves a proven backend proven",
    {
      file: `${proof}.ts`,
      find: '{ verdict: "refused", problem',
      replace: "{ verdict: proof.verdict, problem",
    },
    [proof, "each verdict and each answer"],
  ),
  defect(
    "an answer without a result is a proof",
    {
      file: `${proof}.ts`,
      find: "{ ...proof, problem,",
      replace: '{ ...proof, verdict: "proven", problem,',
    },
    [proof, "each verdict and each answer"],
  ),
  defect(
    "a backend at another address keeps its proof",
    {
      file: `${proofs}.ts`,
      find: "if (backends.get(entry.backend) !== entry.address)",
      replace: "if (!backends.has(entry.backend))",
    },
    [proofs, "at another address is a new one"],
  ),
  defect(
    "the answer to the canary of an old certificate counts",
    { file: `${proofs}.ts`, find: "if (this.#entries.get(entry.backend) !== entry) return;", replace: "" },
    [proofs, "the answer to an old canary does not"],
  ),
  defect(
    "a backend that takes no identity gets one",
    {
      file: "upstream/pool/connection-pool.ts",
      find: "return this.#options.mayCarry?.(key.trust) ?? true;",
      replace: "return key.trust !== undefined;",
    },
    [flow, "is never sent on that connection"],
  ),
  defect(
    "a client waits although every backend refuses its identity",
    {
      file: "proxy/request/exchange.ts",
      find: 'if (failure.code === "unproven-identity") return this.#failed(failure);',
      replace: "",
    },
    [flow, "if all backends refuse"],
  ),
  defect(
    "connections with an unproven certificate take requests after its replacement",
    {
      file: "upstream/pool/connection-pool.ts",
      find: "if (!wasProven) retireOutdated(shard);",
      replace: "",
    },
    [flow, "connections of a certificate that was not proven"],
  ),
  defect(
    "a wrong pair in the files of a running proxy replaces the proven one",
    {
      file: "proxy/tls/credentials.ts",
      find: "if (refusal !== undefined) return unsuitable(",
      replace: "if (refusal === undefined) return unsuitable(",
    },
    [whole, "a wrong pair in the files of a running proxy is refused"],
  ),
  defect(
    "a worker believes a proof of another certificate",
    {
      file: "proxy/tls/credentials.ts",
      find: "find(({ fingerprint }) => fingerprint === this.#presented)",
      replace: 'find(({ fingerprint }) => fingerprint !== "")',
    },
    ["proxy/tls/credentials", "a process that is told the proofs takes no other"],
  ),
  defect(
    "a worker's connections with an unproven certificate take requests after its replacement",
    {
      file: "proxy/tls/credentials.ts",
      find: '(backend) => before[backend]?.verdict === "proven"',
      replace: "() => before !== null",
    },
    ["proxy/tls/credentials", "a process that is told the proofs takes no other"],
  ),
  defect(
    "check takes a refusal for a warning",
    {
      file: "ops/cli/serve/check.ts",
      find: 'finding(answer.kind === "none" && suspicion === "" ? "!" : "✗",',
      replace: 'finding("!",',
    },
    [whole, "check asks each backend with a canary"],
  ),
];
