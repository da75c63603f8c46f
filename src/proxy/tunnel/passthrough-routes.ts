/** Which backends a server's name stands for. Pure; the configuration has checked that no name stands twice. */
import { entryNamed } from "../net/client-hello.ts";

export type Route = {
  /** In lower case; "*.example.com" is any one label before that. None: every other name, and no name at all. */
  readonly serverNames: readonly string[];
  /** The cluster, by its name. */
  readonly cluster: string;
  /** Of that cluster, by their own names in it; none: all that there are. */
  readonly backends: readonly string[];
};

/** Undefined: nothing stands for this name. */
export function routeFor(routes: readonly Route[], serverName: string | undefined): Route | undefined {
  const named =
    serverName === undefined ? undefined : entryNamed(routes, ({ serverNames }) => serverNames, serverName);
  return named ?? routes.find(({ serverNames }) => serverNames.length === 0);
}
