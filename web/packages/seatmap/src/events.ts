import type { BackendKind } from "./draw/backend.js";
import type { FeedStatus } from "./feed/feed.js";
import type { Section } from "./geometry/geometry.js";
import type { View } from "./geometry/view.js";
import type { Cart, Seat } from "./seat.js";

/** Events beside the callbacks. Those that can be cancelled are a veto, as `false` from the callback is. */
export interface SeatmapEvents {
  /** Cancelable. */
  seatselect: CustomEvent<{ seat: Seat }>;
  /** Cancelable. */
  seatdeselect: CustomEvent<{ seat: Seat }>;
  /** A selected seat was taken by somebody else. */
  seatlost: CustomEvent<{ seat: Seat }>;
  cartchange: CustomEvent<Cart>;
  /** Cancelable: without it the map shows the section. */
  sectionclick: CustomEvent<{ section: Section }>;
  /** Cancelable: without it the seats are selected. */
  lasso: CustomEvent<{ seats: readonly Seat[] }>;
  viewchange: CustomEvent<{ view: View }>;
  feedstatus: CustomEvent<{ status: FeedStatus; detail: string }>;
  /** What the server says of the event itself: changed, cancelled, put on sale. */
  eventnotice: CustomEvent<{ readonly kind: string } & Record<string, unknown>>;
  /** After every picture; does not bubble. */
  framedrawn: CustomEvent<{ drawMs: number; drawnIn: BackendKind }>;
  /** After the first picture of a plan. */
  seatmapready: CustomEvent<{ drawMs: number; drawnIn: BackendKind }>;
}
