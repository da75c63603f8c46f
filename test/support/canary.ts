/** How played backends answer the canaries with which the proxy tests its own certificates (proxy/identity/canary.ts). */
import { canaryPath } from "../../src/upstream/identity/canary.ts";

export { canaryPath };

type Answer = {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(text: string): unknown;
};

/**
 * How an apiserver treats asserted identities. takes: as kubeadm configures it. drifted: its --requestheader-* flags no
 * longer name the proxy's certificate. no-uid: it has no --requestheader-uid-headers. busy: it answers 429. old: it has no
 * SelfSubjectReview.
 */
export type Manner = "takes" | "drifted" | "no-uid" | "busy" | "old";

/** The common name of a client certificate ("" for none), and whether it is valid and of a known CA. */
type Shown = { readonly name: string; readonly isValid: boolean };

/**
 * Answers a SelfSubjectReview as an apiserver does. An apiserver takes an asserted identity only from the front proxy or
 * an impersonator, and any other valid certificate for a client's.
 */
export function answerCanary(
  response: Answer,
  { name, isValid }: Shown,
  rawHeaders: readonly string[],
  manner: Manner = "takes",
): void {
  const valuesOf = (...names: string[]): string[] =>
    rawHeaders.filter((_, at, all) => at % 2 === 1 && names.includes(all[at - 1]?.toLowerCase() ?? ""));
  const [user] = name === "impersonator" ? valuesOf("impersonate-user") : valuesOf("x-remote-user");
  const mayAssert = manner !== "drifted" && /^(front-proxy|impersonator$)/.test(name);
  const isAsserted = user !== undefined && mayAssert;
  const groups = isAsserted ? valuesOf("x-remote-group", "impersonate-group") : [];
  const [uid] = manner === "no-uid" ? [] : valuesOf("x-remote-uid", "impersonate-uid");
  const userInfo = {
    username: isAsserted ? user : name,
    groups: [...groups, "system:authenticated"],
    ...(isAsserted && uid !== undefined ? { uid } : {}),
  };
  response.statusCode = isValid ? ({ busy: 429, old: 404 }[manner as string] ?? 201) : 401;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ kind: "SelfSubjectReview", status: { userInfo } }));
}
