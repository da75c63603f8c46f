import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { FairQueue } from "../../../src/proxy/admission/fair-queue.ts";

const test = suite("proxy/admission/fair-queue");

type Request = { readonly user: string; readonly id: number };

test("users take turns, whatever the number of their requests", () => {
  const queue = new FairQueue<Request>(100);
  for (let id = 0; id < 10; id += 1) queue.add({ user: "a", id });
  queue.add({ user: "b", id: 10 });
  queue.add({ user: "c", id: 11 });
  const order = Array.from({ length: 6 }, () => queue.next(100)?.user);
  assert.equal(order, ["a", "b", "c", "a", "a", "a"]);
});

test("no user has more than its share of places while others wait, and all of them while none does", () => {
  const queue = new FairQueue<Request>(100);
  for (let id = 0; id < 10; id += 1) queue.add({ user: "a", id });
  queue.add({ user: "b", id: 10 });
  assert.equal(
    Array.from({ length: 4 }, () => queue.next(1)?.user),
    ["a", "b", "a", "a"],
  );
});

test("an attacker that fills the queue loses its own requests to users with fewer of them", () => {
  const most = 1000;
  const queue = new FairQueue<Request>(most);
  for (let id = 0; id < 5000; id += 1) queue.add({ user: "attacker", id });
  assert.equal([queue.size, queue.users], [most, 1]);
  const displaced = Array.from({ length: 400 }, (_, id) => queue.add({ user: `honest-${id}`, id })?.user);
  assert.ok(displaced.every((user) => user === "attacker"));
  const first = Array.from({ length: 401 }, () => queue.next(most)?.user);
  assert.is(first.filter((user) => user?.startsWith("honest")).length, 400);
  assert.is(queue.size, most - 401);
});

test("whatever is added, removed and placed, the queue is bounded, keeps nothing, and forgets no one", () => {
  const step = fc.record({
    kind: fc.constantFrom("add", "next", "remove", "leave"),
    user: fc.integer({ min: 0, max: 5 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), fc.integer({ min: 1, max: 20 }), (steps, most) => {
      const queue = new FairQueue<Request>(most);
      const waiting = new Set<Request>();
      const placed: Request[] = [];
      let id = 0;
      const add = (user: string): void => {
        const request = { user, id: (id += 1) };
        const before = countsOf(waiting);
        waiting.add(request);
        const out = queue.add(request);
        if (out === undefined) return;
        assert.ok(waiting.delete(out), "only a waiting request leaves");
        const isLargest = (before.get(user) ?? 0) >= Math.max(...before.values()) - 1;
        assert.ok(out !== request || isLargest, "a user with fewer gets in");
      };
      const actions: Readonly<Record<string, (user: string) => void>> = {
        add,
        next: () => {
          const next = queue.next(2);
          if (next !== undefined) assert.ok(waiting.delete(next));
          if (next !== undefined) placed.push(next);
        },
        remove: (user) => {
          const first = Array.from(waiting).find((one) => one.user === user);
          if (first !== undefined) queue.remove(first);
          if (first !== undefined) waiting.delete(first);
        },
        leave: () => {
          const gone = placed.shift();
          if (gone !== undefined) queue.leave(gone.user);
        },
      };
      for (const { kind, user } of steps) {
        actions[kind]?.(`u${user}`);
        assert.is(queue.size, waiting.size);
        assert.ok(queue.size <= most);
      }
      for (const one of placed) queue.leave(one.user);
      for (const one of waiting) queue.remove(one);
      assert.equal([queue.size, queue.users], [0, 0]);
    }),
    { numRuns: 300 },
  );
});

function countsOf(requests: Iterable<Request>): Map<string, number> {
  const counts = new Map<string, number>([["", 0]]);
  for (const { user } of requests) counts.set(user, (counts.get(user) ?? 0) + 1);
  return counts;
}

test.run();
