import { isMark, isShape } from "./shape.js";

export type Shape = "circle" | "square" | "diamond";

export type Mark =
  | "none" | "check" | "cross" | "slash" | "clock" | "dash" | "dot" | "plus" | "half" | "wheelchair" | "companion" | "star" | "lock";

/** How a seat looks. Colours are #RGB or #RRGGBB. */
export interface SeatLook {
  readonly shape: Shape;
  /** null: hollow. */
  readonly fill: string | null;
  readonly stroke: string | null;
  readonly mark: Mark;
  /** One or two characters instead of a mark: a hold type's icon. Seen from near. */
  readonly icon: string | null;
  /** Of the mark, the icon and the number. */
  readonly ink: string;
  /** 1 is the usual size. */
  readonly size: number;
  readonly opacity: number;
  /** Drawn above its neighbours. */
  readonly raised: boolean;
  /** Whether the seat's number is written on it from near. */
  readonly numbered: boolean;
}

export const PLAIN_LOOK: SeatLook = {
  shape: "circle", fill: "#808080", stroke: null, mark: "none", icon: null, ink: "#ffffff",
  size: 1, opacity: 1, raised: false, numbered: true,
};

/** What a seat may grow to: changed seats are put back singly, in a box of this size. */
export const LARGEST = 1.24;

/** A look may come from the page: what cannot be drawn is drawn plainly. */
function sound(look: SeatLook): SeatLook {
  const { shape, mark, size, opacity } = look;
  const within = (value: number, most: number) => (value > 0 ? Math.min(value, most) : 0.01);
  if (isShape(shape) && isMark(mark) && size > 0 && size <= LARGEST && opacity > 0 && opacity <= 1) return look;
  return {
    ...look, shape: isShape(shape) ? shape : "circle", mark: isMark(mark) ? mark : "none",
    size: within(size, LARGEST), opacity: within(opacity, 1),
  };
}

/** Looks by number: a seat carries the number of its look, and equal looks have one number. */
export class StyleTable {
  readonly looks: SeatLook[] = [];
  readonly #known = new Map<string, number>();

  intern(told: SeatLook): number {
    const look = sound(told);
    const key = `${look.shape}|${look.fill}|${look.stroke}|${look.mark}|${look.icon}|${look.ink}|${look.size}|${look.opacity}|${look.raised}|${look.numbered}`;
    let id = this.#known.get(key);
    if (id === undefined) {
      id = this.looks.push(look) - 1;
      this.#known.set(key, id);
    }
    return id;
  }
}
