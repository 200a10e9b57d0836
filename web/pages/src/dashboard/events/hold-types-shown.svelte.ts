/** How hold types look, kept fresh: whoever changes a colour in the editor sees it on every open map. */
import type { HoldTypeDisplay } from '@holdfast/seatmap';
import type { components } from '../../shared/schema';
import { Loaded } from '../loaded.svelte';
import { api } from '../session.svelte';

export type HoldTypeConfig = components['schemas']['ConfigAnswer'];
export interface ResolvedHoldType {
  validStates: string[];
  ttlSeconds: number | null;
  releaseApi: string;
  paymentRequired: boolean;
  skipLockedState: boolean;
  displayName: string;
  displayColor: string;
  displayIcon: string | null;
}

const EVERY_MS = 4_000;

export class HoldTypesShown {
  #told = '';
  #types = $state.raw<Record<string, ResolvedHoldType>>({});
  readonly loaded = new Loaded(async (signal) => {
    const { data } = await api.get<{ data: HoldTypeConfig }>('/api/organizations/config', { signal });
    const types = (data.resolved['holdTypes'] ?? {}) as Record<string, ResolvedHoldType>;
    const told = JSON.stringify(types);
    // The map dresses every seat anew when it is told types: only where they are others.
    if (told !== this.#told) {
      this.#told = told;
      this.#types = types;
    }
    return types;
  }, EVERY_MS);

  get types(): Record<string, ResolvedHoldType> {
    return this.#types;
  }

  get display(): Record<string, HoldTypeDisplay> {
    return this.#types;
  }

  name(type: string): string {
    return this.#types[type]?.displayName ?? type;
  }

  colour(type: string): string {
    return this.#types[type]?.displayColor ?? '#808080';
  }
}
