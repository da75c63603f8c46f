/** Which backends a server name selects. Pure; the configuration has checked that no name occurs twice. */
import { entryNamed } from "../net/client-hello.ts";

export type Route = {
  /** In lower case; "*.example.com" is any one label before that. Empty: every other name, and no name at all. */
  readonly serverNames: readonly string[];
  /** The cluster, by its name. */
  readonly cluster: string;
  /** Backends of that cluster, by their own names in it; empty: all of them. */
  readonly backends: readonly string[];
};

/** Undefined: no route has this name. */
export function routeFor(routes: readonly Route[], serverName: string | undefined): Route | undefined {
  const named =
    serverName === undefined ? undefined : entryNamed(routes, ({ serverNames }) => serverNames, serverName);
  return named ?? routes.find(({ serverNames }) => serverNames.length === 0);
}
