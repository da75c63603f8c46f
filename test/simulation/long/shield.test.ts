/**
 * The shield of a starting or overloaded backend with 10,000 seeds. SHIELD_RUNS sets another number; SHIELD_SEED repeats
 * the runs of a seed.
 */
import { suite } from "uvu";
import { playShields } from "../../proxy/limits/shield-property.ts";
import { figure } from "../../support/figure.ts";

const test = suite("simulation/long/shield");
const runs = Number(process.env["SHIELD_RUNS"] ?? 10_000);
const seed = process.env["SHIELD_SEED"];

test("in ten thousand runs every request gets a place or a refusal in time, and no user with one request starves", () => {
  const { admitted, refused } = playShields(runs, seed === undefined ? undefined : Number(seed));
  figure(`${runs} runs, ${admitted} requests were admitted after they had waited, ${refused} were refused`);
});

test.run();
