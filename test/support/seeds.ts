/** Number of seeds of each long simulation. `SEEDS` sets another number: `.ci/run` plays 300. */
export const longSeeds = Number(process.env["SEEDS"] ?? 1_000);
