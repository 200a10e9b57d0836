import type { Box } from "./geometry.js";

/**
 * Seats sorted into square cells, so that what is in a rectangle is found without looking at the rest.
 * Two arrays: the seats in the order of their cells, and where each cell begins among them.
 */
export class SeatGrid {
  readonly cell: number;
  readonly columns: number;
  readonly rows: number;
  readonly left: number;
  readonly top: number;
  readonly starts: Uint32Array;
  readonly seats: Uint32Array;

  constructor(x: Float32Array, y: Float32Array, box: Box, cell: number) {
    this.left = box.left;
    this.top = box.top;
    this.cell = cell;
    this.columns = Math.max(1, Math.floor((box.right - box.left) / cell) + 1);
    this.rows = Math.max(1, Math.floor((box.bottom - box.top) / cell) + 1);
    const count = x.length;
    const cells = new Uint32Array(count);
    this.starts = new Uint32Array(this.columns * this.rows + 1);
    for (let i = 0; i < count; i++) {
      const column = Math.floor((x[i]! - this.left) / cell);
      const row = Math.floor((y[i]! - this.top) / cell);
      const at = row * this.columns + column;
      cells[i] = at;
      this.starts[at + 1]!++;
    }
    for (let i = 1; i < this.starts.length; i++) this.starts[i]! += this.starts[i - 1]!;
    const next = this.starts.slice();
    this.seats = new Uint32Array(count);
    for (let i = 0; i < count; i++) this.seats[next[cells[i]!]!++] = i;
  }

  /** Cells that a rectangle touches; empty (first > last) where it lies outside. */
  cellsIn(box: Box): { firstColumn: number; lastColumn: number; firstRow: number; lastRow: number } {
    const { cell, left, top, columns, rows } = this;
    return {
      firstColumn: Math.max(0, Math.floor((box.left - left) / cell)),
      lastColumn: Math.min(columns - 1, Math.floor((box.right - left) / cell)),
      firstRow: Math.max(0, Math.floor((box.top - top) / cell)),
      lastRow: Math.min(rows - 1, Math.floor((box.bottom - top) / cell)),
    };
  }

  /** Visits every seat of every cell that the rectangle touches: a few more than lie in it. */
  visit(box: Box, visitor: (ordinal: number) => void): void {
    const { firstColumn, lastColumn, firstRow, lastRow } = this.cellsIn(box);
    if (firstColumn > lastColumn) return;
    for (let row = firstRow; row <= lastRow; row++) {
      const from = this.starts[row * this.columns + firstColumn]!;
      const to = this.starts[row * this.columns + lastColumn + 1]!;
      for (let i = from; i < to; i++) visitor(this.seats[i]!);
    }
  }

  /** The seat nearest to a point, no farther than `within`; -1 where there is none. */
  nearest(x: Float32Array, y: Float32Array, atX: number, atY: number, within: number): number {
    let found = -1;
    let best = within * within;
    this.visit({ left: atX - within, top: atY - within, right: atX + within, bottom: atY + within }, (ordinal) => {
      const dx = x[ordinal]! - atX, dy = y[ordinal]! - atY;
      const distance = dx * dx + dy * dy;
      if (distance <= best) {
        best = distance;
        found = ordinal;
      }
    });
    return found;
  }
}
