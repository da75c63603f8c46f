/**
 * What must not outlive the run. Undone newest first, synchronously, at exit and on SIGINT, SIGTERM and SIGHUP.
 * A killed run cannot clean: its children die with it (child.ts), its namespaces go when the next run starts
 * (network.ts).
 */
type Undo = () => void;

const undos = new Set<Undo>();
let watching = false;

function undoAll(): void {
  for (const undo of [...undos].toReversed()) {
    undos.delete(undo);
    try {
      undo();
    } catch (error) {
      process.stderr.write(`Cannot clean up: ${String(error)}\n`);
    }
  }
}

/** `undo` runs at exit, unless the returned function has run it before. */
export function onLeave(undo: Undo): Undo {
  if (!watching) {
    watching = true;
    process.on("exit", undoAll);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
      process.on(signal, () => process.exit(130));
  }
  undos.add(undo);
  return () => {
    if (undos.delete(undo)) undo();
  };
}
