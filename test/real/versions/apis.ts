/** Reads which resources an apiserver serves, from its discovery documents. */
import { ask, order, type Server } from "../rig/ask.ts";

type Groups = {
  readonly groups: readonly { readonly versions: readonly { readonly groupVersion: string }[] }[];
};
type Resources = {
  readonly resources: readonly { readonly name: string; readonly verbs: readonly string[] }[];
};

/** Returns the path of every resource that can be listed and watched. */
export async function pathsOf(server: Server): Promise<ReadonlySet<string>> {
  const { groups } = JSON.parse(await order(server, { path: "/apis" })) as Groups;
  const roots = groups.flatMap(({ versions }) => versions.map(({ groupVersion }) => `/apis/${groupVersion}`));
  const paths = new Set<string>();
  for (const root of ["/api/v1", ...roots]) {
    const { status, text } = await ask(server, { path: root });
    if (status === 404) continue; // since 1.36, /apis also lists what only another apiserver serves
    const { resources } = JSON.parse(text) as Resources;
    for (const { name, verbs } of resources)
      if (verbs.includes("list") && verbs.includes("watch")) paths.add(`${root}/${name}`);
  }
  return paths;
}
