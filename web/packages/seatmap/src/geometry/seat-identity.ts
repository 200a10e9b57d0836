import type { Geometry } from "./geometry.js";

/** How a seat is named: by ordinal, by the organiser's id ("A-12") or by the UUID that the routes take. */
export type SeatName = number | string;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Names of seats in both directions. The maps are made when they are first asked for: most pages need a few ids only. */
export class SeatIdentities {
  readonly #geometry: Geometry;
  #bySeatId: Map<string, number> | null = null;
  #byUuid: Map<string, number> | null = null;

  constructor(geometry: Geometry) {
    this.#geometry = geometry;
  }

  seatId(ordinal: number): string {
    const { irregularSeatIds, sections, section, rows, row, number } = this.#geometry;
    const irregular = irregularSeatIds[ordinal];
    if (irregular !== undefined) return irregular;
    const { seat_id_prefix: prefix, seat_id_separator: separator } = sections[section[ordinal]!]!;
    return `${prefix}${rows[row[ordinal]!]}${separator}${number[ordinal]}`;
  }

  uuid(ordinal: number): string {
    return uuid5(this.#geometry.layoutId, this.seatId(ordinal));
  }

  /** The seat's ordinal, or -1. */
  ordinal(name: SeatName): number {
    if (typeof name === "number") {
      return Number.isInteger(name) && name >= 0 && name < this.#geometry.seatCount ? name : -1;
    }
    this.#bySeatId ??= this.#mapped((ordinal) => this.seatId(ordinal));
    const found = this.#bySeatId.get(name);
    if (found !== undefined || !UUID.test(name)) return found ?? -1;
    this.#byUuid ??= this.#mapped((ordinal) => this.uuid(ordinal));
    return this.#byUuid.get(name.toLowerCase()) ?? -1;
  }

  #mapped(nameOf: (ordinal: number) => string): Map<string, number> {
    const found = new Map<string, number>();
    for (let ordinal = 0; ordinal < this.#geometry.seatCount; ordinal++) found.set(nameOf(ordinal), ordinal);
    return found;
  }
}

/** RFC 9562, version 5. Of our own because `crypto.subtle` answers only later, and only on secure origins. */
export function uuid5(namespace: string, name: string): string {
  const text = new TextEncoder().encode(name);
  const bytes = new Uint8Array(16 + text.length);
  const hex = namespace.replaceAll("-", "");
  for (let i = 0; i < 16; i++) bytes[i] = Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16);
  bytes.set(text, 16);
  const digest = sha1(bytes).subarray(0, 16);
  digest[6] = (digest[6]! & 0x0f) | 0x50;
  digest[8] = (digest[8]! & 0x3f) | 0x80;
  const out = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${out.slice(0, 8)}-${out.slice(8, 12)}-${out.slice(12, 16)}-${out.slice(16, 20)}-${out.slice(20)}`;
}

function sha1(message: Uint8Array): Uint8Array {
  const blocks = Math.ceil((message.length + 9) / 64);
  const padded = new Uint8Array(blocks * 64);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 4, message.length * 8);
  const h = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0];
  const w = new Int32Array(80);
  for (let block = 0; block < blocks; block++) {
    for (let i = 0; i < 16; i++) w[i] = view.getInt32(block * 64 + i * 4);
    for (let i = 16; i < 80; i++) w[i] = rotated(w[i - 3]! ^ w[i - 8]! ^ w[i - 14]! ^ w[i - 16]!, 1);
    let [a, b, c, d, e] = h as [number, number, number, number, number];
    for (let i = 0; i < 80; i++) {
      const [f, k] =
        i < 20 ? [(b & c) | (~b & d), 0x5a827999]
        : i < 40 ? [b ^ c ^ d, 0x6ed9eba1]
        : i < 60 ? [(b & c) | (b & d) | (c & d), 0x8f1bbcdc]
        : [b ^ c ^ d, 0xca62c1d6];
      const next = (rotated(a, 5) + f + e + k + w[i]!) | 0;
      e = d;
      d = c;
      c = rotated(b, 30);
      b = a;
      a = next;
    }
    [a, b, c, d, e].forEach((value, i) => (h[i] = (h[i]! + value) | 0));
  }
  const digest = new Uint8Array(20);
  const out = new DataView(digest.buffer);
  h.forEach((value, i) => out.setInt32(i * 4, value));
  return digest;
}

function rotated(value: number, by: number): number {
  return (value << by) | (value >>> (32 - by));
}
