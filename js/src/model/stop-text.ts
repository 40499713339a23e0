/** Text on its way out: what may be the beginning of a stop string waits until it is clear. */
export class StopText {
  readonly #stops: readonly string[];
  #held = "";
  /** Whether a stop string has come: what is before it is out, and nothing more comes. */
  stopped = false;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  /** What can go out now. */
  push(text: string): string {
    if (this.stopped) return "";
    if (this.#stops.length === 0) return text;
    const whole = this.#held + text;
    const found = this.#stops.map((stop) => whole.indexOf(stop)).filter((at) => at >= 0);
    if (found.length > 0) {
      this.stopped = true;
      this.#held = "";
      return whole.slice(0, Math.min(...found));
    }
    const waiting = this.#stops.reduce((most, stop) => Math.max(most, overlap(whole, stop)), 0);
    this.#held = whole.slice(whole.length - waiting);
    return whole.slice(0, whole.length - waiting);
  }

  /** What waited in vain. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }
}

/** How much of the end of `text` is a beginning of `stop`. */
function overlap(text: string, stop: string): number {
  for (let length = Math.min(text.length, stop.length - 1); length > 0; length--)
    if (text.endsWith(stop.slice(0, length))) return length;
  return 0;
}
