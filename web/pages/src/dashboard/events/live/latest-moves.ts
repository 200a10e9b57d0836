/**
 * The newest moves of the state log. It is told oldest first, after an id: the end is found by halves, once, and followed
 * from there.
 */
import type { components } from '../../../shared/schema';

export type Move = components['schemas']['MoveAnswer'];
/** Moves with an id above `after`, oldest first, at most `limit`. */
export type ReadLog = (after: number, limit: number) => Promise<Move[]>;

const FARTHEST = 2 ** 52;
const AT_ONCE = 1000;

/** The id of the last move, or 0 where there is none. */
export async function lastMove(read: ReadLog): Promise<number> {
  let known = (await read(0, 1))[0]?.id ?? 0;
  if (known === 0) return 0;
  let beyond = FARTHEST;
  for (let step = 1024; ; step *= 4) {
    const found = (await read(known + step, 1))[0];
    if (!found) {
      beyond = known + step;
      break;
    }
    known = found.id;
  }
  // Something is above `known - 1`, nothing above `beyond`.
  while (beyond - known > AT_ONCE) {
    const middle = Math.floor((known + beyond) / 2);
    const found = (await read(middle, 1))[0];
    if (found) known = found.id;
    else beyond = middle;
  }
  const rest = await read(known, AT_ONCE);
  return rest.at(-1)?.id ?? known;
}

export class LatestMoves {
  readonly #read: ReadLog;
  readonly #most: number;
  #last: number | null = null;
  #moves: Move[] = [];

  constructor(read: ReadLog, most = 60) {
    this.#read = read;
    this.#most = most;
  }

  /** Newest first. */
  async refresh(): Promise<Move[]> {
    if (this.#last === null) this.#last = Math.max(0, (await lastMove(this.#read)) - this.#most);
    const found = await this.#read(this.#last, AT_ONCE);
    this.#last = found.at(-1)?.id ?? this.#last;
    this.#moves = [...found.reverse(), ...this.#moves].slice(0, this.#most);
    return this.#moves;
  }
}

const VERBS: Readonly<Record<string, string>> = {
  hold: 'held', extend: 'held longer', release: 'released', expire: 'hold expired', sell: 'sold', convert: 'sold',
  direct_sale: 'sold directly', revert_sale: 'sale taken back', block: 'blocked', unblock: 'unblocked', cancel: 'hold cancelled',
};

export function moveWords(move: Pick<Move, 'verb'>): string {
  return VERBS[move.verb] ?? move.verb.replaceAll('_', ' ');
}
