/** A fault of ours that is put into the sources, and the test that must see it (`npm run mutations`). */
import type { Mutation } from "../simulation/mutated.ts";

export type Defect = {
  /** Completes "with it ...". */
  readonly name: string;
  readonly mutations: readonly Mutation[];
  /** Below test, without `.test.ts`. */
  readonly test: string;
  /** A piece of the title of a test there that must fail. */
  readonly fails: string;
};

/** One piece of one file; `seen` is the test, and a piece of its title. */
export function defect(
  name: string,
  mutation: Mutation,
  seen: readonly [test: string, fails: string],
): Defect {
  const [test, fails] = seen;
  return { name, mutations: [mutation], test, fails };
}
