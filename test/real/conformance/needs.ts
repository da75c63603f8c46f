import type { Need } from "../rig/parts.ts";

/** Besides what every cluster of the rig needs. */
export const conformanceNeeds: readonly Need[] = [
  "kubectl",
  "ginkgo",
  "kube-scheduler",
  "kube-controller-manager",
  "e2e.test",
];
