/**
 * Loads the simulation over code with one deliberate fault. The module graph is loaded once more under a URL query of
 * its own, and one piece of one source file is replaced during loading. No code in src knows of this. A piece that does
 * not occur exactly once is an error, because a fault that no longer applies proves nothing.
 */
import { registerHooks } from "node:module";

export type Mutation = {
  /** The path below src. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
};

let loaded = 0;

/** Returns the exports of `entry`, a file beside this one, loaded with these replacements. */
export async function loadMutated<T>(entry: string, mutations: readonly Mutation[]): Promise<T> {
  loaded += 1;
  const mark = `?mutated=${loaded}`;
  const left = new Set(mutations);
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      const isOurs = specifier.startsWith(".") && context.parentURL?.endsWith(mark) === true;
      return isOurs ? { ...resolved, url: `${resolved.url}${mark}` } : resolved;
    },
    load(url, context, next) {
      const result = next(url, context);
      const here = mutations.filter(({ file }) => url.endsWith(`/src/${file}${mark}`));
      if (here.length === 0) return result;
      let source = textOf(result.source);
      for (const mutation of here) {
        source = replaced(source, mutation);
        left.delete(mutation);
      }
      return { ...result, source };
    },
  });
  try {
    const module: T = await import(`./${entry}${mark}`);
    for (const { file } of left) throw new Error(`Cannot mutate src/${file}: it was not loaded`);
    return module;
  } finally {
    hooks.deregister();
  }
}

function textOf(source: string | ArrayBuffer | NodeJS.TypedArray | undefined): string {
  return typeof source === "string" ? source : new TextDecoder().decode(source);
}

function replaced(source: string, { file, find, replace }: Mutation): string {
  const parts = source.split(find);
  if (parts.length !== 2) throw new Error(`Cannot mutate src/${file}: ${parts.length - 1} times "${find}"`);
  return parts.join(replace);
}
