/** Faults in reading a configuration. */
import { type Defect, defect } from "../defect.ts";

export const configuration: readonly Defect[] = [
  defect(
    "a file of another version gets a line for each of its keys",
    { file: "config/schema.ts", find: "isAboutKind(error) && ", replace: "error === undefined && " },
    ["config/schema", "a file of another kind gets one line about that"],
  ),
  defect(
    "the second of two equal keys wins",
    { file: "config/yaml-document.ts", find: "if (this.keyAt.has(at)) this", replace: "if (at === '') this" },
    ["config/yaml-document", "every duplicate key is named with its place"],
  ),
  defect(
    "a rule reads what is invalid",
    { file: "config/rules.ts", find: "!reads.some(isInvalid)", replace: "!reads.every(isInvalid)" },
    ["config/rules", "a rule is asked when all that it reads has passed the schema"],
  ),
  defect(
    "a configuration does not name all of its files",
    { file: "config/config.ts", find: "    files.add(whole);\n", replace: "" },
    ["config/config", "a configuration lists each file that it names, once"],
  ),
  defect(
    "a process on a shared port accepts clients before a backend is ready",
    { file: "main.ts", find: "return isShared || ", replace: "return " },
    [
      "processes/cli/serve/shared-port",
      "on a shared port, a process accepts clients when a backend is ready",
    ],
  ),
];
