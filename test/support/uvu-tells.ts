/**
 * Loaded before a test file (`node --import`): uvu 0.5.6 forgets what a hook throws. Behind a `before` or `after.each` that
 * threw it runs no further test, says nothing of it nor of the test that failed before, and ends with 0. With this, what a
 * hook throws is told like a test's failure, under the title "a hook", and the process ends with 1.
 */
import { registerHooks } from "node:module";

/** What stands in uvu, and what is to stand there. */
const pieces: readonly (readonly [string, string])[] = [
  [
    "	} finally {\n		state.__test__ = '';",
    "	} catch (err) {\n		errors += format('a hook', err, name);\n	} finally {\n		state.__test__ = '';",
  ],
  [
    "		for (hook of after) await hook(state);\n",
    "		try { for (hook of after) await hook(state); } catch (err) { errors += format('a hook', err, name); }\n",
  ],
  [
    "				for (hook of aEach) await hook(state);\n				if (errors.length) errors += '\\n';\n				errors += format(test.name, err, name);\n",
    "				if (errors.length) errors += '\\n';\n				errors += format(test.name, err, name);\n				for (hook of aEach) await hook(state);\n",
  ],
];

registerHooks({
  load(url, context, next) {
    const result = next(url, context);
    if (!url.endsWith("/node_modules/uvu/dist/index.mjs")) return result;
    const { source } = result;
    let text = typeof source === "string" ? source : new TextDecoder().decode(source);
    for (const [forgetful, telling] of pieces) {
      const parts = text.split(forgetful);
      if (parts.length !== 2) throw new Error("This uvu is another one: does it tell what a hook throws?");
      text = parts.join(telling);
    }
    return { ...result, source: text };
  },
});
