/** Faults in the conversion of v1alpha1 files, and in the messages about their keys. */
import { type Defect, defect } from "../defect.ts";

const file = "config/v1alpha1.ts";
const seen = (fails: string): readonly [string, string] => ["config/v1alpha1", fails];
const effective = seen("each old file converts to the same effective configuration as before");
const anyForm = seen(
  "what becomes one entry of a list, or part of another map, may stand in any form and order",
);

export const configuration: readonly Defect[] = [
  defect(
    "an old value means its opposite",
    { file, find: "values: { on: false, off: true }", replace: "values: { on: true, off: false }" },
    effective,
  ),
  defect(
    "a key is not renamed",
    { file, find: "this.#write(pair.key, first);\n      return", replace: "return" },
    effective,
  ),
  defect(
    "a key in a map that became another one is written beside it",
    { file, find: "if (isMap(joined)) {", replace: "if (isMap(joined) && joined.flow === true) {" },
    anyForm,
  ),
  defect(
    "the only cluster stays a map",
    {
      file,
      find: '["/upstream", { key: "clusters", isListed: true }]',
      replace: '["/upstream", { key: "clusters" }]',
    },
    effective,
  ),
  defect(
    "an entry of a list loses its indent",
    {
      file,
      find: 'this.#edit(from + index, from + index, "  ");',
      replace: 'this.#edit(from + index, from + index, "");',
    },
    anyForm,
  ),
  defect(
    "a key that is the default now takes its neighbour with it",
    {
      file,
      find: 'else this.#edit(before === undefined ? from : endOf(before.value), to, "");',
      replace: 'else this.#edit(before === undefined ? from : startOf(before.key), to, "");',
    },
    anyForm,
  ),
  defect(
    "an edit within removed text is made",
    { file, find: "if (edit.from >= end) {", replace: "{" },
    seen("an old file is refused with the replacement for each key, where it stands"),
  ),
  defect(
    "an old key in a new file is only unknown",
    { file, find: "if (unknown.size === 0) return [];", replace: "if (unknown.size >= 0) return [];" },
    seen("keys of v1alpha1 in a v1alpha2 file"),
  ),
  defect(
    "a key is told a second time, as unknown",
    {
      file: "config/schema.ts",
      find: "!isUnknownKey(error) || !replaced.has(keyPointerOf(error))",
      replace: "!isUnknownKey(error) || !replaced.has(error.instancePath)",
    },
    seen("keys of v1alpha1 in a v1alpha2 file"),
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
