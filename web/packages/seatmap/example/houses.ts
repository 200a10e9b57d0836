import type { Geometry, PricesDocument, Section, SnapshotDocument } from "@holdfast/seatmap";

/** Houses that are made up: the same forms as the server's, without one. */
export interface House {
  readonly geometry: Geometry;
  readonly prices: PricesDocument;
  readonly snapshot: SnapshotDocument;
}

const CATEGORIES = ["standard", "wheelchair", "companion", "restricted_view", "aisle"];
const LAYOUT = "6f1a2b3c-4d5e-4f60-8a7b-9c0d1e2f3a4b";

interface Made {
  x: number;
  y: number;
  row: string;
  number: number;
  category: string;
}

class Builder {
  readonly #seats: Made[] = [];
  readonly #sections: Section[] = [];
  readonly #rows: string[] = [];
  readonly #rowOf: number[] = [];
  readonly companions: [number, number][] = [];

  get seatCount(): number {
    return this.#seats.length;
  }

  section(zone_id: string, name: string, seats: readonly Made[], capacity = seats.length): void {
    this.#sections.push({
      id: `${zone_id}-id`, zone_id, name, zone_type: seats.length ? "reserved_seating" : "ga_standing", capacity,
      access_mode: "public", required_tier: null, first_ordinal: this.#seats.length, seat_count: seats.length, focal_point: null,
      seat_id_prefix: `${zone_id}-`, seat_id_separator: "-",
    });
    let last: string | null = null;
    for (const seat of seats) {
      if (seat.row !== last) this.#rows.push(seat.row);
      last = seat.row;
      this.#rowOf.push(this.#rows.length - 1);
      if (seat.category === "companion") this.companions.push([this.#seats.length - 1, this.#seats.length]);
      this.#seats.push(seat);
    }
  }

  geometry(focalPoint: { x: number; y: number }): Geometry {
    const seats = this.#seats;
    const section = new Uint16Array(seats.length);
    this.#sections.forEach((one, n) => section.fill(n, one.first_ordinal, one.first_ordinal + one.seat_count));
    return {
      layoutId: LAYOUT, seatCount: seats.length, totalCapacity: this.#sections.reduce((sum, { capacity }) => sum + capacity, 0),
      focalPoint, sections: this.#sections, rows: this.#rows, aisles: {}, categories: CATEGORIES, groups: [],
      companions: this.companions, irregularSeatIds: {},
      x: Float32Array.from(seats, ({ x }) => x), y: Float32Array.from(seats, ({ y }) => y),
      row: Int32Array.from(this.#rowOf), number: Int32Array.from(seats, ({ number }) => number),
      category: Uint8Array.from(seats, ({ category }) => CATEGORIES.indexOf(category)), section,
    };
  }
}

/** The same every time: pictures and measurements must be comparable. */
export function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** Rows on arcs around the stage, with aisles, a balcony, boxes and standing room. */
export function theatre(): House {
  const builder = new Builder();
  const arc = (row: string, radius: number, from: number, to: number, options: { aisles?: number[]; first?: number; pairs?: boolean; restricted?: number } = {}): Made[] => {
    const seats: Made[] = [];
    const step = 1 / radius;
    const count = Math.floor((to - from) / step);
    const slack = (to - from - count * step) / 2;
    for (let n = 0; n < count; n++) {
      const angle = from + slack + (n + 0.5) * step;
      if (options.aisles?.some((aisle) => Math.abs(angle - aisle) < 0.75 / radius)) continue;
      seats.push({ x: 50 + radius * Math.sin(angle), y: radius * Math.cos(angle), row, number: 0, category: "standard" });
    }
    seats.forEach((seat, n) => {
      seat.number = n + (options.first ?? 1);
      if (options.restricted && (n < options.restricted || n >= seats.length - options.restricted)) seat.category = "restricted_view";
    });
    if (options.pairs) {
      for (const at of [0, 2, seats.length - 4, seats.length - 2]) {
        seats[at]!.category = "wheelchair";
        seats[at + 1]!.category = "companion";
      }
    }
    return seats;
  };
  const letters = "ABCDEFGHJKLMNPQRSTUV";
  const aisles = [-0.28, 0.28];
  const parquet = Array.from({ length: 14 }, (_, n) => arc(letters[n]!, 16 + n * 1.18, -0.78, 0.78, { aisles, pairs: n === 13 }));
  builder.section("stalls", "Stalls", parquet.flat());
  const circle = Array.from({ length: 7 }, (_, n) => arc(letters[n]!, 36 + n * 1.25, -0.86, 0.86, { aisles: [-0.43, 0, 0.43], restricted: n < 2 ? 3 : 0 }));
  builder.section("circle", "Dress circle", circle.flat());
  for (const [side, name, sign] of [["left", "Left boxes", -1], ["right", "Right boxes", 1]] as const) {
    const seats: Made[] = [];
    for (let box = 0; box < 4; box++) {
      const radius = 24 + box * 5;
      const angle = sign * 1.02;
      for (let n = 0; n < 6; n++) {
        const along = (n % 3) - 1, deep = Math.floor(n / 3);
        seats.push({
          x: 50 + (radius + along * 1.15) * Math.sin(angle + (sign * deep * 1.2) / radius), y: (radius + along * 1.15) * Math.cos(angle + (sign * deep * 1.2) / radius),
          row: `Box ${box + 1}`, number: n + 1, category: n > 3 ? "restricted_view" : "standard",
        });
      }
    }
    builder.section(`boxes-${side}`, name, seats);
  }
  builder.section("standing", "Standing room", [], 120);
  const geometry = builder.geometry({ x: 50, y: 10.5 });
  return {
    geometry,
    prices: {
      currency: "EUR",
      zones: [
        { zone_id: "stalls", amount_minor: 8000, categories: [{ category: "wheelchair", amount_minor: 4000 }, { category: "companion", amount_minor: 4000 }] },
        { zone_id: "circle", amount_minor: 6000, categories: [{ category: "restricted_view", amount_minor: 3500 }] },
        { zone_id: "boxes-left", amount_minor: 9500 }, { zone_id: "boxes-right", amount_minor: 9500 },
        { zone_id: "standing", amount_minor: 2000 },
      ],
    },
    snapshot: sold(geometry, 11, 0.38, [{ zone_no: 4, capacity: 120, held: 4, sold: 61, blocked: 0, version: 1 }]),
  };
}

const SEATS = 100_000;
const TOO_MANY = 212;

/** A bowl of three tiers, each cut into blocks; rows go around, a little denser than in life. */
export function stadium(seatsWanted = SEATS): House {
  const builder = new Builder();
  const tiers = [
    { id: "1", name: "Lower", rows: 26, from: 0, blocks: 28 },
    { id: "2", name: "Middle", rows: 24, from: 30, blocks: 32 },
    { id: "3", name: "Upper", rows: 37, from: 58, blocks: 36 },
  ];
  let left = seatsWanted;
  for (const tier of tiers) {
    for (let block = 0; block < tier.blocks && left > 0; block++) {
      const seats: Made[] = [];
      for (let n = 0; n < tier.rows && left > 0; n++) {
        const out = (tier.from + n) * 0.82;
        const [a, b] = [62 + out, 44 + out];
        const angles = blockAngles(a, b, block, tier.blocks);
        // The bowl has a few too many for a round number: the last row has a gap at each block's end.
        if (tier.id === "3" && n === tier.rows - 1) {
          angles.length -= Math.floor(((block + 1) * TOO_MANY) / tier.blocks) - Math.floor((block * TOO_MANY) / tier.blocks);
        }
        const accessible = tier.id === "2" && n === 0;
        angles.slice(0, left).forEach((angle, place) => {
          const pair = accessible && block % 4 === 1 && place < 8;
          seats.push({
            x: a * Math.cos(angle), y: b * Math.sin(angle), row: String(n + 1), number: place + 1,
            category: pair ? (place % 2 ? "companion" : "wheelchair") : tier.id === "3" && n > 34 ? "restricted_view" : "standard",
          });
        });
        left -= Math.min(angles.length, left);
      }
      if (seats.length) builder.section(`${tier.id}${String(block + 1).padStart(2, "0")}`, `${tier.id}${String(block + 1).padStart(2, "0")}`, seats);
    }
  }
  const geometry = builder.geometry({ x: 0, y: 0 });
  const amounts: Readonly<Record<string, number>> = { 1: 12500, 2: 9000, 3: 4500 };
  return {
    geometry,
    prices: {
      currency: "EUR",
      zones: geometry.sections.map(({ zone_id }) => ({
        zone_id, amount_minor: amounts[zone_id[0]!]!,
        categories: [{ category: "restricted_view", amount_minor: 3000 }, { category: "wheelchair", amount_minor: 4500 }, { category: "companion", amount_minor: 4500 }],
      })),
    },
    snapshot: sold(geometry, 7, 0.45, []),
  };
}

const WIDTHS = new Map<string, Float64Array>();

/** Seats half a metre apart along an ellipse, between the aisles at both ends of a block. */
function blockAngles(a: number, b: number, block: number, blocks: number): number[] {
  const STEPS = 720;
  const key = `${a}`;
  let lengths = WIDTHS.get(key);
  if (!lengths) {
    lengths = new Float64Array(STEPS + 1);
    for (let i = 1; i <= STEPS; i++) {
      const [from, to] = [((i - 1) / STEPS) * 2 * Math.PI, (i / STEPS) * 2 * Math.PI];
      lengths[i] = lengths[i - 1]! + Math.hypot(a * (Math.cos(to) - Math.cos(from)), b * (Math.sin(to) - Math.sin(from)));
    }
    WIDTHS.set(key, lengths);
  }
  const angleAt = (length: number) => {
    let low = 0, high = STEPS;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lengths[middle]! < length) low = middle + 1;
      else high = middle;
    }
    const before = lengths[Math.max(low - 1, 0)]!, span = lengths[low]! - before || 1;
    return ((Math.max(low - 1, 0) + (length - before) / span) / STEPS) * 2 * Math.PI;
  };
  const startAngle = (block / blocks) * 2 * Math.PI, endAngle = ((block + 1) / blocks) * 2 * Math.PI;
  const lengthAt = (angle: number) => {
    const at = (angle / (2 * Math.PI)) * STEPS;
    const low = Math.min(Math.floor(at), STEPS - 1);
    return lengths[low]! + (lengths[low + 1]! - lengths[low]!) * (at - low);
  };
  const start = lengthAt(startAngle) + 0.7, end = lengthAt(endAngle) - 0.7;
  const count = Math.max(0, Math.floor((end - start) / 0.47) + 1);
  const slack = (end - start - (count - 1) * 0.47) / 2;
  return Array.from({ length: count }, (_, n) => angleAt(start + slack + n * 0.47));
}

/** Sold in groups of neighbours, as people buy. */
function sold(geometry: Geometry, seed: number, share: number, zones: SnapshotDocument["zones"]): SnapshotDocument {
  const random = dice(seed);
  const states = new Array<string>(geometry.seatCount).fill("a");
  const held: Record<string, number[]> = { CART: [], SPONSOR: [] };
  const popularity = geometry.sections.map(() => 0.4 + random() * 1.2);
  for (let i = 0; i < geometry.seatCount; ) {
    const group = 1 + Math.floor(random() * random() * 6);
    const [chance, kind] = [random(), random()];
    if (chance < share * popularity[geometry.section[i]!]!) {
      for (let n = i; n < Math.min(i + group, geometry.seatCount); n++) {
        states[n] = kind < 0.84 ? "s" : kind < 0.985 ? "h" : "b";
        if (states[n] === "h") held[kind < 0.95 ? "CART" : "SPONSOR"]!.push(n);
      }
    }
    i += group;
  }
  const kept: number[] = [];
  for (const [wheelchair, companion] of geometry.companions) {
    if (states[wheelchair] !== "a" && states[companion] === "a") kept.push(companion);
  }
  return {
    sequence: "1.0.0", seat_count: geometry.seatCount, states: states.join(""), hold_types: held, zones: zones ?? [],
    not_offered: kept, not_offered_because: "Kept for the companion of a wheelchair user",
  };
}
