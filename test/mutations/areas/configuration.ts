/** Faults in reading a configuration. */
import { type Defect, defect } from "../defect.ts";

export const configuration: readonly Defect[] = [
  defect(
    "one unusable certificate ends the start of all listeners",
    { file: "proxy/downstream/listeners.ts", find: "isTolerated ? undefined : ", replace: "" },
    ["processes/bad-configs", "at the start, a listener whose certificate is unusable"],
  ),
  defect(
    "a map as the value of an enum key throws",
    {
      file: "ops/config/schema.ts",
      find: 'typeof data === "string" ? didYouMean(data, allowed) : ""',
      replace: "didYouMean(String(data), allowed)",
    },
    ["ops/config/every-node", "each key with each kind of YAML node"],
  ),
  defect(
    "an exception while a configuration is read reaches the poll",
    {
      file: "ops/config/config.ts",
      find: "    return [problemOf(file, `cannot be read because of",
      replace:
        "    if (text !== undefined) throw reason;\n    return [problemOf(file, `cannot be read because of",
    },
    ["ops/config/every-node", "an exception while a configuration is read"],
  ),
  defect(
    "an uncaught exception of the control side drains the process",
    { file: "ops/cli/serve/signals.ts", find: 'if (scope !== "process") return;', replace: "" },
    ["processes/control-side", "an exception or rejection of the control side"],
  ),
  defect(
    "after an exception in a microtask, the data path runs in the part that threw",
    { file: "events/guarded-clock.ts", find: "  parts.enterWith(undefined);\n", replace: "" },
    ["processes/control-side", "an exception of the data path drains the process"],
  ),
  defect(
    "an entry of a pod's list that is no map gets a sidecar",
    {
      file: "ops/cli/deploy/patch-workload.ts",
      find: "Array.isArray(value) && value.every(isRecord)",
      replace: "Array.isArray(value)",
    },
    ["ops/cli/deploy/patch-workload", "a value of a wrong kind at any place of a workload"],
  ),
  defect(
    "a file of another version gets a line for each of its keys",
    { file: "ops/config/schema.ts", find: "isAboutKind(error) && ", replace: "error === undefined && " },
    ["ops/config/schema", "a file of another kind gets one line about that"],
  ),
  defect(
    "the second of two equal keys wins",
    {
      file: "ops/config/yaml-document.ts",
      find: "if (this.keyAt.has(at)) this",
      replace: "if (at === '') this",
    },
    ["ops/config/yaml-document", "every duplicate key is named with its place"],
  ),
  defect(
    "a rule reads what is invalid",
    { file: "ops/config/rules.ts", find: "!reads.some(isInvalid)", replace: "!reads.every(isInvalid)" },
    ["ops/config/rules", "a rule is asked when all that it reads has passed the schema"],
  ),
  defect(
    "a configuration does not name all of its files",
    { file: "ops/config/config.ts", find: "    files.add(whole);\n", replace: "" },
    ["ops/config/config", "a configuration lists each file that it names, once"],
  ),
  defect(
    "a process on a shared port accepts clients before a backend is ready",
    { file: "main.ts", find: "return isShared || ", replace: "return " },
    [
      "processes/cli/serve/shared-port",
      "on a shared port, a process accepts clients when a backend is ready",
    ],
  ),
  defect(
    "discovery takes an address that is no text",
    {
      file: "ops/discovery/kubernetes-objects.ts",
      find: 'typeof host === "string" && isIpAddress(host)',
      replace: "isIpAddress(host as string)",
    },
    ["ops/discovery/answers", "discovery by EndpointSlice"],
  ),
  defect(
    "discovery takes a slice that a client created",
    {
      file: "ops/discovery/kubernetes-objects.ts",
      find: '["name"] !== ownSlice)',
      replace: '["name"] === "")',
    },
    ["ops/discovery/kubernetes-objects", "a slice of another name"],
  ),
  defect(
    "discovery takes a Lease of any name",
    { file: "ops/discovery/kubernetes-objects.ts", find: "!leaseName.test(name) ||", replace: "" },
    ["ops/discovery/kubernetes-objects", "whose name is not that of an identity Lease"],
  ),
  defect(
    "discovery reads every Lease before it counts them",
    { file: "ops/discovery/discover.ts", find: " && items.length <= most) return", replace: ") return" },
    ["ops/discovery/account-transport", "more of them than can be apiservers' are a failure"],
  ),
  defect(
    "a user loses the groups of a review that are no text",
    {
      file: "ops/admin/authorization/reviews.ts",
      find: 'Array.isArray(value) && value.every((one) => typeof one === "string") ? value : undefined',
      replace: 'Array.isArray(value) ? value.filter((one) => typeof one === "string") : []',
    },
    ["ops/discovery/answers", "names the whole user, or none"],
  ),
];
