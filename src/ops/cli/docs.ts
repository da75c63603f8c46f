/** `watchkeeper docs [TOPIC]`: prints a page of the documentation that was installed with the program. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../../base/failure.ts";
import { packageFile } from "../program/own-files.ts";
import { given, usage } from "./commands/options.ts";
import { shown } from "./commands/rows.ts";
import { complain, failed, type Screen, standardScreen } from "./commands/screen.ts";

/** Exit codes: 0 printed, 1 the program has no docs, 2 usage error, such as an unknown topic. */
export function docs(
  args: readonly string[],
  screen: Screen = standardScreen,
  folder = packageFile("docs"),
): Promise<number> {
  return Promise.resolve(show(args, screen, folder));
}

function show(args: readonly string[], screen: Screen, folder: string): number {
  const options = given("docs", args);
  if (options instanceof Failure) return failed(options, screen);
  const topics = globSync("**/*.md", { cwd: folder })
    .map((path) => path.slice(0, -".md".length))
    .toSorted();
  if (topics.length === 0) {
    return complain("This installation has no docs folder: see docs in watchkeeper's repository", 1, screen);
  }
  const [topic] = options.words;
  if (topic !== undefined && !topics.includes(topic))
    return failed(usage(`Unknown topic "${shown(topic)}": must be one of ${topics.join(", ")}`), screen);
  screen.print(
    topic === undefined
      ? topics.map((one) => `${one}\n`).join("")
      : readFileSync(join(folder, `${topic}.md`), "utf8"),
  );
  return 0;
}
