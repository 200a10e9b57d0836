import { House } from "../src/house.js";
import type { SelectionKind } from "../src/house.js";
import { Prices } from "../src/state/prices.js";
import type { Verdict } from "../src/state/selection.js";
import { decodeSnapshot } from "../src/state/snapshot.js";
import { ENGLISH, moneyWriter } from "../src/words.js";
import { theatre } from "../example/houses.js";

export interface Asked {
  kind: SelectionKind;
  most: number;
  answer: (ordinal: number) => Verdict;
  answerToDrop: (ordinal: number) => Verdict;
  changed: number[];
}

/** The example's theatre with everything free, unless told. */
export function madeHouse(taken = false): { house: House; asked: Asked } {
  const { geometry, prices, snapshot } = theatre();
  const asked: Asked = { kind: "available", most: Infinity, answer: () => undefined, answerToDrop: () => undefined, changed: [] };
  const house = new House(geometry, {
    words: () => ENGLISH,
    money: () => moneyWriter("en"),
    selectionKind: () => asked.kind,
    rules: {
      most: () => asked.most,
      asked: (ordinal) => asked.answer(ordinal),
      askedToDrop: (ordinal) => asked.answerToDrop(ordinal),
      changed: (ordinals) => asked.changed.push(...ordinals),
    },
  });
  house.prices = Prices.of(prices, geometry, house.identities);
  if (taken) house.states.replace(decodeSnapshot(snapshot));
  return { house, asked };
}
