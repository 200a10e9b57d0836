/** What the server answers, by the names of the API. */
import type { components } from '../shared/schema';

type Schemas = components['schemas'];
export type PublicEvent = Schemas['PublicEvent'];
export type PublicEventDetail = Schemas['PublicEventDetail'];
export type EventAnswer = Schemas['EventAnswer'];
export type HoldView = Schemas['HoldView'];
export type Reserved = Schemas['Reserved'];
export type CompanionSeat = Schemas['CompanionSeat'];
export type Placement = Schemas['PlacementOut'];
export type Proposal = Schemas['Proposal'];
export type Best = Schemas['Best'];
export type CheckoutView = Schemas['CheckoutView'];
export type LineView = Schemas['LineView'];
export type PaymentBegun = Schemas['PaymentBegun'];
export type TicketView = Schemas['TicketView'];
export type ZoneCounts = Schemas['ZoneCounts'];
export type GuestToken = Schemas['GuestToken'];

export interface Data<T> {
  data: T;
}
export interface Page<T> {
  data: T[];
  next_cursor: string | null;
}
