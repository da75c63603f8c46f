/** `watchkeeper import FILE`: prints a configuration with the backends of a haproxy.cfg or an envoy.yaml. */
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { readText } from "../../base/read-text.ts";
import { given } from "../commands/options.ts";
import { complain, failed } from "../commands/screen.ts";
import { groupsOfEnvoy } from "./import-envoy.ts";
import { groupsOfHaproxy } from "./import-haproxy.ts";
import { chosenOf, configOf } from "./imported.ts";

/** Exit codes: 0 printed, 1 no backends found, 2 usage error. Notes on settings that are not imported go to stderr. */
export function importFile(args: string[]): Promise<number> {
  return Promise.resolve(imported(args));
}

function imported(args: string[]): number {
  const options = given("import", args);
  if (options instanceof Failure) return failed(options);
  const [file = ""] = options.words;
  const text = readText(file, limits.manifestBytes);
  if (text instanceof Failure) return complain(`${file}: the file ${text.message}`, 2);
  const groups = /\.(ya?ml|json)$/.test(file) ? groupsOfEnvoy(text, file) : groupsOfHaproxy(text, file);
  if (groups instanceof Failure) return complain(groups.message, 1);
  const group = chosenOf(groups, options.text("from"));
  if (group instanceof Failure) return complain(`${file}: ${group.message}`, 1);
  for (const note of group.notes) process.stderr.write(`${note.at}: ${note.text}\n`);
  if (group.caFile === undefined)
    process.stderr.write("note: caFile is a guess: it must be the CA of the apiservers' certificates\n");
  process.stdout.write(configOf(group, file));
  return 0;
}
