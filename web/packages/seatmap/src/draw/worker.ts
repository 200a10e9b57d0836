/** The drawing worker: the same backend as on the main thread, on a canvas that was handed over. */
import type { Instruction, WorkerNote } from "./backend.js";
import { CanvasBackend } from "./canvas-backend.js";

// The types of the page and of a worker exclude each other; this much of a worker is needed here.
const port = globalThis as unknown as {
  postMessage(note: WorkerNote): void;
  addEventListener(type: "message", listener: (message: MessageEvent<Instruction>) => void): void;
  close(): void;
};

let backend: CanvasBackend | null = null;

port.addEventListener("message", ({ data }) => {
  switch (data.call) {
    case "open":
      backend = new CanvasBackend(data.canvas, new OffscreenCanvas(1, 1), (report) => port.postMessage({ note: "drawn", ...report }));
      port.postMessage({ note: "ready" });
      break;
    case "setScene": backend?.setScene(data.scene); break;
    case "setPaper": backend?.setPaper(data.paper); break;
    case "dress": backend?.dress(data.dressing); break;
    case "redress": backend?.redress(data.ordinals, data.styles, data.newLooks); break;
    case "paintSections": backend?.paintSections(data.sections, data.ground); break;
    case "setFrame": backend?.setFrame(data.frame); break;
    case "close":
      backend?.close();
      port.close();
      break;
  }
});
