import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type ScriptedExchange, type ScriptedH1, startH1 } from "../support/h1.ts";
import { type Random, seeded } from "../support/random.ts";
import type { RawPeer } from "../support/raw.ts";

/**
 * Hundreds of requests, cut and broken at random places. No response may reach the wrong request, no callback may
 * follow an end, and no exception may escape.
 */
const test = suite("attacks/h1-random");

let h1: ScriptedH1;
test.before.each(async () => {
  h1 = await startH1();
});
test.after.each(() => h1.close());

/** A request that has its number in its path, and in every byte of its body. */
function requestOf(random: Random, number: number): { readonly text: string; readonly body: string } {
  const body = String(number % 10).repeat(random.pick([0, 1, 7, 300, 9000]));
  const head = `${random.pick(["POST", "PUT"])} /${number} HTTP/1.1\r\nHost: api\r\n`;
  if (random.chance(0.5)) return { text: `${head}Content-Length: ${body.length}\r\n\r\n${body}`, body };
  let chunks = "";
  for (let at = 0; at < body.length; ) {
    const chunk = body.slice(at, at + 1 + random.below(4000));
    at += chunk.length;
    chunks += `${chunk.length.toString(16)}${random.chance(0.2) ? ";x=y" : ""}\r\n${chunk}\r\n`;
  }
  const trailers = random.chance(0.3) ? `X-Sum: ${number}\r\n` : "";
  return { text: `${head}Transfer-Encoding: chunked\r\n\r\n${chunks}0\r\n${trailers}\r\n`, body };
}

/** Answers with the request's number and body, in a random framing. */
function answer(random: Random, exchange: ScriptedExchange): void {
  const number = exchange.lines[3]?.slice(":path /".length) ?? "";
  const text = `<${number}:${exchange.body}>`;
  const hasLength = random.chance(0.5);
  exchange.answer([":status 200", ...(hasLength ? [`content-length ${text.length}`] : [])]);
  const cut = random.below(text.length);
  exchange.write(text.slice(0, cut));
  if (hasLength || random.chance(0.5)) exchange.write(text.slice(cut), true);
  else {
    exchange.write(text.slice(cut));
    exchange.answer(["x-sum 1"], true);
  }
}

/** Returns the body of the next response, without its framing. */
async function readBody(client: RawPeer): Promise<string> {
  const head = await client.expect("\r\n\r\n");
  if (!/chunked/i.test(head)) return await client.expect(">");
  const chunks = await client.expect(/(^|\r\n)0\r\n(x-sum: 1\r\n)?\r\n/);
  return chunks.replace(/\r\n0\r\n.*$/s, "").replaceAll(/(^|\r\n)[0-9a-f]+\r\n/g, "");
}

test("each answer is its own request's, however the bytes were cut", async () => {
  const random = seeded(1);
  for (let round = 0; round < 60; round += 1) {
    const client = await h1.connect();
    const requests = Array.from({ length: 1 + random.below(4) }, (_, at) =>
      requestOf(random, round * 10 + at),
    );
    let text = requests.map((request) => request.text).join("");
    const sending = (async () => {
      while (text !== "") {
        const size = 1 + random.below(random.pick([3, 200, 20_000]));
        client.send(text.slice(0, size));
        text = text.slice(size);
        if (random.chance(0.1)) await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    for (const [at, { body }] of requests.entries()) {
      const exchange = await h1.exchange();
      while (!exchange.isEnded) {
        exchange.side.grant(exchange.body.length);
        await new Promise((resolve) => setImmediate(resolve));
      }
      assert.is(exchange.body, body);
      answer(random, exchange);
      assert.is(await readBody(client), `<${round * 10 + at}:${body}>`, `seed 1, round ${round}`);
    }
    await sending;
    client.socket.destroy();
  }
});

/** Records a violation when the exchange is called after it has ended or was reset. */
function watch(exchange: ScriptedExchange, broken: string[]): void {
  const { data, headers, reset } = exchange;
  const check = (what: string): void => {
    if (exchange.isEnded && what !== "reset") broken.push(`${what} after the end`);
    if (exchange.resetCode !== undefined) broken.push(`${what} after a reset`);
  };
  exchange.data = (...args) => {
    check("data");
    data.apply(exchange, args);
  };
  exchange.headers = (...args) => {
    check("trailers");
    headers.apply(exchange, args);
  };
  exchange.reset = (code) => {
    check("reset");
    reset.call(exchange, code);
  };
}

test("broken bytes cost their socket, and are reported once", async () => {
  const random = seeded(2);
  const broken: string[] = [];
  h1.onExchange = (exchange) => {
    watch(exchange, broken);
    const deed = random.below(4);
    if (deed === 0) exchange.side.reset(random.pick([0, 2, 8]));
    if (deed === 1) exchange.answer([":status 413", "content-length 0"], true);
    if (deed === 2) exchange.answer([":status 200"]);
  };
  for (let round = 0; round < 400; round += 1) {
    const client = await h1.connect();
    const text = Array.from({ length: 3 }, (_, at) => requestOf(random, at).text).join("");
    const bytes = Buffer.from(text.slice(0, 1 + random.below(text.length)), "latin1");
    for (let flips = random.below(4); flips > 0; flips -= 1)
      bytes[random.below(Math.min(bytes.length, 200))] = random.below(256);
    client.send(bytes);
    if (random.chance(0.5)) await new Promise((resolve) => setImmediate(resolve));
    if (random.chance(0.5)) client.socket.end();
    else client.socket.destroy();
    client.socket.destroy();
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(broken, []);
  assert.equal(
    h1.entries.filter((entry) => entry.kind === "internal.error"),
    [],
  );
});

test.run();
