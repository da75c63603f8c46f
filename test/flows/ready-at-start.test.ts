import { suite } from "uvu";
import * as assert from "uvu/assert";
import { until } from "../support/h1.ts";
import { startProxy, type TestProxy } from "../support/proxy.ts";

const test = suite("flows/ready-at-start");

test("/readyz fails until all listeners are open, because clients are sent to a ready process", async () => {
  // With a shared port the process opens its listeners only when a backend is ready, so no other check of /readyz fails
  // then.
  const listeners = `  - {name: shared, address: "127.0.0.1:0", reusePort: true}`;
  const proxy = await startProxy({ listeners });
  const readyAt = (of: TestProxy): number =>
    of.entries.findIndex(
      (entry) => entry.kind === "probe.changed" && entry.probe === "readyz" && entry.complaint === "",
    );
  await until("readiness", () => readyAt(proxy) >= 0);
  const openedAt = proxy.entries.findLastIndex(
    (entry) => entry.kind === "listener.opened" && ["kube", "local", "shared"].includes(entry.listener),
  );
  await proxy.stop();
  assert.ok(openedAt >= 0 && readyAt(proxy) > openedAt, `ready ${readyAt(proxy)}, open ${openedAt}`);
});

test.run();
