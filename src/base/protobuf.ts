/**
 * The values of a message by field number, in wire order: a number for a varint, bytes for any other value. If a field
 * that is not repeated has several values, the last value counts.
 */
export type Message = ReadonlyMap<number, readonly (number | Buffer)[]>;

const kubernetesPrefix = Buffer.from("k8s\0");

/** Returns the object in Kubernetes' envelope `k8s\0 { 1 kind  2 object … }`; undefined: no envelope. */
export function enveloped(bytes: Buffer): Message | undefined {
  if (!bytes.subarray(0, kubernetesPrefix.length).equals(kubernetesPrefix)) return undefined;
  return messageIn(messageOf(bytes.subarray(kubernetesPrefix.length)), 2);
}

export function bytesIn(message: Message | undefined, number: number): Buffer | undefined {
  const value = message?.get(number)?.at(-1);
  return typeof value === "number" ? undefined : value;
}

export function textIn(message: Message | undefined, number: number): string {
  return bytesIn(message, number)?.toString() ?? "";
}

export function numberIn(message: Message | undefined, number: number): number | undefined {
  const value = message?.get(number)?.at(-1);
  return typeof value === "number" ? value : undefined;
}

export function messageIn(message: Message | undefined, number: number): Message | undefined {
  const bytes = bytesIn(message, number);
  return bytes === undefined ? undefined : messageOf(bytes);
}

/** Returns the values for `key` in a protobuf map field. Each entry of the field is a message of a key and a value. */
export function entriesIn(message: Message | undefined, number: number, key: string): readonly string[] {
  return (message?.get(number) ?? []).flatMap((entry) => {
    const pair = typeof entry === "number" ? undefined : messageOf(entry);
    return textIn(pair, 1) === key ? [textIn(pair, 2)] : [];
  });
}

/** Returns the decoded message; undefined if the bytes are no valid message. */
export function messageOf(bytes: Buffer): Message | undefined {
  const message = new Map<number, (number | Buffer)[]>();
  const reader = new Reader(bytes);
  while (!reader.isDone) {
    const tag = reader.varint();
    const value = reader.value(tag % 8);
    if (value === undefined) return undefined;
    const values = message.get(Math.floor(tag / 8));
    if (values === undefined) message.set(Math.floor(tag / 8), [value]);
    else values.push(value);
  }
  return message;
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isDone(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** Reads a varint; NaN: it is incomplete. A value above 2^53 would be inexact; no field read here is that large. */
  varint(): number {
    let number = 0;
    for (let weight = 1; this.#at < this.#bytes.length; weight *= 128) {
      const byte = this.#bytes[this.#at++] ?? 0;
      number += (byte & 0x7f) * weight;
      if (byte < 0x80) return number;
    }
    return Number.NaN;
  }

  /** Reads the value of a field; undefined: it is incomplete, or its wire type is unknown. */
  value(wire: number): number | Buffer | undefined {
    if (wire === 0) return this.#number(this.varint());
    if (wire === 2) return this.#slice(this.varint());
    if (wire === 1 || wire === 5) return this.#slice(wire === 1 ? 8 : 4);
    return undefined;
  }

  #number(value: number): number | undefined {
    return Number.isNaN(value) ? undefined : value;
  }

  #slice(length: number): Buffer | undefined {
    const start = this.#at;
    this.#at += length;
    return this.#at <= this.#bytes.length ? this.#bytes.subarray(start, this.#at) : undefined;
  }
}
