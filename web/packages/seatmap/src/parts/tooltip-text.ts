import type { Wardrobe } from "../draw/wardrobe.js";
import type { House } from "../house.js";
import type { Pointed } from "../surface.js";
import type { MoneyWriter, Words } from "../words.js";
import type { TooltipText } from "./tooltip.js";

/** What the tooltip says of a seat or of a section; null of nothing. */
export function tooltipText(
  house: House, words: Words, money: MoneyWriter, pointed: Pointed, wardrobe: Wardrobe | null,
): TooltipText | null {
  const { currency } = house.prices;
  const { geometry } = house;
  if (pointed.seat < 0) {
    const section = geometry.sections[pointed.section];
    if (!section) return null;
    const price = house.prices.ofSection(pointed.section);
    return {
      title: section.name,
      lines: [...(section.seat_count === 0 ? [capitalised(words.generalAdmission)] : []), house.sectionWords(pointed.section)],
      look: null,
      price: price === null ? null : money(price, currency),
    };
  }
  const { seat: ordinal } = pointed;
  const kinds: Readonly<Record<string, string>> = {
    wheelchair: words.wheelchair, companion: words.companion, restricted_view: words.restrictedView,
  };
  const kind = kinds[house.category(ordinal)];
  const price = house.prices.ofSeat(ordinal);
  const because = house.states.kept[ordinal] ? house.states.notOfferedBecause : null;
  return {
    title: geometry.sections[geometry.section[ordinal]!]!.name,
    price: price === null ? null : money(price, currency),
    lines: [
      `${capitalised(words.row)} ${geometry.rows[geometry.row[ordinal]!]} · ${capitalised(words.seat)} ${geometry.number[ordinal]}`,
      ...(because ? [because] : []),
      [kind && capitalised(kind), capitalised(house.stateWords(ordinal))].filter(Boolean).join(" · "),
    ],
    look: wardrobe?.lookOf(ordinal) ?? null,
  };
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
