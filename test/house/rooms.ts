/** The rooms of the house, which folders belong to each, and how many lines each may have. */

export type Room = "core" | "ops" | "fleet" | "demo" | "main" | "page";

/**
 * The rooms inside the core, then the others. A file imports only from its own room and from rooms before it in this
 * list. `main` is src/main.ts, which knows all rooms.
 */
const core = ["base", "events", "kube", "h2", "x509", "health", "upstream", "watch", "proxy"];
const others = ["ops", "fleet", "main", "demo"] as const;
export const layers: readonly string[] = [...core, ...others];

/**
 * The most lines that each room may have. The number of a room only goes down, except in a commit that says what the
 * lines buy. Aims: core 34,500, ops 17,600, fleet 3,100, demo 4,400, main 400.
 */
export const budgets: Readonly<Record<Room, number>> = {
  core: 39_200,
  ops: 20_300,
  fleet: 2_700,
  demo: 4_700,
  main: 550,
  page: 3_568,
};
/** Returns the room of a file; undefined: the file belongs to no room. Scripts and styles belong to the page. */
export function roomFor(path: string): Room | undefined {
  if (/^src\/.*\.(js|css|html)$/.test(path)) return "page";
  const layer = path.endsWith(".ts") ? layerOf(path) : "";
  return core.includes(layer) ? "core" : others.find((room) => room === layer);
}

/** Imports against the order of `layers` that are still there, by pair of rooms. A number only goes down. */
export const exceptions: Readonly<Record<string, number>> = {
  "ops to demo": 8,
  "ops to fleet": 11,
  "ops to main": 6,
  "proxy to ops": 40,
  "upstream to ops": 4,
  "watch to ops": 3,
  "watch to proxy": 6,
};

/** Returns the layer of a source file. */
export function layerOf(path: string): string {
  if (path === "src/main.ts") return "main";
  return path.startsWith("demo/") ? "demo" : (path.split("/")[1] ?? "");
}
