import { decodeGeometry } from "../geometry/decode-geometry.js";
import type { Geometry } from "../geometry/geometry.js";
import type { PricesDocument } from "../state/prices.js";
import type { SeatChanges } from "../state/seat-states.js";
import { decodeSnapshot } from "../state/snapshot.js";
import type { Snapshot } from "../state/snapshot.js";
import { EventStream } from "./event-stream.js";
import type { StreamEvent } from "./event-stream.js";
import { Patience } from "./patience.js";

export type FeedStatus = "loading" | "live" | "reconnecting" | "down" | "refused" | "closed";

/** Where the data goes. */
export interface FeedSink {
  geometry(geometry: Geometry): void;
  prices(prices: PricesDocument): void;
  snapshot(snapshot: Snapshot): void;
  changes(changes: SeatChanges): void;
  notice(notice: { readonly kind: string } & Record<string, unknown>): void;
  status(status: FeedStatus, detail: string): void;
}

/** `renew`: the last one was refused. Null: none is needed. */
export type TokenSource = (renew: boolean) => string | null | Promise<string | null>;

export interface FeedOptions {
  /** Where the server is; the page's own origin if left out. */
  readonly baseUrl?: string;
  readonly eventId: string;
  readonly token?: TokenSource;
  readonly fetch?: typeof fetch;
}

/** The server sends something every 15 s: after twice that and a little, the connection is dead without knowing it. */
const SILENCE_MS = 35_000;

class Refused extends Error {
  override readonly name = "Refused";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Loads an event's seats from a Holdfast server and follows what becomes of them. */
export class Feed {
  readonly #options: FeedOptions;
  readonly #sink: FeedSink;
  readonly #patience = new Patience();
  readonly #ended = new AbortController();
  #token: string | null = null;
  #place: string | null = null;
  #seatCount = -1;
  /** While a snapshot is on its way, what changes meanwhile waits behind it. */
  #waiting: { changes: SeatChanges; id: string | null }[] | null = null;
  #started = false;

  constructor(options: FeedOptions, sink: FeedSink) {
    this.#options = options;
    this.#sink = sink;
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    void this.#run();
  }

  close(): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    this.#sink.status("closed", "");
  }

  /** Loads the snapshot again: after a purchase, or when in doubt. */
  async refresh(): Promise<void> {
    await this.#loadSnapshot();
  }

  async #run(): Promise<void> {
    this.#sink.status("loading", "");
    while (!this.#ended.signal.aborted) {
      try {
        if (this.#token === null) this.#token = (await this.#options.token?.(false)) ?? null;
        if (this.#seatCount < 0) await this.#loadAll();
        if (this.#place === null) await this.#loadSnapshot();
        await this.#follow();
        this.#sink.status("reconnecting", "");
      } catch (error) {
        if (this.#ended.signal.aborted) return;
        if (error instanceof Refused && error.status === 401 && this.#options.token && !this.#patience.isOut) {
          this.#token = (await Promise.resolve(this.#options.token(true)).catch(() => null)) ?? null;
        } else if (error instanceof Refused && error.status < 500 && error.status !== 429 && error.status !== 401) {
          this.#sink.status("refused", error.message);
          return;
        }
        const pause = this.#patience.failed();
        this.#sink.status(this.#patience.isOut ? "down" : "reconnecting", error instanceof Error ? error.message : "");
        await this.#rest(pause);
      }
    }
  }

  async #loadAll(): Promise<void> {
    const [geometry, prices] = await Promise.all([this.#bytes("geometry"), this.#pricesIfAny()]);
    const decoded = decodeGeometry(geometry);
    this.#seatCount = decoded.seatCount;
    this.#place = null;
    this.#sink.geometry(decoded);
    if (prices) this.#sink.prices(prices);
  }

  /** A server that tells no prices still has seats to show. */
  async #pricesIfAny(): Promise<PricesDocument | null> {
    try {
      const answer = await this.#ask("prices", "application/json");
      return ((await answer.json()) as { data: PricesDocument }).data;
    } catch (error) {
      if (error instanceof Refused && (error.status === 403 || error.status === 404)) return null;
      throw error;
    }
  }

  async #loadSnapshot(): Promise<void> {
    this.#waiting ??= [];
    let snapshot: Snapshot;
    try {
      snapshot = decodeSnapshot(await this.#bytes("availability"));
      // The event went over to another layout in between: its ordinals mean other seats.
      if (snapshot.seatCount !== this.#seatCount) {
        await this.#loadAll();
        snapshot = decodeSnapshot(await this.#bytes("availability"));
      }
    } catch (error) {
      this.#waiting = null;
      this.#place = null;
      throw error;
    }
    const waiting = this.#waiting ?? [];
    this.#waiting = null;
    this.#sink.snapshot(snapshot);
    this.#place = snapshot.sequence;
    for (const { changes, id } of waiting) {
      if (id !== null && markOf(id) <= markOf(snapshot.sequence)) continue;
      this.#sink.changes(changes);
      if (id !== null) this.#place = id;
    }
  }

  /** Reads the stream until it ends. */
  async #follow(): Promise<void> {
    const connection = new AbortController();
    const stop = () => connection.abort();
    this.#ended.signal.addEventListener("abort", stop);
    let watch: ReturnType<typeof setTimeout> | undefined;
    const heard = () => {
      clearTimeout(watch);
      watch = setTimeout(stop, SILENCE_MS);
    };
    try {
      heard();
      const answer = await this.#ask("live", "text/event-stream", connection.signal, { "Last-Event-ID": this.#place! });
      const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
      const stream = new EventStream();
      this.#patience.succeeded();
      this.#sink.status("live", "");
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        heard();
        for (const event of stream.push(value)) await this.#take(event);
        if (stream.retryMs !== null) this.#patience.firstMs = stream.retryMs;
      }
    } finally {
      clearTimeout(watch);
      this.#ended.signal.removeEventListener("abort", stop);
      connection.abort();
    }
  }

  async #take({ type, data, id }: StreamEvent): Promise<void> {
    if (type === "seats") {
      const changes = JSON.parse(data) as SeatChanges;
      if (this.#waiting) {
        this.#waiting.push({ changes, id });
        return;
      }
      this.#sink.changes(changes);
    } else if (type === "resync") {
      // Not awaited: the stream must be read on, or the server drops a reader that is too slow.
      this.#waiting ??= [];
      void this.#loadSnapshot().catch((error: unknown) => {
        this.#sink.status("reconnecting", error instanceof Error ? error.message : "");
        setTimeout(() => void this.#loadSnapshot().catch(() => undefined), this.#patience.failed());
      });
      return;
    } else if (type === "notice") {
      const notice = JSON.parse(data) as { kind: string } & Record<string, unknown>;
      this.#sink.notice(notice);
      if (notice.kind === "EventMigrated") {
        this.#waiting ??= [];
        // Should loading fail, the next connection begins with the geometry.
        this.#seatCount = -1;
        await this.#loadAll();
        await this.#loadSnapshot();
      }
    }
    if (id !== null && !this.#waiting) this.#place = id;
  }

  async #bytes(what: string): Promise<ArrayBuffer> {
    return (await this.#ask(what, "application/octet-stream")).arrayBuffer();
  }

  async #ask(what: string, accept: string, signal = this.#ended.signal, more: Record<string, string> = {}): Promise<Response> {
    const { baseUrl = "", eventId } = this.#options;
    const headers: Record<string, string> = { Accept: accept, ...more };
    if (this.#token) headers.Authorization = `Bearer ${this.#token}`;
    const url = `${baseUrl.replace(/\/$/, "")}/api/events/${encodeURIComponent(eventId)}/${what}`;
    const ask = this.#options.fetch ?? globalThis.fetch.bind(globalThis);
    const answer = await ask(url, { headers, signal });
    if (!answer.ok) throw new Refused(answer.status, await problemOf(answer));
    return answer;
  }

  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#ended.signal.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve();
      }, { once: true });
    });
  }
}

/** A place's first number: everything done by transactions below it has been told. */
function markOf(place: string): number {
  return Number(place.split(".", 1)[0]);
}

async function problemOf(answer: Response): Promise<string> {
  try {
    const problem = (await answer.json()) as { detail?: string; title?: string };
    return problem.detail ?? problem.title ?? `${answer.status}`;
  } catch {
    return `${answer.status}`;
  }
}
