import { suite } from "uvu";
import * as assert from "uvu/assert";
import { embeddedSettings, encodeOld } from "../../../../demo/incidents/embedded-setting.ts";
import type { Setting, Wishes } from "../../../../demo/incidents/setting.ts";
import { DemoClient } from "../../../../demo/story/client.ts";
import { DemoFiles } from "../../../../demo/story/files.ts";
import { wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { within } from "../../../support/within.ts";

const test = suite("demo/incidents/embedded-setting");

let files: DemoFiles;
const settings: Setting[] = [];

test.before(async () => {
  files = await DemoFiles.make(wallClock);
});
test.after(async () => {
  for (const setting of settings) await setting.stop();
  files.remove();
});

async function made(wishes: Wishes): Promise<Setting> {
  const setting = await embeddedSettings.make(wishes, files);
  if (setting instanceof Failure) throw new Error(setting.message);
  settings.push(setting);
  return setting;
}

function clientOf({ backends, token }: Setting, number: number): DemoClient {
  const fields = { authorization: `Bearer ${token}` };
  const port = backends[number]?.port ?? 0;
  return new DemoClient({ port, ca: files.authority.certificate, fields, withinMs: 700 });
}

test("what is written at one is read at the other, and a beat reaches both", async () => {
  const setting = await made({});
  const clients = [0, 1].map((number) => clientOf(setting, number));
  await setting.writeBeat(7);
  for (const client of clients) {
    const { body } = await within(
      20_000,
      "a read",
      client.read("GET /api/v1/namespaces/kube-public/configmaps/beat"),
    );
    assert.match(JSON.stringify(body), '"count":"7"');
    client.close();
  }
});

test("a silenced apiserver answers no request, and the other does", async () => {
  const setting = await made({});
  await setting.silence("apiserver-2");
  const answers = [0, 1].map(async (number) => {
    const client = clientOf(setting, number);
    const status = await client.ask("GET /readyz");
    client.close();
    return status;
  });
  assert.equal(await within(20_000, "both", Promise.all(answers)), [200, 0]);
});

test("a deletion is told with a version from long ago, all else as it is", () => {
  const object = { metadata: { name: "a", resourceVersion: "9" } };
  assert.match(encodeOld("DELETED", object).toString(), '"resourceVersion":"1"');
  assert.match(encodeOld("MODIFIED", object).toString(), '"resourceVersion":"9"');
});

test.run();
