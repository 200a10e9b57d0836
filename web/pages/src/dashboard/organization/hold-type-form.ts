/** The organization's own layer of hold types: each field said here, or left to the layers below. */

export interface HoldTypeFields {
  validStates?: string[];
  ttlSeconds?: number | null;
  releaseApi?: string;
  paymentRequired?: boolean;
  skipLockedState?: boolean;
  displayName?: string;
  displayColor?: string;
  displayIcon?: string | null;
}
export type FieldName = keyof HoldTypeFields;
export type Layer = 'organization' | 'tenant' | 'platform' | 'default';

export const FIELDS: { name: FieldName; label: string; about: string }[] = [
  { name: 'displayName', label: 'Name', about: 'How people call it.' },
  { name: 'displayColor', label: 'Colour', about: 'On every map.' },
  { name: 'displayIcon', label: 'Icon', about: 'star, lock, plus, dot, or one or two letters. Empty: a clock.' },
  { name: 'ttlSeconds', label: 'Lives for', about: 'Seconds. Empty: until released.' },
  { name: 'releaseApi', label: 'Who may release', about: 'Any of those ticked.' },
  { name: 'paymentRequired', label: 'To be paid for', about: 'Or given away.' },
  { name: 'validStates', label: 'Valid states', about: 'LOCKED: a seat can be held so. SOLD: it can be sold so.' },
  { name: 'skipLockedState', label: 'Sold without a hold', about: 'For the box office.' },
];

export const ACTORS = ['CUSTOMER', 'ADMIN', 'SYSTEM', 'API'] as const;
export const STATES = ['LOCKED', 'SOLD'] as const;

export const LAYER_WORDS: Record<Layer, string> = {
  organization: 'said here', tenant: 'from the tenant', platform: 'built in', default: 'default',
};

/** "CUSTOMER,ADMIN" without or with one more, in the usual order. */
export function withActor(actors: string, actor: string, on: boolean): string {
  const known = new Set(actors.split(',').map((one) => one.trim()).filter(Boolean));
  if (on) known.add(actor);
  else known.delete(actor);
  return [...ACTORS.filter((one) => known.delete(one)), ...known].join(',');
}

/** Names are upper case, as programs write them. */
export function typeName(said: string): string {
  return said.trim().toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_').replaceAll(/^_+|_+$/g, '');
}

/** A copy of the layer with one field said, or (undefined) no longer said; types that say nothing stay known. */
export function withField(
  layer: Readonly<Record<string, HoldTypeFields>>, type: string, field: FieldName, value: HoldTypeFields[FieldName] | undefined,
): Record<string, HoldTypeFields> {
  const fields: HoldTypeFields = { ...layer[type] };
  if (value === undefined) delete fields[field];
  else Object.assign(fields, { [field]: value });
  return { ...layer, [type]: fields };
}
