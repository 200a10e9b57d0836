import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EventStream } from "../src/feed/event-stream.js";
import { Feed } from "../src/feed/feed.js";
import type { FeedSink, FeedStatus } from "../src/feed/feed.js";
import { Patience } from "../src/feed/patience.js";

const file = (name: string) => readFileSync(new URL(`./fixtures/${name}`, import.meta.url));

describe("server-sent events", () => {
  const text = 'retry: 1500\n\nid: 7.1.1\nevent: seats\ndata: {"a":\ndata: 1}\n\n: \n\nevent: occupancy\r\ndata: {}\r\n\r\ndata:x\n\n';

  it("are the same however the text is cut", () => {
    const whole = new EventStream().push(text);
    expect(whole).toEqual([
      { type: "seats", data: '{"a":\n1}', id: "7.1.1" }, { type: "occupancy", data: "{}", id: null }, { type: "message", data: "x", id: null },
    ]);
    for (let size = 1; size < 12; size++) {
      const stream = new EventStream();
      const found = [];
      for (let at = 0; at < text.length; at += size) found.push(...stream.push(text.slice(at, at + size)));
      expect(found).toEqual(whole);
      expect(stream.retryMs).toBe(1500);
    }
  });
});

describe("patience", () => {
  it("waits longer each time, and begins anew after a success", () => {
    const patience = new Patience(() => 1);
    expect([patience.failed(), patience.failed(), patience.failed()]).toEqual([1000, 2000, 4000]);
    expect(patience.isOut).toBe(true);
    for (let n = 0; n < 10; n++) expect(patience.failed()).toBeLessThanOrEqual(30_000);
    patience.succeeded();
    expect(patience.isOut).toBe(false);
    expect(patience.failed()).toBe(1000);
  });
});

/** A server in a few lines: answers are given out in turn, and what was asked is kept. */
class Stand {
  readonly asked: { path: string; headers: Record<string, string> }[] = [];
  readonly told: string[] = [];
  readonly statuses: FeedStatus[] = [];
  down = false;
  unauthorized = 0;
  snapshotName = "snapshot.hfs1";
  /** How many snapshots may be answered before they have to wait. */
  held: (() => void)[] | null = null;
  stream: ReadableStreamDefaultController<Uint8Array> | null = null;

  readonly fetch = (async (url: string, { headers, signal }: { headers: Record<string, string>; signal: AbortSignal }) => {
    const path = url.split("/").at(-1)!;
    this.asked.push({ path, headers });
    if (this.down) throw new TypeError("failed to fetch");
    if (this.unauthorized > 0) {
      this.unauthorized--;
      return new Response(JSON.stringify({ detail: "The token is over." }), { status: 401 });
    }
    if (path === "geometry") return new Response(file("geometry.hfgm"));
    if (path === "prices") return new Response("{}", { status: 404 });
    if (path === "availability") {
      if (this.held) await new Promise<void>((resolve) => this.held!.push(resolve));
      return new Response(file(this.snapshotName));
    }
    const body = new ReadableStream<Uint8Array>({ start: (controller) => { this.stream = controller; } });
    signal.addEventListener("abort", () => {
      try {
        this.stream?.error(new DOMException("aborted", "AbortError"));
      } catch {
        // It was over already.
      }
    });
    return new Response(body);
  }) as unknown as typeof fetch;

  readonly sink: FeedSink = {
    geometry: ({ seatCount }) => this.told.push(`geometry ${seatCount}`),
    prices: () => this.told.push("prices"),
    snapshot: ({ sequence }) => this.told.push(`snapshot ${sequence}`),
    changes: ({ ordinals }) => this.told.push(`changes ${ordinals}`),
    notice: ({ kind }) => this.told.push(`notice ${kind}`),
    status: (status) => this.statuses.push(status),
  };

  say(text: string): void {
    this.stream!.enqueue(new TextEncoder().encode(text));
  }

  seats(ordinal: number, id: string): void {
    this.say(`id: ${id}\nevent: seats\ndata: {"ordinals":[${ordinal}],"values":[1],"versions":[1]}\n\n`);
  }

  lastPlace(): string | undefined {
    return this.asked.filter(({ path }) => path === "live").at(-1)?.headers["Last-Event-ID"];
  }
}

describe("the feed", () => {
  let stand: Stand;
  let feed: Feed;
  const settle = () => vi.advanceTimersByTimeAsync(20);
  const begin = async (token?: (renew: boolean) => string) => {
    feed = new Feed({ eventId: "e", baseUrl: "http://x/", fetch: stand.fetch, ...(token ? { token } : {}) }, stand.sink);
    feed.start();
    await settle();
  };

  beforeEach(() => {
    vi.useFakeTimers();
    stand = new Stand();
  });
  afterEach(() => {
    feed.close();
    vi.useRealTimers();
  });

  it("loads geometry and snapshot, then follows from the snapshot's place", async () => {
    await begin(() => "secret");
    expect(stand.told).toEqual(["geometry 77", "snapshot 1184.1794729012.1"]);
    expect(stand.lastPlace()).toBe("1184.1794729012.1");
    expect(stand.asked.every(({ headers }) => headers.Authorization === "Bearer secret")).toBe(true);
    stand.seats(3, "1185.1.1");
    await settle();
    expect(stand.told.at(-1)).toBe("changes 3");
    expect(stand.statuses).toEqual(["loading", "live"]);
  });

  it("takes up again where it was when the connection ends", async () => {
    await begin();
    stand.seats(3, "1186.1.2");
    await settle();
    stand.stream!.close();
    await settle();
    expect(stand.lastPlace()).toBe("1186.1.2");
    expect(stand.told.filter((line) => line.startsWith("snapshot"))).toHaveLength(1);
    expect(stand.statuses.slice(-2)).toEqual(["reconnecting", "live"]);
  });

  it("loads the snapshot again after resync; what came meanwhile is kept, what is in it already is not", async () => {
    await begin();
    stand.held = [];
    stand.say("id: 1190.1.1\nevent: resync\ndata: {}\n\n");
    await settle();
    stand.seats(1, "1184.1.9");
    stand.seats(2, "1195.1.1");
    await settle();
    expect(stand.told.filter((line) => line.startsWith("changes"))).toEqual([]);
    stand.held.forEach((go) => go());
    await settle();
    expect(stand.told.slice(-2)).toEqual(["snapshot 1184.1794729012.1", "changes 2"]);
    stand.held = null;
    stand.stream!.close();
    await settle();
    expect(stand.lastPlace()).toBe("1195.1.1");
  });

  it("loads the geometry again when the event moved to another layout", async () => {
    await begin();
    stand.say('event: notice\ndata: {"kind":"EventMigrated"}\n\n');
    await settle();
    expect(stand.told.slice(-3)).toEqual(["notice EventMigrated", "geometry 77", "snapshot 1184.1794729012.1"]);
  });

  it("says that the server is down only after several tries, and comes back by itself", async () => {
    await begin();
    stand.down = true;
    stand.stream!.error(new TypeError("gone"));
    await settle();
    expect(stand.statuses.at(-1)).toBe("reconnecting");
    await vi.advanceTimersByTimeAsync(12_000);
    expect(stand.statuses.at(-1)).toBe("down");
    stand.down = false;
    await vi.advanceTimersByTimeAsync(31_000);
    expect(stand.statuses.at(-1)).toBe("live");
  });

  it("notices a connection that is silent for too long", async () => {
    await begin();
    await vi.advanceTimersByTimeAsync(34_000);
    stand.say(": \n\n");
    await vi.advanceTimersByTimeAsync(34_000);
    expect(stand.asked.filter(({ path }) => path === "live")).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(stand.asked.filter(({ path }) => path === "live")).toHaveLength(2);
  });

  it("asks for another token when the first is refused", async () => {
    stand.unauthorized = 2;
    const asked: boolean[] = [];
    await begin((renew) => {
      asked.push(renew);
      return renew ? "new" : "old";
    });
    await vi.advanceTimersByTimeAsync(3_000);
    expect(asked).toEqual([false, true]);
    expect(stand.statuses.at(-1)).toBe("live");
    expect(stand.asked.at(-1)!.headers.Authorization).toBe("Bearer new");
  });

  it("ends when it is closed", async () => {
    await begin();
    feed.close();
    const asked = stand.asked.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(stand.asked).toHaveLength(asked);
    expect(stand.statuses.at(-1)).toBe("closed");
  });
});
