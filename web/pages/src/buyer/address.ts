/** Which page an address asks for. */
export type Place =
  | { readonly kind: 'events'; readonly organization: string }
  | { readonly kind: 'event'; readonly event: string }
  | { readonly kind: 'unknown' };

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** `meta` is what the page itself says whose it is, for sites of one organization. */
export function placeOf(path: string, query: string, meta: string | null): Place {
  const event = /^\/e\/([^/]+)\/?$/.exec(path)?.[1];
  if (event !== undefined) return ID.test(event) ? { kind: 'event', event } : { kind: 'unknown' };
  const organization = new URLSearchParams(query).get('organization') ?? meta ?? '';
  return ID.test(organization) ? { kind: 'events', organization } : { kind: 'unknown' };
}

/** The steps of buying, as the part of the address behind `#`: back and reload work. */
export type Step = 'choose' | 'checkout' | 'tickets';

export function stepOf(hash: string): Step {
  return hash === '#checkout' ? 'checkout' : hash === '#tickets' ? 'tickets' : 'choose';
}
