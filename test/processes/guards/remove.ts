/**
 * Loaded before a test (`node --import`). Removes the guards that the variable REMOVED lists from the sources while
 * they are loaded. If the text of a guard does not occur exactly once, the process exits with a special code, because a
 * removal that does not apply proves nothing.
 */
import { registerHooks } from "node:module";
import type { Mutation } from "../../simulation/mutated.ts";

/** An exit code that no test uses. */
const misfit = 97;

const removals = JSON.parse(process.env["REMOVED"] ?? "[]") as readonly Mutation[];

registerHooks({
  load(url, context, next) {
    const result = next(url, context);
    const here = removals.filter(({ file }) => url.endsWith(`/src/${file}`));
    if (here.length === 0) return result;
    const { source } = result;
    let text = typeof source === "string" ? source : new TextDecoder().decode(source);
    for (const { file, find, replace } of here) {
      const parts = text.split(find);
      if (parts.length !== 2) {
        process.stderr.write(`${parts.length - 1} times "${find}" in src/${file}\n`);
        process.exit(misfit);
      }
      text = parts.join(replace);
    }
    return { ...result, source: text };
  },
});
