/** Time as the page counts it: the same for everything that shows it, and not the device's clock. */
export class Clock {
  now = $state(performance.now());

  /** Answers how to stop it. */
  start(): () => void {
    const timer = setInterval(() => (this.now = performance.now()), 250);
    return () => clearInterval(timer);
  }
}
