import type { Backend, BackendKind, FrameReport } from "./backend.js";
import { CanvasBackend } from "./canvas-backend.js";
import { WorkerBackend } from "./worker-backend.js";

export interface Opened {
  readonly kind: BackendKind;
  readonly backend: Backend;
  readonly canvas: HTMLCanvasElement;
}

export interface Opening {
  readonly kind: BackendKind | "auto";
  /** Where the worker's file is, if not beside this one. */
  readonly workerUrl: string | null;
  readonly drawn: (report: FrameReport) => void;
  /** The worker did not start (another origin, a policy, a bundler that left it out): open again, here. */
  readonly failed: () => void;
}

export function openBackend(opening: Opening): Opened {
  const canvas = document.createElement("canvas");
  if (opening.kind !== "main" && canDrawInWorker()) {
    try {
      const worker = newWorker(opening.workerUrl);
      return { kind: "worker", backend: new WorkerBackend(worker, canvas, opening.drawn, opening.failed), canvas };
    } catch {
      // A policy may forbid workers: the page's own thread can draw as well.
    }
  }
  return { kind: "main", backend: new CanvasBackend(canvas, document.createElement("canvas"), opening.drawn), canvas };
}

function canDrawInWorker(): boolean {
  return typeof Worker === "function" && typeof OffscreenCanvas === "function" &&
    "transferControlToOffscreen" in HTMLCanvasElement.prototype;
}

function newWorker(url: string | null): Worker {
  if (url) return new Worker(url, { type: "module", name: "holdfast-seatmap" });
  // Bundlers know this form and carry the file along; without one, it lies beside the package's own.
  return new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "holdfast-seatmap" });
}
