import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { decodeGeometry, GeometryInvalid } from "../src/geometry/decode-geometry.js";
import { SeatIdentities, uuid5 } from "../src/geometry/seat-identity.js";
import { decodeSnapshot, SnapshotInvalid } from "../src/state/snapshot.js";

const file = (name: string) => readFileSync(new URL(`./fixtures/${name}`, import.meta.url));
const bytes = (name: string): ArrayBuffer => {
  const { buffer, byteOffset, byteLength } = file(name);
  return buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
};
const json = (name: string) => JSON.parse(file(name).toString());

describe("the server's geometry", () => {
  const packed = decodeGeometry(bytes("geometry.hfgm"));
  const document = decodeGeometry(json("geometry.json"));

  it("is the same from the compact form and from JSON", () => {
    expect(packed.seatCount).toBe(77);
    expect(packed).toEqual(document);
  });

  it("has every coordinate of a small layout to the last digit", () => {
    const told = json("geometry.json").data.columns;
    for (let i = 0; i < packed.seatCount; i++) {
      if (told.x[i] === null) expect([packed.x[i], packed.y[i]]).toEqual([NaN, NaN]);
      else {
        expect(packed.x[i]).toBe(Math.fround(told.x[i]));
        expect(packed.y[i]).toBe(Math.fround(told.y[i]));
      }
    }
    expect(told.x.filter((x: number | null) => x === null)).toHaveLength(3);
  });

  it("gives every seat the section its ordinal falls into", () => {
    expect([0, 65, 66, 73, 74, 76].map((i) => packed.sections[packed.section[i]!]!.zone_id)).toEqual(
      ["stalls", "stalls", "balcony", "balcony", "loge", "loge"]);
  });

  it("gives every seat the ids that the server gives it", () => {
    const identities = new SeatIdentities(packed);
    const names = json("seat-names.json") as { seat_id: string; id: string }[];
    names.forEach(({ seat_id, id }, ordinal) => {
      expect(identities.seatId(ordinal)).toBe(seat_id);
      expect(identities.uuid(ordinal)).toBe(id);
      expect(identities.ordinal(seat_id)).toBe(ordinal);
      expect(identities.ordinal(id.toUpperCase())).toBe(ordinal);
    });
    expect([identities.ordinal("nobody"), identities.ordinal(-1), identities.ordinal(77), identities.ordinal(1.5)]).toEqual([-1, -1, -1, -1]);
  });

  it("makes version 5 UUIDs, also of names longer than a block", () => {
    // Of Python's uuid.uuid5.
    expect(uuid5("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "www.example.com")).toBe("2ed6657d-e927-568b-95e1-2665a8aea6a2");
    expect(uuid5("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "é".repeat(50))).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab]/);
  });

  it("is refused when it is of another form, cut short, too long or no geometry", () => {
    const whole = bytes("geometry.hfgm");
    const other = whole.slice(0);
    new DataView(other).setUint16(4, 2, true);
    expect(() => decodeGeometry(other)).toThrow(GeometryInvalid);
    expect(() => decodeGeometry(whole.slice(0, whole.byteLength - 4))).toThrow(GeometryInvalid);
    expect(() => decodeGeometry(whole.slice(0, 40))).toThrow(GeometryInvalid);
    expect(() => decodeGeometry(new ArrayBuffer(0))).toThrow(GeometryInvalid);
    const longer = new Uint8Array(whole.byteLength + 4);
    longer.set(new Uint8Array(whole));
    expect(() => decodeGeometry(longer.buffer)).toThrow(GeometryInvalid);
    expect(() => decodeGeometry({ ...json("geometry.json").data, form: 2 })).toThrow(GeometryInvalid);
  });
});

describe("the server's snapshot", () => {
  it("says the same as bytes and as JSON", () => {
    const packed = decodeSnapshot(bytes("snapshot.hfs1"));
    const document = decodeSnapshot(json("snapshot.json"));
    expect(packed).toEqual(document);
    expect(packed.sequence).toBe("1184.1794729012.1");
    expect(packed.places).toEqual([{ zone_no: 1, capacity: 40, held: 3, sold: 5, blocked: 2, version: 7 }]);
    expect(packed.notOfferedBecause).toBe("Kept for a companion");
  });

  it("is refused when it is cut short or none", () => {
    const whole = bytes("snapshot.hfs1");
    expect(() => decodeSnapshot(whole.slice(0, whole.byteLength - 1))).toThrow(SnapshotInvalid);
    expect(() => decodeSnapshot(bytes("geometry.hfgm"))).toThrow(SnapshotInvalid);
    expect(() => decodeSnapshot(new ArrayBuffer(3))).toThrow(SnapshotInvalid);
  });
});
