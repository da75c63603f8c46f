/** Which backends a server's name stands for. Pure; the configuration has checked that no name stands twice. */

export type Route = {
  /** In lower case; "*.example.com" is any one label before that. None: every other name, and no name at all. */
  readonly serverNames: readonly string[];
  /** None: all that there are. */
  readonly backends: readonly string[];
};

/** Without any route every name is for all backends. Undefined: nothing stands for this name. */
export function routeFor(routes: readonly Route[], serverName: string | undefined): Route | undefined {
  if (routes.length === 0) return { serverNames: [], backends: [] };
  const wildcard = serverName?.replace(/^[^.]+/, "*");
  const named = (name: string | undefined): Route | undefined =>
    name === undefined ? undefined : routes.find(({ serverNames }) => serverNames.includes(name));
  return named(serverName) ?? named(wildcard) ?? routes.find(({ serverNames }) => serverNames.length === 0);
}
