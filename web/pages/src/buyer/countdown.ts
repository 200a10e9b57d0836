/**
 * How much time is left. The server says how many seconds; from then on a clock counts that nobody can set
 * (`performance.now`): the device's own may be hours off.
 */
export const WARN_S = 30;

export interface Deadline {
  /** On the page's own clock, in milliseconds. */
  readonly endsAt: number;
}

export function deadlineIn(seconds: number, now: number): Deadline {
  return { endsAt: now + seconds * 1000 };
}

/** Whole seconds, never below 0. The last second shows as 0:01 until it is over. */
export function secondsLeft(deadline: Deadline, now: number): number {
  return Math.max(0, Math.ceil((deadline.endsAt - now) / 1000));
}

/** "4:10", "0:09", "62:00" */
export function clockFace(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

/** "4 minutes and 10 seconds", for those who hear it. */
export function spokenTime(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  const rest = seconds % 60;
  const parts = [
    minutes ? `${minutes} ${minutes === 1 ? 'minute' : 'minutes'}` : '',
    rest || !minutes ? `${rest} ${rest === 1 ? 'second' : 'seconds'}` : '',
  ];
  return parts.filter(Boolean).join(' and ');
}

/** Seconds left at which a screen reader says so. */
const SPOKEN_AT = [600, 300, 120, 60, WARN_S, 10] as const;

/** What to say when the time left went from `before` to `now`; null: nothing. The last mark passed is the one said. */
export function announcement(before: number, now: number): string | null {
  if (now <= 0) return null;
  const passed = SPOKEN_AT.filter((mark) => before > mark && now <= mark).at(-1);
  return passed === undefined ? null : `${spokenTime(now)} left.`;
}

export type Urgency = 'calm' | 'soon' | 'over';

export function urgency(seconds: number): Urgency {
  return seconds <= 0 ? 'over' : seconds <= WARN_S ? 'soon' : 'calm';
}
