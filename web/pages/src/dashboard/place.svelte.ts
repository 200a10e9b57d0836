/** Where in the dashboard the reader is: the address says it, so that reload, back and a link to a colleague work. */

export const EVENT_TABS = ['live', 'arrange', 'charts', 'sales', 'gates'] as const;
export type EventTab = (typeof EVENT_TABS)[number];
export const ORGANIZATION_VIEWS = [
  'hold-types', 'policy', 'layouts', 'webhooks', 'payments', 'people', 'audit', 'registry',
] as const;
export type OrganizationView = (typeof ORGANIZATION_VIEWS)[number];

export type Place =
  | { view: 'events' }
  | { view: 'event'; eventId: string; tab: EventTab }
  | { view: OrganizationView }
  | { view: 'nowhere' };

export function placeOf(path: string): Place {
  const [first, second, third, ...rest] = path.replace(/^\/dashboard\/?/, '').split('/').filter(Boolean);
  if (first === undefined) return { view: 'events' };
  if (first === 'events' && rest.length === 0) {
    if (second === undefined) return { view: 'events' };
    const tab = (third ?? 'live') as EventTab;
    if (EVENT_TABS.includes(tab)) return { view: 'event', eventId: second, tab };
  }
  if (second === undefined && (ORGANIZATION_VIEWS as readonly string[]).includes(first)) {
    return { view: first as OrganizationView };
  }
  return { view: 'nowhere' };
}

export function addressOf(place: Exclude<Place, { view: 'nowhere' }>): string {
  if (place.view === 'events') return '/dashboard';
  if (place.view === 'event') return `/dashboard/events/${place.eventId}/${place.tab}`;
  return `/dashboard/${place.view}`;
}

class Whereabouts {
  path = $state(typeof location === 'undefined' ? '/dashboard' : location.pathname);
  readonly place = $derived(placeOf(this.path));

  go(address: string): void {
    if (address === location.pathname) return;
    history.pushState(null, '', address);
    this.path = location.pathname;
    scrollTo(0, 0);
  }
}

export const here = new Whereabouts();

/** Ordinary clicks on links within the dashboard do not load the page anew. */
export function followLinks(): void {
  addEventListener('popstate', () => (here.path = location.pathname));
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.('a');
    if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
    if (link.pathname !== '/dashboard' && !link.pathname.startsWith('/dashboard/')) return;
    event.preventDefault();
    here.go(link.pathname);
  });
}
