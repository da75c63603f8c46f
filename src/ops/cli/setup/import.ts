/** `watchkeeper import FILE`: prints a configuration with the backends of a haproxy.cfg or an envoy.yaml. */
import { Failure } from "../../../base/failure.ts";
import { limits } from "../../../base/limits.ts";
import { readText } from "../../../base/read-text.ts";
import { given } from "../commands/options.ts";
import { complain, failed, type Screen, standardScreen } from "../commands/screen.ts";
import { groupsOfEnvoy } from "./import-envoy.ts";
import { groupsOfHaproxy } from "./import-haproxy.ts";
import { chosenOf, configOf, guessedFiles } from "./imported.ts";

/**
 * Exit codes: 0 printed, 1 no backends found, 2 usage error. Notes on settings that are not imported, and on files that
 * the operator must set, go to stderr.
 */
export function importFile(args: readonly string[], screen: Screen = standardScreen): Promise<number> {
  return Promise.resolve(imported(args, screen));
}

function imported(args: readonly string[], screen: Screen): number {
  const options = given("import", args);
  if (options instanceof Failure) return failed(options, screen);
  const [file = ""] = options.words;
  const text = readText(file, limits.manifestBytes);
  if (text instanceof Failure) return complain(`${file}: the file ${text.message}`, 2, screen);
  const groups = /\.(ya?ml|json)$/.test(file) ? groupsOfEnvoy(text, file) : groupsOfHaproxy(text, file);
  if (groups instanceof Failure) return complain(groups.message, 1, screen);
  const group = chosenOf(groups, options.text("from"));
  if (group instanceof Failure) return complain(`${file}: ${group.message}`, 1, screen);
  const mode = options.text("mode") === "HTTP" ? "HTTP" : "Passthrough";
  for (const note of group.notes) screen.complain(`${note.at}: ${note.text}\n`);
  for (const { keys, what } of guessedFiles(group, mode))
    screen.complain(`note: set ${keys}: ${what}. The printed path is a guess.\n`);
  screen.print(configOf(group, file, mode));
  return 0;
}
