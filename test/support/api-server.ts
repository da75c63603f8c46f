/**
 * Serves the JSON API of an API scene (api-scene.ts) on a real port, for tests of CLI commands whose output is
 * captured.
 */

import { wallClock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import { Journal } from "../../src/events/journal.ts";
import { startApi } from "../../src/ops/admin/server/server.ts";
import type { Screen } from "../../src/ops/cli/commands/screen.ts";
import { apiScene } from "./api-scene.ts";

export type SceneServer = ReturnType<typeof apiScene> & {
  /** Address of the API, for example "127.0.0.1:40123". */
  readonly address: string;
  stop(): Promise<void>;
};

export async function serveScene(): Promise<SceneServer> {
  const scene = apiScene();
  const { routes } = scene;
  const journal = new Journal(wallClock);
  const api = await startApi({ host: "127.0.0.1", port: 0, journal, routes });
  if (api instanceof Failure) throw new Error(api.message);
  return { ...scene, address: api.address, stop: () => api.stop() };
}

export class KeptScreen implements Screen {
  out = "";
  complaints = "";
  lines = 0;
  readonly env: NodeJS.ProcessEnv;

  constructor(env: NodeJS.ProcessEnv = {}) {
    this.env = env;
  }

  readonly print = (text: string): void => {
    this.out += text;
  };

  readonly complain = (text: string): void => {
    this.complaints += text;
  };
}
