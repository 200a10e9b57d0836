import type { Mark, Shape } from "./style.js";

/**
 * Distances to shapes and marks, in units of a seat's radius: below 0 is inside. A distance gives the share of a pixel that
 * is covered without drawing anything larger first, at any size.
 */
export function shapeDistance(shape: Shape, x: number, y: number): number {
  switch (shape) {
    case "circle":
      return Math.hypot(x, y) - 1;
    case "square": {
      const dx = Math.abs(x) - 0.62, dy = Math.abs(y) - 0.62;
      return Math.hypot(Math.max(dx, 0), Math.max(dy, 0)) + Math.min(Math.max(dx, dy), 0) - 0.3;
    }
    case "diamond":
      return (Math.abs(x) + Math.abs(y) - 1.12) * Math.SQRT1_2;
  }
}

type Stroke = readonly ["line", number, number, number, number, number] | readonly ["disc", number, number, number] | readonly ["ring", number, number, number, number];

const STROKES: Record<Exclude<Mark, "none" | "half">, readonly Stroke[]> = {
  check: [["line", -0.44, 0.04, -0.12, 0.36, 0.13], ["line", -0.12, 0.36, 0.46, -0.34, 0.13]],
  cross: [["line", -0.36, -0.36, 0.36, 0.36, 0.1], ["line", -0.36, 0.36, 0.36, -0.36, 0.1]],
  slash: [["line", -0.5, 0.5, 0.5, -0.5, 0.09]],
  clock: [["line", 0, 0.04, 0, -0.48, 0.1], ["line", 0, 0.04, 0.34, 0.22, 0.1]],
  dash: [["line", -0.36, 0, 0.36, 0, 0.11]],
  dot: [["disc", 0, 0, 0.3]],
  plus: [["line", -0.42, 0, 0.42, 0, 0.11], ["line", 0, -0.42, 0, 0.42, 0.11]],
  wheelchair: [
    ["disc", -0.1, -0.56, 0.14], ["line", -0.1, -0.32, -0.06, 0.1, 0.09], ["line", -0.06, -0.12, 0.26, -0.12, 0.07],
    ["line", -0.06, 0.1, 0.28, 0.1, 0.09], ["line", 0.28, 0.1, 0.42, 0.46, 0.09], ["ring", -0.12, 0.24, 0.36, 0.06],
  ],
  companion: [
    ["disc", -0.28, -0.3, 0.17], ["disc", 0.28, -0.3, 0.17], ["line", -0.28, 0.06, -0.28, 0.32, 0.16], ["line", 0.28, 0.06, 0.28, 0.32, 0.16],
  ],
  star: [
    ["line", 0, -0.5, 0, 0.5, 0.09], ["line", -0.43, -0.25, 0.43, 0.25, 0.09], ["line", -0.43, 0.25, 0.43, -0.25, 0.09],
  ],
  lock: [["disc", 0, 0.16, 0.3], ["ring", 0, -0.18, 0.22, 0.07]],
};

export function markDistance(mark: Mark, x: number, y: number): number {
  if (mark === "none") return Infinity;
  if (mark === "half") return -y + 0.02;
  let least = Infinity;
  for (const stroke of STROKES[mark]) {
    let distance: number;
    if (stroke[0] === "disc") distance = Math.hypot(x - stroke[1], y - stroke[2]) - stroke[3];
    else if (stroke[0] === "ring") distance = Math.abs(Math.hypot(x - stroke[1], y - stroke[2]) - stroke[3]) - stroke[4];
    else {
      const [, fromX, fromY, toX, toY, width] = stroke;
      const lengthX = toX - fromX, lengthY = toY - fromY;
      const along = ((x - fromX) * lengthX + (y - fromY) * lengthY) / (lengthX * lengthX + lengthY * lengthY);
      const share = Math.min(Math.max(along, 0), 1);
      distance = Math.hypot(x - fromX - lengthX * share, y - fromY - lengthY * share) - width;
    }
    if (distance < least) least = distance;
  }
  return least;
}

export function isShape(text: string): text is Shape {
  return text === "circle" || text === "square" || text === "diamond";
}

export function isMark(text: string): text is Mark {
  return Object.hasOwn(STROKES, text) || text === "half" || text === "none";
}
