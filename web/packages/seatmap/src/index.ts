import { HoldfastSeatmap } from "./element.js";

export { HoldfastSeatmap } from "./element.js";
export type { Mode, SeatmapEvents } from "./element.js";
export type { Cart, Seat } from "./seat.js";
export type { Mark, SeatLook, Shape } from "./draw/style.js";
export type { BeforeSeatDraw } from "./draw/wardrobe.js";
export { decodeGeometry, GeometryInvalid } from "./geometry/decode-geometry.js";
export type { GeometryDocument } from "./geometry/decode-geometry.js";
export type { Geometry, Point, SeatGroup, Section, SectionKind } from "./geometry/geometry.js";
export { SeatIdentities, uuid5 } from "./geometry/seat-identity.js";
export type { SeatName } from "./geometry/seat-identity.js";
export type { View } from "./geometry/view.js";
export { Feed } from "./feed/feed.js";
export type { FeedOptions, FeedSink, FeedStatus, TokenSource } from "./feed/feed.js";
export { decodeSnapshot, SnapshotInvalid } from "./state/snapshot.js";
export type { CountedPlaces, SeatState, Snapshot, SnapshotDocument } from "./state/snapshot.js";
export { SeatStates } from "./state/seat-states.js";
export type { SeatChanges } from "./state/seat-states.js";
export type { HoldTypeDisplay } from "./state/hold-types.js";
export type { OwnState } from "./state/own-states.js";
export type { PricesDocument } from "./state/prices.js";
export type { SeatFilter } from "./state/seat-filter.js";
export type { SectionState } from "./state/section-states.js";
export type { Verdict } from "./state/selection.js";
export { ENGLISH } from "./words.js";
export type { Words } from "./words.js";

if (globalThis.customElements && !customElements.get("holdfast-seatmap")) customElements.define("holdfast-seatmap", HoldfastSeatmap);
