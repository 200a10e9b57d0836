import type { Backend, FrameReport, Instruction, WorkerNote } from "./backend.js";
import type { Pixel } from "./colour.js";
import type { Dressing, Frame, Paper, Scene, SectionPaint } from "./scene.js";
import type { SeatLook } from "./style.js";

/** Hands every call to the worker. A worker that cannot start is told to `failed`, which draws here instead. */
export class WorkerBackend implements Backend {
  readonly #worker: Worker;

  constructor(worker: Worker, canvas: HTMLCanvasElement, drawn: (report: FrameReport) => void, failed: () => void) {
    this.#worker = worker;
    let ready = false;
    worker.addEventListener("message", ({ data }: MessageEvent<WorkerNote>) => {
      if (data.note === "ready") ready = true;
      else drawn(data);
    });
    worker.addEventListener("error", () => {
      if (!ready) failed();
    });
    const handed = canvas.transferControlToOffscreen();
    worker.postMessage({ call: "open", canvas: handed } satisfies Instruction, [handed]);
  }

  setScene(scene: Scene): void {
    this.#send({ call: "setScene", scene });
  }

  setPaper(paper: Paper): void {
    this.#send({ call: "setPaper", paper });
  }

  dress(dressing: Dressing): void {
    this.#send({ call: "dress", dressing });
  }

  redress(ordinals: Uint32Array, styles: Uint16Array, newLooks: readonly SeatLook[]): void {
    this.#send({ call: "redress", ordinals, styles, newLooks });
  }

  paintSections(sections: readonly SectionPaint[], ground: Pixel): void {
    this.#send({ call: "paintSections", sections, ground });
  }

  setFrame(frame: Frame): void {
    this.#send({ call: "setFrame", frame });
  }

  close(): void {
    this.#send({ call: "close" });
    // Whatever is still in its queue must not keep it alive.
    setTimeout(() => this.#worker.terminate(), 0);
  }

  #send(instruction: Instruction): void {
    this.#worker.postMessage(instruction);
  }
}
