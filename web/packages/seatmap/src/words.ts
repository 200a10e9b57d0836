import type { Detail } from "./draw/detail.js";

/** Every word the element says; a page in another language gives its own. */
export interface Words {
  readonly map: string;
  readonly list: string;
  readonly mapMode: string;
  readonly listMode: string;
  readonly mapHelp: string;
  readonly zoomIn: string;
  readonly zoomOut: string;
  readonly wholePlan: string;
  readonly lasso: string;
  readonly legend: string;
  readonly minimap: string;
  readonly filters: string;
  readonly price: string;
  readonly anyPrice: string;
  readonly upTo: string;
  readonly wheelchairOnly: string;
  readonly availableOnly: string;
  readonly fullView: string;
  readonly stage: string;
  readonly row: string;
  readonly seat: string;
  readonly available: string;
  readonly held: string;
  readonly sold: string;
  readonly blocked: string;
  readonly kept: string;
  readonly selected: string;
  readonly awaited: string;
  readonly closed: string;
  readonly wheelchair: string;
  readonly companion: string;
  readonly restrictedView: string;
  readonly generalAdmission: string;
  readonly left: string;
  readonly of: string;
  readonly soldOut: string;
  readonly choose: string;
  readonly selectRow: string;
  readonly selectSection: string;
  readonly deselectedNow: string;
  readonly notSelected: string;
  readonly selectionFull: string;
  readonly notAvailable: string;
  readonly gone: string;
  readonly loading: string;
  readonly live: string;
  readonly reconnecting: string;
  readonly down: string;
  readonly noSeats: string;
  readonly seatsInside: string;
  readonly details: Readonly<Record<Detail, string>>;
}

export const ENGLISH: Words = {
  map: "Seat map", list: "List of seats", mapMode: "Map", listMode: "List",
  mapHelp: "Arrow keys move between seats, Enter selects, plus and minus zoom, Escape leaves. The list has the same seats.",
  zoomIn: "Zoom in", zoomOut: "Zoom out", wholePlan: "Whole plan", lasso: "Select by drawing", legend: "Legend", minimap: "Overview: click to go there",
  filters: "Filters", price: "Price", anyPrice: "Any price", upTo: "up to",
  wheelchairOnly: "Wheelchair places", availableOnly: "Available only", fullView: "Full view only",
  stage: "Stage", row: "row", seat: "seat",
  available: "available", held: "held", sold: "sold", blocked: "not for sale", kept: "kept for a companion",
  selected: "selected", awaited: "being selected", closed: "not for sale",
  wheelchair: "wheelchair", companion: "companion", restrictedView: "restricted view",
  generalAdmission: "general admission", left: "left", of: "of", soldOut: "sold out", choose: "Choose",
  selectRow: "Select row", selectSection: "Select section",
  deselectedNow: "no longer selected", notSelected: "could not be selected",
  selectionFull: "No more seats can be selected", notAvailable: "is not available", gone: "has just been taken",
  loading: "Loading seats…", live: "Live", reconnecting: "Reconnecting…", down: "The server does not answer. Availability may be out of date.",
  noSeats: "No seats fit the filters.", seatsInside: "seats selected by drawing",
  details: { far: "Sections", middle: "Seats", near: "Seats with numbers" },
};

export type MoneyWriter = (minor: number, currency: string | null) => string;

/** "80.00 EUR": digits by the currency (0 for JPY), in the page's language. */
export function moneyWriter(locale: string | undefined): MoneyWriter {
  const formats = new Map<string, { format: Intl.NumberFormat; per: number }>();
  return (minor, currency) => {
    const key = currency ?? "";
    let found = formats.get(key);
    if (!found) {
      const digits = currency ? currencyDigits(currency) : 2;
      const format = new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits });
      found = { format, per: 10 ** digits };
      formats.set(key, found);
    }
    const amount = found.format.format(minor / found.per);
    return currency ? `${amount} ${currency}` : amount;
  };
}

function currencyDigits(currency: string): number {
  try {
    return new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2;
  } catch {
    return 2;
  }
}
