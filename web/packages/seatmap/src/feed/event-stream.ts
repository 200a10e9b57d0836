export interface StreamEvent {
  readonly type: string;
  readonly data: string;
  /** Where the stream can be taken up again; events without one leave it as it was. */
  readonly id: string | null;
}

/**
 * Server-sent events out of chunks of text. Of our own because the browser's EventSource cannot send a token in a header,
 * and says nothing about why it failed.
 */
export class EventStream {
  #rest = "";
  #type = "";
  #id: string | null = null;
  #data: string[] = [];
  #retryMs: number | null = null;

  /** What the server asked to wait before coming back. */
  get retryMs(): number | null {
    return this.#retryMs;
  }

  push(text: string): StreamEvent[] {
    const found: StreamEvent[] = [];
    const whole = this.#rest + text;
    // A return at the very end may be half of a line's end.
    const held = whole.endsWith("\r") ? "\r" : "";
    const lines = (held ? whole.slice(0, -1) : whole).split(/\r\n|\n|\r/);
    this.#rest = lines.pop()! + held;
    for (const line of lines) {
      if (line !== "") {
        this.#take(line);
        continue;
      }
      if (this.#data.length) found.push({ type: this.#type || "message", data: this.#data.join("\n"), id: this.#id });
      this.#type = "";
      this.#id = null;
      this.#data = [];
    }
    return found;
  }

  #take(line: string): void {
    if (line.startsWith(":")) return;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#type = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.#retryMs = Number(value);
  }
}
