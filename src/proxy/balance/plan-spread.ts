/** Plans how a client's reads are divided (context/read-spread.ts), to make the load of the backends even. No I/O. */

/** Adds a load to the sum of its backend. */
export function addLoad(
  sums: Map<string, number>,
  { backend, load }: { readonly backend: string; readonly load: number },
): void {
  sums.set(backend, (sums.get(backend) ?? 0) + load);
}

/**
 * Divides a load among backends, so that the load per share becomes as even as possible. Returns each backend's part;
 * the parts add up to 1. `loads`: the load that each backend has already. `shares`: each backend's share of the load.
 * At least one share must be above 0.
 */
export function partsOf(
  load: number,
  loads: ReadonlyMap<string, number>,
  shares: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const backends = Array.from(shares, ([name, share]) => ({ name, share, load: loads.get(name) ?? 0 }))
    .filter(({ share }) => share > 0)
    .toSorted((one, other) => one.load / one.share - other.load / other.share);
  // The load is divided among the least loaded backends, so that all of them reach the same load per share. The next
  // backend is included if its own load per share is still below that.
  let [sum, sumOfShares] = [load, 0];
  for (const one of backends) {
    if (sumOfShares > 0 && one.load / one.share >= sum / sumOfShares) break;
    sum += one.load;
    sumOfShares += one.share;
  }
  const level = sum / sumOfShares;
  const parts = backends.map((one) => Math.max(0, one.share * level - one.load));
  const whole = parts.reduce((all, part) => all + part, 0);
  return new Map(
    backends.flatMap(({ name }, index) => {
      const part = whole === 0 ? 1 / backends.length : (parts[index] ?? 0) / whole;
      return part === 0 ? [] : [[name, part] as const];
    }),
  );
}
