import type { Need } from "../rig/parts.ts";

/** What the conformance suite needs in addition to `clusterNeeds`. */
export const conformanceNeeds: readonly Need[] = [
  "kubectl",
  "ginkgo",
  "kube-scheduler",
  "kube-controller-manager",
  "e2e.test",
];
