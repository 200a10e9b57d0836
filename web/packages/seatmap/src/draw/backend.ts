import type { Pixel } from "./colour.js";
import type { Dressing, Frame, Paper, Scene, SectionPaint } from "./scene.js";
import type { SeatLook } from "./style.js";

export interface FrameReport {
  /** Counts up with every picture that was drawn. */
  readonly frame: number;
  /** From the first instruction of drawing to the last, where it was drawn. */
  readonly drawMs: number;
}

/** Draws what it is told. All of it may be told at any time; a picture is made at most once a frame. */
export interface Backend {
  setScene(scene: Scene): void;
  setPaper(paper: Paper): void;
  dress(dressing: Dressing): void;
  redress(ordinals: Uint32Array, styles: Uint16Array, newLooks: readonly SeatLook[]): void;
  paintSections(sections: readonly SectionPaint[], ground: Pixel): void;
  setFrame(frame: Frame): void;
  close(): void;
}

export type BackendKind = "worker" | "main";

/** What goes to the worker: the calls of `Backend` by name. */
export type Instruction =
  | { readonly call: "open"; readonly canvas: OffscreenCanvas }
  | { readonly call: "setScene"; readonly scene: Scene }
  | { readonly call: "setPaper"; readonly paper: Paper }
  | { readonly call: "dress"; readonly dressing: Dressing }
  | { readonly call: "redress"; readonly ordinals: Uint32Array; readonly styles: Uint16Array; readonly newLooks: readonly SeatLook[] }
  | { readonly call: "paintSections"; readonly sections: readonly SectionPaint[]; readonly ground: Pixel }
  | { readonly call: "setFrame"; readonly frame: Frame }
  | { readonly call: "close" };

export type WorkerNote = { readonly note: "ready" } | ({ readonly note: "drawn" } & FrameReport);
