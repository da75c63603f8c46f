/**
 * Loaded before a test file (`node --import`), because uvu 0.5.6 loses errors of hooks. After a `before` or
 * `after.each` that throws, uvu runs no further test, reports neither this error nor an earlier failed test, and exits
 * with 0. With this module it reports the error like that of a test with the title "a hook", and exits with 1.
 */
import { registerHooks } from "node:module";

/** For each change: a piece of uvu's source, and its replacement. */
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
