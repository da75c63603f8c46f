import { suite } from "uvu";
import * as assert from "uvu/assert";
import { bearer, PlayedPath } from "../support/path.ts";
import { exec, startSplice } from "../support/splice.ts";
import { PlayedWatch } from "../support/watch-path.ts";

const test = suite("flows/path-prefix");

const prefix = "/k8s/clusters/c-1";

test("a watch below the path of the backends' URLs moves, and is resumed below the same path", () => {
  for (const below of [prefix, ""]) {
    const path = new PlayedPath(["a", "b"], { pathPrefix: prefix });
    const watch = new PlayedWatch({ path, resource: `${below}/api/v1/configmaps` });
    const asked = `${prefix}/api/v1/configmaps?watch=true&`;
    assert.is(watch.from.last.request.path, `${asked}resourceVersion=7`);
    watch.serve(watch.from, "~8a");
    watch.kill(watch.from);
    watch.advance(100);
    assert.is(watch.to.last.request.path, `${asked}resourceVersion=8&timeoutSeconds=3600`);
    watch.serve(watch.to, "~9a");
    watch.has("~8a ~9a");
  }
});

test("a path beside the prefix is taken below it, as is any path of a client that uses the root", () => {
  const path = new PlayedPath(["a"], { pathPrefix: prefix });
  const client = path.client();
  const sent = {
    "/version": "/version",
    [prefix]: "/",
    [`${prefix}/`]: "/",
    [`${prefix}?x`]: "/?x",
    [`${prefix}/version?x`]: "/version?x",
    [`${prefix}0/version`]: `${prefix}0/version`,
    "/k8s/clusters/c-2/api": "/k8s/clusters/c-2/api",
  };
  for (const [asked, rest] of Object.entries(sent)) {
    client.ask("GET", asked, [bearer("t")]);
    path.settle();
    assert.is(path.backend("a").last.request.path, prefix + rest, asked);
    path.backend("a").last.answer(200);
    path.settle();
  }
});

test("an exec below the path reaches the backend below the same path", async () => {
  const upgrade = await startSplice(prefix);
  try {
    for (const below of [prefix, ""]) {
      const client = await upgrade.connect();
      const request = exec("GET", "connection: Upgrade", "upgrade: websocket");
      client.send(request.replace("/api/", `${below}/api/`));
      const backend = await upgrade.backend();
      const head = await backend.expect("\r\n\r\n");
      assert.match(head, `GET ${prefix}/api/v1/namespaces/n/pods/p/exec?command=sh HTTP/1.1\r\n`);
    }
  } finally {
    upgrade.close();
  }
});

test.run();
