/** The fields of the seating policy, in words and in groups. */

export type PolicyValue = boolean | number | null;
export interface PolicyField {
  name: string;
  label: string;
  kind: 'yes' | 'count';
  nullable?: boolean;
  unit?: string;
}
export interface PolicyGroup {
  title: string;
  fields: PolicyField[];
}

const yes = (name: string, label: string): PolicyField => ({ name, label, kind: 'yes' });
const count = (name: string, label: string, unit = '', nullable = false): PolicyField => ({ name, label, kind: 'count', unit, nullable });

export const POLICY_GROUPS: PolicyGroup[] = [
  { title: 'Which zones there may be', fields: [
    yes('allow_reserved_seating', 'Numbered seats'),
    yes('allow_ga_seating', 'General admission'),
    yes('allow_hybrid_ga_reserved', 'Both in one house'),
    yes('allow_vip_zones', 'VIP zones'),
  ] },
  { title: 'Accessibility', fields: [
    yes('enforce_accessibility_rules', 'Keep seats for companions'),
    count('companion_release_occupancy_threshold', 'Give unclaimed companions’ seats to everybody when a zone is full by', '%'),
    count('max_wheelchair_seats_per_booking', 'Wheelchair places in one booking, at most'),
    yes('accessibility_audit_enabled', 'Write accessible bookings into the audit'),
  ] },
  { title: 'Choosing seats', fields: [
    count('max_seats_per_booking', 'Places in one booking, at most'),
    yes('orphan_avoidance_strict', 'Refuse choices that leave a single seat'),
    yes('group_adjacency_strict', 'Seats of one booking must be together'),
    count('max_group_split', 'In how many parts, at most'),
    yes('prefer_clustering_over_selection', 'The system chooses, buyers do not'),
  ] },
  { title: 'Holds', fields: [
    count('default_hold_ttl_minutes', 'A cart lives for', 'min'),
    count('max_hold_minutes', 'And longer at most until', 'min'),
    count('max_holds_per_user', 'Holds of one buyer in five minutes, at most', '', true),
    count('max_holds_per_ip', 'Holds from one address in five minutes, at most', '', true),
    yes('adaptive_hold_life', 'Shorter lives under pressure'),
    count('adaptive_hold_min_minutes', 'Then at least', 'min'),
    count('adaptive_hold_max_minutes', 'And at most', 'min', true),
  ] },
  { title: 'Checkout', fields: [
    count('checkout_minutes', 'A checkout lives for', 'min'),
    yes('checkout_heartbeat', 'Its holds live by the page’s heartbeat'),
    count('heartbeat_hold_minutes', 'After a heartbeat for', 'min'),
    yes('buyers_state_payment', 'Buyers may state a payment themselves'),
  ] },
];

export const POLICY_FIELDS: PolicyField[] = POLICY_GROUPS.flatMap((group) => group.fields);

export interface PolicyDraft {
  said: Record<string, PolicyValue>;
  locked: string[];
}

export function draftOf(stored: Record<string, unknown> | null): PolicyDraft {
  const { locked_fields: locked, ...said } = stored ?? {};
  return { said: said as Record<string, PolicyValue>, locked: Array.isArray(locked) ? [...(locked as string[])].sort() : [] };
}

/** As `PUT /api/policy` takes it: whole, what is not said is at its default. */
export function documentOf(draft: PolicyDraft): Record<string, unknown> {
  return { ...draft.said, ...(draft.locked.length ? { locked_fields: [...draft.locked].sort() } : {}) };
}

export function policyWords(field: PolicyField, value: unknown): string {
  if (value === null || value === undefined) return field.nullable ? 'no limit' : '–';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return field.unit ? `${String(value)} ${field.unit}` : String(value);
}
